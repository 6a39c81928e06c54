"""The table of likely translations: what it answers, and its file."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from seqviz.coverage.stems import IRREGULAR, english_stem, french_stem, french_words
from seqviz.shipped import models_folder

SCHEMA = 1


class LexiconError(ValueError):
    """A lexicon cannot be used; the message says what was expected, what came, what to do next."""


class Lexicon:
    """Likely translations of English words, and likely meanings of French ones."""

    def __init__(self, translations: dict[str, str], meanings: dict[str, str]) -> None:
        """Hold two tables, both best first and separated by spaces.

        Args:
            translations: French stems by English stem.
            meanings: English words by French stem.
        """
        self._translations = translations
        self._meanings = meanings

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> Lexicon:
        """Read a table; None reads the shipped one, once.

        Raises:
            LexiconError: no such file, a damaged one, or one of another schema.
        """
        return _shipped() if path is None else _read(Path(path))

    def translations(self, english: str) -> tuple[str, ...]:
        """Likely French stems of an English word, best first; empty for what the table does not know."""
        base = IRREGULAR.get(english.lower())
        return tuple(dict.fromkeys((*self._row(english), *(self._row(base) if base else ()))))

    def meanings(self, french: str) -> tuple[str, ...]:
        """Likely English words for a French word, best first, three at most; empty if unknown.

        Of a word with an elision (*l'école*) it is the last part's meaning.
        """
        for word in reversed(french_words(french)):
            if row := self._meanings.get(french_stem(word)):
                return tuple(row.split(" "))
        return ()

    def _row(self, english: str) -> list[str]:
        row = self._translations.get(english_stem(english))
        return row.split(" ") if row else []


@cache
def _shipped() -> Lexicon:
    return _read(models_folder() / "lexicon.json")


def _read(path: Path) -> Lexicon:
    if not path.is_file():
        raise LexiconError(
            f"expected a lexicon at {path}, found none; check the path, or make one with 'seqviz lexicon'"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LexiconError(
            f"{path}: expected a lexicon in JSON, it cannot be read ({error}); restore the file or make "
            "it anew with 'seqviz lexicon'"
        ) from error
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise LexiconError(
            f"{path}: expected a lexicon of schema {SCHEMA}, got {schema!r}; make it anew with "
            "'seqviz lexicon'"
        )
    tables: list[dict[str, str]] = []
    for name in ("translations", "meanings"):
        table = content.get(name)
        if not isinstance(table, dict) or not all(isinstance(row, str) for row in table.values()):
            raise LexiconError(
                f"{path}: expected translations and meanings, words by word; the file is damaged, "
                "restore it or make it anew with 'seqviz lexicon'"
            )
        tables.append(table)
    return Lexicon(*tables)


def save(content: dict[str, Any], path: str | os.PathLike[str], command: str) -> None:
    """Write what `estimate` returned, one entry a line, aside and then renamed."""
    from seqviz.files import write_text

    tables = ("translations", "meanings")
    head = {k: v for k, v in content.items() if k not in tables}
    head = {"schema": head.pop("schema"), "command": command, **head}
    lines = [json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}")]
    for name in tables:
        rows = (
            json.dumps(key, ensure_ascii=False) + ": " + json.dumps(row, ensure_ascii=False)
            for key, row in content[name].items()
        )
        lines.append(f',\n "{name}": {{\n' + ",\n".join(rows) + "\n }")
    write_text(path, "".join(lines) + "\n}\n")
