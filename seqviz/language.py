"""What the page, the figures and the files say, in one language.

    say = Language.of("zh").say
    say("length.words", number=20)                        # "20 words", in Chinese
    Language.of("en").within("lab.recall").say("budget")   # the same as say("lab.recall.budget")

The texts stand in ``texts/en.toml`` and ``texts/zh.toml``, a table for each room, the same keys in both.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

LANGUAGES = ("en", "zh")

_UNITS = {
    "en": {"language.large": (1e5, 1e6, 1), "language.smaller": (0, 1e3, 0)},
    "zh": {"language.large": (1e8, 1e8, 2), "language.smaller": (0, 1e4, 0)},
}
"""By language and text of a short number: the least number, the unit, digits after the point."""

_FOLDER = Path(__file__).resolve().parent / "texts"


@dataclass(frozen=True)
class Language:
    """A language and all its texts.

    Attributes:
        code: one of `LANGUAGES`.
        texts: by full key: the table's name, a dot, the name in it.
        table: in front of every key that is asked for; empty for full keys.
    """

    code: str
    texts: Mapping[str, str] = field(repr=False, compare=False)
    table: str = ""

    @staticmethod
    def of(code: str | Language) -> Language:
        """The language with this code; a `Language` stays what it is. Read once a process.

        Raises:
            ValueError: no such language.
        """
        if isinstance(code, Language):
            return code
        if code not in LANGUAGES:
            raise ValueError(f"expected language to be one of {', '.join(LANGUAGES)}, got {code!r}")
        return _read(code)

    def within(self, table: str) -> Language:
        """The same language, with keys of one table."""
        return replace(self, table=f"{table}.")

    def __contains__(self, key: str) -> bool:
        return self.table + key in self.texts

    def template(self, key: str) -> str:
        """A text as it stands, ``{name}`` in it not filled in: for scripts that fill it in themselves.

        Raises:
            LookupError: no such text.
        """
        try:
            return self.texts[self.table + key]
        except KeyError:
            raise LookupError(
                f"expected a key of seqviz/texts/{self.code}.toml, got {self.table + key!r}; "
                "add it to the texts of every language"
            ) from None

    def say(self, key: str, **values: Any) -> str:
        """A text with ``{name}`` filled in from `values`; values that it does not name are left out.

        Not escaped for markup.

        Raises:
            LookupError: no such text, or no value for a name in it.
        """
        text = self.template(key)
        try:
            return text.format(**values)
        except KeyError as error:
            raise LookupError(
                f"expected a value of {error.args[0]} for the text {self.table + key!r}, got "
                f"{', '.join(values) or 'none'}"
            ) from None

    def percent(self, share: float) -> str:
        """0.934 → "93 %", in Chinese "93%"; just below 1 stays below 100."""
        shown = f"{100 * share:.0f}"
        if shown == "100" and share < 1:
            shown = f"{math.floor(1000 * share) / 10:.1f}"
        return self.texts["language.percent"].format(number=shown)

    def number(self, number: float) -> str:
        """A large number, short: 20,000,000 → "20.0 M", in Chinese ten thousands and hundred millions."""
        units = _UNITS[self.code].items()
        key, unit, digits = next((k, unit, d) for k, (least, unit, d) in units if number >= least)
        return self.texts[key].format(number=f"{number / unit:.{digits}f}")

    def join(self, parts: Iterable[str], between: str = "sentences") -> str:
        """Put parts together: sentences by a space, in Chinese by nothing.

        Args:
            parts: in their order.
            between: "sentences", "list", "names" or "clauses".
        """
        return self.texts[f"language.between_{between}"].join(parts)


@lru_cache(maxsize=len(LANGUAGES))
def _read(code: str) -> Language:
    with (_FOLDER / f"{code}.toml").open("rb") as file:
        return Language(code, dict(_flat(tomllib.load(file))))


def _flat(table: Mapping[str, Any], name: str = "") -> Iterator[tuple[str, str]]:
    """Texts of a table and of the tables in it, by their full keys."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}{key}.")
        else:
            yield name + key, value
