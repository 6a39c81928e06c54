"""Data in, matplotlib `Figure` out: attention maps, quality by length, losses, the lab's experiments.

    figure = figures.attention(translation.attention("cross").words())
    figures.save(figure, "attention.svg")

No pyplot, no change of global settings, no file but in `save`, no model. Every figure is new and
belongs to the caller alone, so that many threads can draw at once. Style sheets and settings of the
caller change nothing in it.
"""

from __future__ import annotations

from seqviz.drawing.figures import lab
from seqviz.drawing.figures.base import inline_svg, save
from seqviz.drawing.figures.bits import bits
from seqviz.drawing.figures.card import share_card
from seqviz.drawing.figures.chains import chains
from seqviz.drawing.figures.kept import circles, kept
from seqviz.drawing.figures.maps import attention, attention_side_by_side, vector
from seqviz.drawing.figures.quality import length_curve, length_curves, loss_curves, where_it_breaks

__all__ = [
    "attention",
    "attention_side_by_side",
    "bits",
    "chains",
    "circles",
    "inline_svg",
    "kept",
    "lab",
    "length_curve",
    "length_curves",
    "loss_curves",
    "save",
    "share_card",
    "vector",
    "where_it_breaks",
]
