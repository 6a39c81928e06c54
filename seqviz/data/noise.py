"""What visitors type, as training data: case and stops, other numbers and names, unknown characters.

`noised` rewrites the English–French pairs of a corpus. What is done to a pair depends on the seed and
on the pair's place alone, so that any part of a corpus can be made again without the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from math import isnan, nan
from random import Random

from seqviz.data import names as person_names
from seqviz.data import numbers
from seqviz.data.names import NameList

UNKNOWN_CHARACTERS = (
    "你好世界我们他的是在有不了人大中国上个来到时要就出会可学对生能子那得于着下自之年过发后作里"
    "日本語東京私今何言食飲見聞行花山川田水火木金土한국어사랑물불밤"
    "אבגדהמןשתابتثجحخدذرزسشصضطظعغфжцчшщыэюяδθλξπσφψωあいうえおかきくけこアイウエオ"
    "🦙😀😂😊😍😎😢😭😡👍👎👏🙏💪🎉🎂🎁🎵🎶🔥💡💻📱📷📚🚀🚗🚲🏠🌍🌈🌞🌙🌊🌲🌻🌹🍎🍕🍺🐱🐶🐟🐦"
    "℃℉№™©®°µ±×÷≈≠≤≥∞√∑∫∂∆∈∀∃→←↑↓⇒★☆♥♦♣♠♪♫☀☂☎✓✗✉²³½¼¾¥₹₽§¶†‡•"
)
"""Hand-made: each stands for all characters that the shipped tokenizer has no piece for."""

NOISE_VERSION = 2
"""Raise it when the same settings would rewrite pairs otherwise: encoded corpora are then made anew."""

RUN = 8
"""Consecutive pairs of one style, so that sentences joined in training mostly have one."""

_FINAL_STOP = re.compile(r" ?[.!?]+$")
_BEFORE_STOP = re.compile(r"[\s.!?…;:,\"')\]]*$")
_DIGIT = re.compile("[0-9]")


@dataclass(frozen=True)
class Noise:
    """Shares of pairs, each from 0 to 1, that are rewritten in one way.

    Attributes:
        lower_case: sources in lower case; the target stays. Half of them also lose their stop, as far
            as both shares allow.
        no_stop: sources without their final stop; the target stays.
        capitals: sources in capitals, never also in lower case; the target stays.
        numbers: of the pairs that hold a number on both sides, how many get other digits.
        names: of the pairs that hold a person's name on both sides, how many get another one.
        unknown: pairs that get the same unknown character on both sides.
    """

    lower_case: float = 0.1
    no_stop: float = 0.1
    capitals: float = 0.02
    numbers: float = 0.5
    names: float = 1.0
    unknown: float = 0.01

    def __post_init__(self) -> None:
        for share in fields(self):
            value = getattr(self, share.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ValueError(
                    f"noise: expected {share.name} to be a share from 0 to 1, got {value!r}; "
                    "0.1 is a tenth of the pairs"
                )
        if self.lower_case + self.capitals > 1:
            raise ValueError(
                "noise: expected lower_case and capitals to be at most 1 together, got "
                f"{self.lower_case} and {self.capitals}; lower one of them"
            )

    @classmethod
    def parse(cls, text: str) -> Noise | None:
        """Shares written as ``lower_case=0.1,numbers=0.5`` (the others are 0), "default", or "off"."""
        if text == "off":
            return None
        if text == "default":
            return cls()
        known = {share.name: 0.0 for share in fields(cls)}
        given: dict[str, float] = {}
        for item in text.split(","):
            name, _, value = (part.strip() for part in item.partition("="))
            try:
                given[name] = float(value)
            except ValueError:
                given[name] = nan
            if name not in known or isnan(given[name]):
                raise ValueError(
                    f"noise: expected off, default, or NAME=SHARE of {', '.join(known)}, got {item!r}"
                )
        return cls(**{**known, **given})


class Noiser:
    """Rewrites pairs by the shares of a `Noise`.

    Args:
        noise: the shares.
        seen_lower: see `words_seen_in_lower_case`; such a word is taken for no name.
        names: what persons may be called; the shipped list if None.
        unknown_characters: those that pairs get; each must be unknown to the tokenizer.
    Raises:
        ValueError: pairs shall get unknown characters or names, and there are none.
    """

    def __init__(
        self,
        noise: Noise,
        seen_lower: frozenset[str],
        names: NameList | None = None,
        unknown_characters: Sequence[str] = UNKNOWN_CHARACTERS,
    ) -> None:
        if noise.unknown and not unknown_characters:
            raise ValueError(
                "noise: expected at least one unknown character, got none; name some or set unknown to 0"
            )
        self.noise = noise
        self.seen_lower = seen_lower
        self.names = names or NameList.shipped()
        self.unknown_characters = unknown_characters

    def __call__(
        self, source: str, target: str, random: Random, style_random: Random
    ) -> tuple[str, str]:
        """The pair as it is trained on.

        Args:
            random: of this pair alone.
            style_random: gives the same first number for all pairs that share a style.
        """
        noise = self.noise
        with_names, with_numbers = random.random() < noise.names, random.random() < noise.numbers
        character = None
        if random.random() < noise.unknown:
            character = random.choice(self.unknown_characters)
        instead = character if random.random() < 0.5 else None  # of a name or number
        if with_names:
            source, target = person_names.swapped(
                source, target, random, self.names, self.seen_lower, unknown=instead
            )
            if instead and instead in source:
                instead = None
        if noise.numbers and _DIGIT.search(source) and _DIGIT.search(target):
            source, target = numbers.mended(source, target)
            if with_numbers:
                source, target = numbers.swapped(source, target, random, unknown=instead)
        if character and character not in source:
            source, target = _with_last_word(source, character), _with_last_word(target, character)
        return self._styled(source, style_random.random()), target

    def _styled(self, source: str, drawn: float) -> str:
        """The source in a style chosen by a number from 0 to 1."""
        noise = self.noise
        both = min(noise.lower_case, noise.no_stop) / 2
        if (drawn - (noise.lower_case - both)) % 1 < noise.no_stop:
            source = _FINAL_STOP.sub("", source) or source
        if drawn < noise.lower_case:
            return source.lower()
        if drawn >= 1 - noise.capitals:
            return source.upper()
        return source


def noised(
    pairs: Iterable[tuple[str, str]],
    noise: Noise,
    seen_lower: frozenset[str],
    seed: Sequence[int],
    *,
    first: int = 0,
    names: NameList | None = None,
) -> Iterator[tuple[str, str]]:
    """The pairs of a corpus, rewritten; the same whether read at once or in parts.

    Args:
        pairs: sources and targets in the corpus's order.
        seed: numbers that tell this reading of the corpus from others (seed, corpus, variant, …).
        first: place of the first of `pairs` in the corpus.
    """
    noiser = Noiser(noise, seen_lower, names)
    start = int.from_bytes(blake2b(repr([int(s) for s in seed]).encode(), digest_size=16).digest())
    random, style_random = Random(), Random()
    for place, (source, target) in enumerate(pairs, start=first):
        random.seed((start << 64) + 2 * place)
        style_random.seed((start << 64) + 2 * (place // RUN) + 1)
        yield noiser(source, target, random, style_random)


def words_seen_in_lower_case(pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The words that begin with a small letter somewhere in the corpus, on either side.

    Such a word may be no name: Rose is one, but so is a flower.
    """
    seen: set[str] = set()
    for source, target in pairs:
        seen.update(source.split())
        seen.update(target.split())
    parts = (part for word in seen for part in re.findall(r"[^\W\d_]+", word))
    return frozenset(part for part in parts if part[0].islower())


def _with_last_word(text: str, word: str) -> str:
    """`text` with one word more, before its final stop."""
    end = _BEFORE_STOP.search(text)
    assert end
    return f"{text[: end.start()]} {word}{text[end.start() :]}".lstrip()
