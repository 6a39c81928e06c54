"""The figures of `seqviz.drawing.figures`: data in, matplotlib `Figure` out.

figure = seqviz.plotting.attention(translation.attention("cross").words())
seqviz.plotting.save(figure, "attention.svg")
"""

from seqviz.drawing.figures import (
    attention,
    attention_side_by_side,
    inline_svg,
    lab,
    length_curve,
    length_curves,
    loss_curves,
    save,
    share_card,
    vector,
    where_it_breaks,
)

__all__ = [
    "attention",
    "attention_side_by_side",
    "inline_svg",
    "lab",
    "length_curve",
    "length_curves",
    "loss_curves",
    "save",
    "share_card",
    "vector",
    "where_it_breaks",
]
