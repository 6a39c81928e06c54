"""What a recurrent decoder keeps between two steps of decoding.

Shapes: `B` batch (times beams), `L` layers, `W` width, `S` source length, `A` attention width.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass
class RecurrentCache:
    """Recurrent state, batch first, with what is the same at every step of one source.

    Its size does not grow with the target: that is the bargain a recurrent model offers.

    Attributes:
        hidden: state of every decoder layer, (B, L, W).
        cell: LSTM cell of every layer, (B, L, W), or None for a tanh RNN.
        keys: projected memory of additive attention, (B, S, A), or None.
        length: decoder steps taken so far.
    """

    hidden: Tensor
    cell: Tensor | None
    keys: Tensor | None
    length: int = 0

    is_compileable = False

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Decoder steps taken so far."""
        return self.length

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep the rows `beam_idx`, in that order: the beams that beam search goes on with."""
        self.hidden = self.hidden.index_select(0, beam_idx)
        if self.cell is not None:
            self.cell = self.cell.index_select(0, beam_idx)
        if self.keys is not None:
            self.keys = self.keys.index_select(0, beam_idx)
