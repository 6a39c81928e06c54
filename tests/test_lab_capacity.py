"""Copying through a bottleneck: one difference between the models, free writing, honest numbers."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import tiny_lab
import torch

from seqviz import plotting
from seqviz.lab import capacity, readers

SMALL = tiny_lab.CAPACITY


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return capacity.EXPERIMENT.measure(SMALL)


# ---------------------------------------------------------------------------------------------
# Model and task


def test_source_and_target_are_the_same_and_the_decoder_reads_one_step_late() -> None:
    batch = capacity.draw(SMALL, 50, 4, readers.generator(1))
    source, previous = batch.inputs
    assert torch.equal(source, batch.targets)
    for row, late in zip(source.tolist(), previous.tolist()):
        assert late == [5, *row[:-1]]
        assert all(0 <= symbol < 5 for symbol in row)
    assert set(source.flatten().tolist()) == set(range(5))


@pytest.mark.parametrize("context", capacity.CONTEXTS)
def test_writing_step_by_step_is_the_whole_target_at_once(context: str) -> None:
    model = capacity.build(SMALL, context, 6, 3).eval()
    source = torch.randint(5, (7, 4), generator=readers.generator(2))
    written = model.copy(source)
    previous = torch.cat([torch.full((7, 1), 5), written[:, :-1]], dim=1)
    assert torch.equal(model(source, previous).argmax(dim=-1), written)


def test_the_fixed_vector_is_all_that_the_decoder_knows() -> None:
    """The same end of the encoder gives the same output, whatever the memory before it; with attention not."""
    for context, same in (("lstm", True), ("lstm-attention", False)):
        model = capacity.build(SMALL, context, 6, 3).eval()
        memory, state = model.encode(torch.randint(5, (2, 4), generator=readers.generator(5)))
        changed = memory.clone()
        changed[:, :-1] += 1
        previous = torch.full((2, 1), 5)
        before, after = (
            model.decode(previous, memory, state)[0],
            model.decode(previous, changed, state)[0],
        )
        assert torch.allclose(before, after) == same


def test_attention_is_the_only_difference() -> None:
    fixed = dict(capacity.build(SMALL, "lstm", 6, 3).named_parameters())
    attended = dict(capacity.build(SMALL, "lstm-attention", 6, 3).named_parameters())
    extra = {name for name in attended if name not in fixed}
    assert extra and all(name.startswith("attention.") for name in extra)
    for name, weights in fixed.items():
        assert torch.equal(weights, attended[name]), name


def test_the_fixed_decoder_is_the_equation() -> None:
    """Step by step with nn.LSTMCell, the other implementation of the layer."""
    model = capacity.build(SMALL, "lstm", 6, 3)
    cells = []
    for layer in (model.encoder, model.decoder):
        cell = torch.nn.LSTMCell(32, 6)
        cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
        cells.append(cell)
    source, previous = torch.tensor([[1, 4, 2]]), torch.tensor([[5, 1, 4]])
    state = (torch.zeros(1, 6), torch.zeros(1, 6))
    for symbol in source[0]:
        state = cells[0](model.embed.weight[symbol][None], state)
    vector, found = state[0], []
    for symbol in previous[0]:
        state = cells[1](model.embed.weight[symbol][None], state)
        both = torch.cat([state[0], vector], dim=1)
        found.append(model.answer(torch.tanh(both @ model.combine.weight.T)))
    torch.testing.assert_close(model(source, previous), torch.stack(found, dim=1))


def test_attention_copies_what_the_small_vector_cannot() -> None:
    """A state of width 16, sequences up to 10: with attention it is learned within seconds."""
    settings = capacity.Settings(max_length=10, steps=700, num_test=128)
    with readers.one_thread():
        found = {
            context: capacity.copied(
                settings, capacity.run(settings, context, 16, 0.01, 1), 10, 1
            ).mean()
            for context in capacity.CONTEXTS
        }
    assert found["lstm-attention"] > 0.8, found
    assert found["lstm"] < 0.6, found
    with pytest.raises(ValueError, match="one of lstm, lstm-attention, got 'mean'"):
        capacity.Copier("mean", 4, 4)


def test_copied_is_by_position() -> None:
    class Parrot(capacity.Copier):
        """Writes every second symbol right."""

        def copy(self, source: torch.Tensor) -> torch.Tensor:
            wrong = source.clone()
            wrong[:, 1::2] = (wrong[:, 1::2] + 1) % 5
            return wrong

    found = capacity.copied(SMALL, Parrot("lstm", 5, 4), 4, 1)
    assert found.tolist() == [1, 0, 1, 0]


# ---------------------------------------------------------------------------------------------
# Numbers


@pytest.mark.parametrize(
    ("accuracies", "reached", "below"),
    [
        ((1.0, 0.95, 0.9, 0.8), 3, 4),
        ((1.0, 0.8, 0.95), 1, 2),
        ((0.5, 1.0), 0, 1),
        ((1.0, 0.9), 2, None),
    ],
)
def test_the_longest_length_has_no_gap_below_it(
    accuracies: tuple[float, ...], reached: int, below: int | None
) -> None:
    assert capacity.longest(accuracies) == reached
    assert capacity.first_below(accuracies) == below


def test_the_results_have_every_number(results: dict[str, Any], monkeypatch) -> None:
    for context in capacity.CONTEXTS:
        assert list(results[context]) == ["4", "6"]
        for found in results[context].values():
            accuracy = found["accuracy"]
            assert len(accuracy["seeds"]) == 2 and len(accuracy["mean"]) == 4
            assert [len(row) for row in found["by_position"]] == [1, 2, 3, 4]
            for mean, positions in zip(accuracy["mean"], found["by_position"]):
                assert mean == pytest.approx(np.mean(positions))
            assert found["longest"]["seeds"] == [capacity.longest(r) for r in accuracy["seeds"]]
            assert found["bits"] == pytest.approx(
                found["longest"]["median"] * math.log2(5), rel=1e-5
            )
            first = capacity.first_below(accuracy["mean"])
            assert found["fails"] == (
                first and {"length": first, "by_position": found["by_position"][first - 1]}
            )
            assert found["rate"] in (0.003, 0.01)


def test_where_it_fails_is_read_from_the_mean_of_the_seeds(monkeypatch) -> None:
    """Seed 1 is right everywhere up to 3, seed 2 only at the first position of what is longer than 2."""
    known = {
        1: {1: [1.0], 2: [1.0, 1.0], 3: [1.0, 1.0, 1.0], 4: [1.0, 1.0, 0.0, 0.0]},
        2: {1: [1.0], 2: [1.0, 0.9], 3: [1.0, 0.5, 0.0], 4: [1.0, 0.0, 0.0, 0.0]},
    }
    scores = {0.003: 0.2, 0.01: 0.1}
    monkeypatch.setattr(capacity, "run", lambda s, c, w, rate, seed: rate)
    monkeypatch.setattr(
        capacity, "copied",
        lambda s, model, length, seed, stream=readers.TEST: np.array(
            known[seed][length] if stream == readers.TEST else [scores[model]]
        ),
    )  # fmt: skip
    found = capacity._measure(SMALL, "lstm", 4, lambda line: None)
    assert found["rate"] == 0.003
    assert found["accuracy"]["mean"] == pytest.approx([1, 0.975, 0.75, 0.375])
    assert found["longest"] == {"seeds": [3, 2], "median": 2.5}
    assert found["bits"] == pytest.approx(2.5 * math.log2(5), rel=1e-5)
    assert found["fails"] == {"length": 3, "by_position": [1.0, 0.75, 0.5]}


def test_the_sentence_is_made_of_the_numbers(results: dict[str, Any]) -> None:
    changed = json.loads(json.dumps(results))
    for context, reached in (("lstm", (1, 3)), ("lstm-attention", (2.5, 4))):
        for found, number in zip(changed[context].values(), reached):
            found["longest"]["median"] = number
    changed["lstm"]["6"] |= {
        "bits": 12.5,
        "fails": {"length": 4, "by_position": [0.9, 0.8, 0.7, 0.3]},
    }
    said = capacity.sentence(changed, "en")
    assert "4: 1 through the fixed vector, 2.5 with attention" in said
    assert "6: 3 through the fixed vector, all 4 with attention" in said
    assert "At 4 symbols, the state of width 6 still gets 90 % of the first third" in said
    assert "and 30 % of the last" in said and "12.5 bits copied at width 6" in said
    assert "12 batches of 4 sequences, 2 seeds" in said
    chinese = capacity.sentence(changed, "zh")
    assert "宽度 6：固定向量 3 个，加注意力全部 4 个" in chinese and "12.5 比特" in chinese


# ---------------------------------------------------------------------------------------------
# Figure


def test_the_figure_does_without_a_failure(results: dict[str, Any]) -> None:
    changed = json.loads(json.dumps(results))
    for found in changed["lstm"].values():
        found["fails"] = None
    assert len(plotting.lab.capacity(changed).axes) == 2
    assert len(plotting.lab.capacity(results).axes) == 3
