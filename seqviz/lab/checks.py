"""Checks that several experiments make of their settings; every error says what was expected and what came."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def check_whole(settings: Any, **ranges: tuple[int, int]) -> None:
    """Raise a ValueError if a field is no whole number, or out of its range."""
    for name, (low, high) in ranges.items():
        value = getattr(settings, name)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError(
                f"expected {name} to be a whole number from {low} to {high}, got {value!r}"
            )


def check_rising(settings: Any, name: str, low: int, high: int) -> None:
    """Raise a ValueError if a field is not a tuple of rising whole numbers within a range."""
    values = getattr(settings, name)
    whole = all(isinstance(v, int) and not isinstance(v, bool) for v in values)
    rising = bool(values) and whole and list(values) == sorted(set(values))
    if not rising or values[0] < low or values[-1] > high:
        raise ValueError(
            f"expected {name} to be rising whole numbers from {low} to {high}, got {values!r}; "
            f"try {low}, {low + 1}"
        )


def check_heads(settings: Any) -> None:
    """Raise a ValueError if ``width`` is odd, which sinusoids cannot be, or not divisible by ``num_heads``."""
    width, num_heads = settings.width, settings.num_heads
    if width % 2 or width % num_heads:
        step = math.lcm(2, num_heads)
        raise ValueError(
            f"expected an even width divisible by num_heads, got {width} and {num_heads}; try "
            f"{max(step, width // step * step)}"
        )


def check_rates(rates: Sequence[float]) -> None:
    """Raise a ValueError if there is no learning rate, or one that is none."""
    if not rates or not all(math.isfinite(rate) and 0 < rate < 1 for rate in rates):
        raise ValueError(
            f"expected learning rates above 0 and below 1, got {rates!r}; try 0.001, 0.003"
        )
    if len(set(rates)) < len(rates):
        raise ValueError(f"expected every learning rate once, got {rates!r}")


def check_language(language: str, sentences: Mapping[str, Any]) -> None:
    """Raise a ValueError if there are no sentences in a language."""
    if language not in sentences:
        raise ValueError(f"expected language to be one of {', '.join(sentences)}, got {language!r}")
