"""Small models and the loop that teaches them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from seqviz.lab import readers, settings

SIZES: dict[str, Any] = {
    "num_symbols": 9,
    "num_answers": 4,
    "width": 8,
    "num_heads": 2,
    "num_layers": 2,
}


def reader(kind: str, read: str = "all", seed: int = 1, **changed: Any) -> Any:
    return readers.build_reader(kind, read=read, seed=seed, **{**SIZES, **changed})


# ---------------------------------------------------------------------------------------------
# Models


@pytest.mark.parametrize("kind", settings.KINDS)
def test_no_position_sees_a_later_one(kind: str) -> None:
    model = reader(kind).eval()
    symbols = torch.randint(9, (3, 6), generator=readers.generator(1))
    changed = symbols.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 9
    before, after = model(symbols), model(changed)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


@pytest.mark.parametrize("kind", settings.KINDS)
def test_reading_the_last_position_alone_gives_what_reading_all_gives_there(kind: str) -> None:
    symbols = torch.randint(9, (3, 6), generator=readers.generator(2))
    whole, last = reader(kind)(symbols), reader(kind, "last")(symbols)
    assert whole.shape == (3, 6, 4) and last.shape == (3, 1, 4)
    torch.testing.assert_close(whole[:, -1:], last)


def test_attention_is_that_of_the_paper_and_the_library() -> None:
    """nn.TransformerEncoderLayer is another implementation of the block, with its own weight names."""
    block = readers.AttentionBlock(8, 2)
    other = nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True)
    names = {
        "attention": "self_attn", "widen": "linear1", "narrow": "linear2", "first_norm": "norm1",
        "second_norm": "norm2",
    }  # fmt: skip
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.normal_(std=0.5)
        for own, name in names.items():
            getattr(other, name).load_state_dict(getattr(block, own).state_dict())
    states = torch.randn(2, 5, 8)
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
    torch.testing.assert_close(block(states, states, hidden), other(states, src_mask=hidden))


def test_positions_are_sines_and_cosines() -> None:
    found = readers.sinusoids(50, 6)
    assert found.shape == (50, 6)
    for position, number in ((0, 0), (7, 1), (49, 2)):
        angle = position / 10_000 ** (2 * number / 6)
        assert found[position, 2 * number].item() == pytest.approx(math.sin(angle), abs=1e-5)
        assert found[position, 2 * number + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


def test_symbols_of_one_position_are_summed() -> None:
    embed = readers.Embedding(5, 3)
    found = embed(torch.tensor([[[1, 4], [2, 2]]]))
    torch.testing.assert_close(found[0, 0], embed.weight[1] + embed.weight[4])
    torch.testing.assert_close(found[0, 1], 2 * embed.weight[2])


@pytest.mark.parametrize("num_layers", [1, 2])
def test_all_kinds_are_about_equally_large(num_layers: int) -> None:
    sizes = {
        kind: readers.num_parameters(reader(kind, width=64, num_layers=num_layers))
        for kind in settings.KINDS
    }
    assert max(sizes.values()) / min(sizes.values()) < 1.05, sizes
    assert readers.state_width("lstm", 64, num_layers) == 64
    if num_layers == 1:  # h² + 64 h + 2 h = 4 (64² + 64² + 2 · 64) = 33,280 → h = 152.4
        assert readers.state_width("rnn", 64, 1) == 152


@pytest.mark.parametrize(("kind", "bias"), [("lstm", 1.0), ("lstm-forget-3", 3.0)])
def test_forget_gates_start_with_their_bias(kind: str, bias: float) -> None:
    for layer in reader(kind).layers:
        assert layer.bias_ih_l0[8:16].tolist() == [bias] * 8
        assert layer.bias_hh_l0.abs().max() == 0


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="one of rnn, lstm, lstm-forget-3, attention, got 'gru'"):
        reader("gru")


# ---------------------------------------------------------------------------------------------
# Training


def test_the_learning_rate_rises_and_falls_to_zero(monkeypatch) -> None:
    rates = []
    real = torch.optim.Adam.step
    monkeypatch.setattr(
        torch.optim.Adam,
        "step",
        lambda self: (rates.append(self.param_groups[0]["lr"]), real(self))[1],
    )
    model = nn.Sequential(nn.Linear(2, 3), nn.Unflatten(0, (-1, 1)))
    batch = readers.Batch((torch.randn(4, 2),), torch.zeros(4, 1, dtype=torch.long))
    seen = []
    readers.train(model, lambda: batch, 40, 0.1, seen.append, 15)
    assert seen == [15, 30]
    # 40 · 5 % = 2 steps up, then 38 equal steps down, the last of which is not yet 0.
    assert rates[:3] == pytest.approx([0.05, 0.1, 0.1])
    assert rates[3] == pytest.approx(0.1 * 37 / 38) and rates[-1] == pytest.approx(0.1 / 38)


def test_gradients_are_clipped() -> None:
    model = nn.Sequential(nn.Linear(1, 2), nn.Unflatten(0, (-1, 1)))
    batch = readers.Batch((torch.full((1, 1), 1e6),), torch.zeros(1, 1, dtype=torch.long))
    norms = []
    readers.train(
        model,
        lambda: batch,
        1,
        1e-9,
        lambda step: norms.append(
            torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
        ),
        1,
    )
    assert norms[0] <= readers.CLIP + 1e-4


def test_accuracy_counts_what_is_asked_for() -> None:
    class Says(nn.Module):
        def forward(self, answers: torch.Tensor) -> torch.Tensor:
            return nn.functional.one_hot(answers, 3).float()

    answers = torch.tensor([[0, 1, 2], [2, 1, 0]])
    targets = torch.tensor([[0, 0, readers.IGNORED], [2, 1, 1]])
    assert readers.accuracy(Says(), readers.Batch((answers,), targets)) == pytest.approx(3 / 5)


def test_random_numbers_belong_to_their_key() -> None:
    def drawn(*key: int) -> list[int]:
        return torch.randint(1000, (8,), generator=readers.generator(*key)).tolist()

    assert drawn(1, 2) == drawn(1, 2)
    keys = [(1, 2), (2, 1), (1,), (1, 3), (12,)]
    assert len({tuple(drawn(*key)) for key in keys}) == len(keys)


def test_one_thread_is_given_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(RuntimeError), readers.one_thread():
            assert torch.get_num_threads() == 1
            assert torch.tensor(1e-39) * 1 == 0  # below the smallest normal number
            raise RuntimeError
        assert torch.get_num_threads() == 2
        assert torch.tensor(1e-39) * 1 != 0
    finally:
        torch.set_num_threads(before)
