"""Write an artificial English–German corpus, in the form of the two files of a parallel archive.

    python tests/write_corpus.py small.en small.de

2,000 different sentences from a grammar of a few rules, in an order that tells little stories: enough to see a
tiny model learn on a processor in a minute, and nobody's text.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

WHO = [
    ("the farmer", "der Bauer"),
    ("the teacher", "die Lehrerin"),
    ("my brother", "mein Bruder"),
    ("our neighbour", "unser Nachbar"),
    ("the old captain", "der alte Kapitän"),
    ("a small child", "ein kleines Kind"),
    ("the painter", "die Malerin"),
    ("nobody", "niemand"),
    ("her doctor", "ihr Arzt"),
    ("the young baker", "der junge Bäcker"),
]
DOES = [
    ("sees", "sieht"),
    ("buys", "kauft"),
    ("paints", "malt"),
    ("forgets", "vergisst"),
    ("finds", "findet"),
    ("sells", "verkauft"),
    ("describes", "beschreibt"),
    ("looks for", "sucht"),
]
WHAT = [
    ("the red house", "das rote Haus"),
    ("a letter", "einen Brief"),
    ("the bridge", "die Brücke"),
    ("an apple", "einen Apfel"),
    ("the broken window", "das kaputte Fenster"),
    ("two books", "zwei Bücher"),
    ("the garden", "den Garten"),
    ("a large map", "eine große Karte"),
    ("the green boat", "das grüne Boot"),
    ("this picture", "dieses Bild"),
]
WHEN = [
    ("", ""),
    ("today", "heute"),
    ("in the morning", "am Morgen"),
    ("before dinner", "vor dem Abendessen"),
    ("every week", "jede Woche"),
]


def pairs(number: int = 2_000, seed: int = 1) -> list[tuple[str, str]]:
    """`number` different sentence pairs (at most 4,000), English and German."""
    every = [
        (who, does, what, when) for who in WHO for does in DOES for what in WHAT for when in WHEN
    ]
    chosen = random.Random(seed).sample(every, number)
    return [
        tuple(
            " ".join(part[side] for part in parts if part[side]).capitalize().rstrip() + "."
            if side == 0
            else _german(parts)
            for side in (0, 1)
        )  # type: ignore[misc]
        for parts in chosen
    ]


def _german(parts: tuple[tuple[str, str], ...]) -> str:
    """The time stands before the object."""
    who, does, what, when = (part[1] for part in parts)
    text = " ".join(part for part in (who, does, when, what) if part)
    return text[0].upper() + text[1:] + "."


if __name__ == "__main__":
    english, german = zip(*pairs(), strict=True)
    for path, side in zip(sys.argv[1:3], (english, german), strict=True):
        Path(path).write_text("\n".join(side) + "\n", encoding="utf-8")
