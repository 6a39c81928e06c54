"""Saliency against finite differences, head statistics and choice by hand, the shipped report."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import seqviz
from seqviz import MODEL_NAMES
from seqviz.looking import alignment, alignment_report, faithfulness
from seqviz.looking.saliency import MAX_BATCH_TOKENS, UNITS, Saliency, saliency, saliency_values
from seqviz.maps import READINGS, AttentionMap
from seqviz.measuring import artefacts
from seqviz.pieces import Pieces
from seqviz.report import Report, read_training
from seqviz.translating.result import Translation
from seqviz.translating.translator import Translator

SOURCE = [5, 17, 40, 17, 101, 260, 9]
TARGET = [17, 33, 5, 90, 101, 17, 200, 41, 12, 77, 0]
"""Shares ids with `SOURCE`: the one embedding table must not mix the two uses."""


class ScaledTable(nn.Module):
    """An embedding table whose vectors are multiplied by a factor for each position."""

    def __init__(self, table: nn.Embedding, factors: torch.Tensor) -> None:
        super().__init__()
        self.table, self.factors = table, factors

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table(ids) * self.factors[None, :, None]


@torch.no_grad()
def log_probs(model: Any, source: list[int], target: list[int]) -> np.ndarray:
    """Log-probabilities (T,) by the whole model's `forward`; `source` with its end token."""
    logits = model(
        input_ids=torch.tensor([source]),
        attention_mask=torch.ones(1, len(source), dtype=torch.long),
        decoder_input_ids=torch.tensor([[model.config.decoder_start_token_id, *target[:-1]]]),
        use_cache=False,
    ).logits[0]
    return logits.log_softmax(-1)[torch.arange(len(target)), torch.tensor(target)].numpy()


def by_differences(model: Any, source: list[int], target: list[int], columns: Any) -> np.ndarray:
    """Central differences (T, columns) in float64, by factors on what the encoder alone looks up."""
    step = 1e-5
    model = copy.deepcopy(model).double()
    table = ScaledTable(model.model.encoder.embed_tokens, torch.ones(len(source)).double())
    model.model.encoder.embed_tokens = table
    found = []
    for s in columns:
        table.factors[s] = 1 + step
        more = log_probs(model, source, target)
        table.factors[s] = 1 - step
        less = log_probs(model, source, target)
        table.factors[s] = 1
        found.append((more - less) / (2 * step))
    return np.stack(found, axis=1)


@pytest.fixture(scope="module")
def tiny(tiny_model: Callable[..., Any], tiny_tokenizer: Any) -> dict[str, Translator]:
    return {
        name: Translator(tiny_model(name).double(), tiny_tokenizer, name=name)
        for name in MODEL_NAMES
    }


@pytest.fixture(scope="module")
def shipped() -> dict[str, Translator]:
    return {name: seqviz.load(name) for name in ("lstm", "lstm-attention", "transformer")}


# -- saliency of models


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_saliency_is_the_derivative_by_each_source_embedding(
    tiny: dict[str, Translator], name: str
) -> None:
    values = saliency_values(tiny[name], SOURCE, TARGET)
    assert values.shape == (len(TARGET), len(SOURCE) + 1)
    expected = by_differences(tiny[name].model, [*SOURCE, 0], TARGET, range(len(SOURCE) + 1))
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_the_decoders_use_of_the_table_is_left_out(tiny: dict[str, Translator], name: str) -> None:
    """The first target token is also a source token: scaling it in the decoder changes what follows."""
    translator, model = tiny[name], copy.deepcopy(tiny[name].model)
    before = log_probs(model, [*SOURCE, 0], TARGET)
    with torch.no_grad():
        model.get_input_embeddings().weight[TARGET[0]] *= 1 + 1e-5
    after = log_probs(model, [*SOURCE, 0], TARGET)
    both = (after - before) / 1e-5
    columns = [s for s, id_ in enumerate(SOURCE) if id_ == TARGET[0]]
    ours = saliency_values(translator, SOURCE, TARGET)[:, columns].sum(axis=1)
    assert np.abs(both - ours).max() > 0.01


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("batch_size", [1, 2, 3, 4, len(TARGET), 100])
def test_the_batch_changes_nothing(tiny: dict[str, Translator], name: str, batch_size: int) -> None:
    translator = tiny[name]
    whole = saliency_values(translator, SOURCE, TARGET)
    parts = saliency_values(translator, SOURCE, TARGET, batch_size=batch_size)
    np.testing.assert_allclose(parts, whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_what_follows_a_token_changes_nothing(tiny: dict[str, Translator], name: str) -> None:
    whole = saliency_values(tiny[name], SOURCE, TARGET)
    begun = saliency_values(tiny[name], SOURCE, TARGET[:3])
    np.testing.assert_allclose(begun, whole[:3], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_the_model_is_left_as_it_was(tiny: dict[str, Translator], name: str) -> None:
    model = tiny[name].model
    trained = [p.requires_grad for p in model.parameters()]
    expected = saliency_values(tiny[name], SOURCE, TARGET)
    with torch.inference_mode():
        inside = saliency_values(tiny[name], SOURCE, TARGET)
        assert torch.is_inference_mode_enabled()
    with torch.no_grad():
        without = saliency_values(tiny[name], SOURCE, TARGET)
        assert not torch.is_grad_enabled()
    np.testing.assert_array_equal(inside, expected)
    np.testing.assert_array_equal(without, expected)
    assert all(p.grad is None for p in model.parameters())
    assert [p.requires_grad for p in model.parameters()] == trained
    assert not model.training


def test_shipped_weights_in_single_precision(shipped: dict[str, Translator]) -> None:
    """The fused kernels of single precision are others than those that the tests above ran."""
    for name, translator in shipped.items():
        translation = translator.translate("The committee has not yet answered these questions.")
        found = saliency(translator, translation)
        assert found.values.shape == (len(found.target_tokens), len(found.source_tokens))
        assert (found.model, found.source_pieces.words) == (name, translation.source_words)
        ids = translator.tokenizer.convert_tokens_to_ids(list(translation.source_tokens))
        columns = [0, 3, len(ids) - 1]
        expected = by_differences(translator.model, ids, list(translation.target_ids), columns)
        np.testing.assert_allclose(found.values[:, columns], expected, rtol=1e-3, atol=1e-4)


def test_a_long_text_is_computed_in_smaller_batches(
    tiny: dict[str, Translator], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    encode = tiny["lstm"].model.model.encoder.forward

    def watch(**kwargs: Any) -> Any:
        sizes.append(kwargs["inputs_embeds"].shape[0])
        return encode(**kwargs)

    monkeypatch.setattr(tiny["lstm"].model.model.encoder, "forward", watch)
    for source, target in ((9, 64), (159, 200)):
        saliency_values(tiny["lstm"], [5] * source, [7] * target)
    assert sizes[0] == 32
    assert sizes[1] * (160 + 200) <= MAX_BATCH_TOKENS


@pytest.mark.parametrize(
    ("source", "target", "options", "error", "message"),
    [
        ([1], [], {}, ValueError, "expected at least one target token, got none"),
        ([1], [300], {}, ValueError, "target_ids from 0 to 299, got 300 at place 0"),
        ([4, -1], [3], {}, ValueError, "source_ids from 0 to 299, got -1 at place 1"),
        (["a"], [3], {}, TypeError, "expected source_ids as whole numbers"),
        ([1], [3], {"batch_size": 0}, ValueError, "batch_size to be a whole number from 1, got 0"),
        ([1], [3], {"batch_size": True}, ValueError, "got True"),
    ],
)
def test_wrong_ids_are_said(
    tiny: dict[str, Translator],
    source: Any,
    target: Any,
    options: Any,
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        saliency_values(tiny["rnn"], source, target, **options)


def test_saliency_wants_one_part_with_tokens(tiny: dict[str, Translator]) -> None:
    part = Translation("rnn", "a", "b")
    with pytest.raises(ValueError, match="translated in 2 parts; use .*parts"):
        saliency(tiny["rnn"], replace(part, parts=(part, part)))
    with pytest.raises(ValueError, match="got an empty one"):
        saliency(tiny["rnn"], tiny["rnn"].translate(" "))


# -- shares and merging


def side(letter: str, numbers: tuple[int, ...]) -> Pieces:
    """Tokens s0, s1, … in words S0, S1, …"""
    words = range(max(numbers, default=-1) + 1)
    return Pieces(
        tuple(f"{letter}{i}" for i in range(len(numbers))),
        tuple(f"{letter.upper()}{i}" for i in words),
        numbers,
    )


def made(values: Any, source_words: tuple[int, ...], target_words: tuple[int, ...]) -> Saliency:
    values = np.array(values, np.float64).reshape(len(target_words), len(source_words))
    return Saliency(
        model="toy",
        values=values,
        source_pieces=side("s", source_words),
        target_pieces=side("t", target_words),
    )


def test_shares_by_hand() -> None:
    """Signs cancel within a word and between the pieces of the target word, before they are dropped."""
    found = made(
        [[2.0, -1.5, -1.0, 0.0], [0.5, 1.0, 0.0, -1.0], [0, 0, 0, 0]], (0, 0, 1, -1), (0, 0, -1)
    )
    words = found.words()
    assert words.values.tolist() == [[2.0, -1.0, -1.0], [0, 0, 0]]
    assert words.source_tokens == ("S0", "S1", "s3")
    assert words.target_tokens == ("T0", "t2")
    shown = found.shares()
    assert shown.kind == "saliency"
    assert shown.weights.tolist() == [[[[0.5, 0.25]]]]
    assert shown.hidden_mass.tolist() == [[[0.25]]]
    whole = found.shares(specials=True)
    assert whole.weights[0, 0].tolist() == [[0.5, 0.25, 0.25], [0, 0, 0]]
    pieces = found.shares("pieces", specials=True).weights[0, 0]
    np.testing.assert_allclose(pieces[0], np.array([2, 1.5, 1, 0]) / 4.5)
    with pytest.raises(ValueError, match="unit to be one of words, pieces; got 'letters'"):
        found.shares("letters")


def test_sizes_of_values_and_tokens_must_agree() -> None:
    with pytest.raises(ValueError, match=r"expected values \(2, 3\) .* got \(3, 2\)"):
        replace(made(np.ones((2, 3)), (0, 1, -1), (0, 1)), values=np.ones((3, 2)))


@st.composite
def sides(draw: st.DrawFn) -> tuple[int, ...]:
    """Word numbers of a side: words of 1 to 3 pieces, special tokens among them."""
    numbers: list[int] = []
    word = 0
    for pieces in draw(st.lists(st.integers(0, 3), min_size=1, max_size=5)):
        numbers += [word] * pieces or [-1]
        word += pieces > 0
    return tuple(numbers)


@given(sides(), sides(), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e-300, 1e300]))
def test_merging_conserves_sums_and_shares_sum_to_one(
    source: tuple[int, ...], target: tuple[int, ...], seed: int, scale: float
) -> None:
    values = np.random.default_rng(seed).normal(size=(len(target), len(source))) * scale
    found = made(values, source, target)
    words = found.words()
    np.testing.assert_allclose(words.values.sum() / scale, values.sum() / scale, atol=1e-9)
    for t, target_word in enumerate(words.target_pieces.word_of_piece):
        for s, source_word in enumerate(words.source_pieces.word_of_piece):
            if target_word >= 0 and source_word >= 0:
                rows = [i for i, w in enumerate(target) if w == target_word]
                columns = [i for i, w in enumerate(source) if w == source_word]
                expected = values[np.ix_(rows, columns)].sum()
                assert words.values[t, s] == pytest.approx(expected, abs=1e-9 * scale)
    for unit in UNITS:
        for specials in (False, True):
            shared = found.shares(unit, specials)
            total = shared.weights.sum(-1) + shared.hidden_mass
            np.testing.assert_allclose(total, np.ones_like(total), atol=1e-9)
            assert (shared.weights >= 0).all()
            numbers = shared.source_pieces.word_of_piece + shared.target_pieces.word_of_piece
            assert specials or -1 not in numbers


# -- statistics of heads


def cross_map(
    weights: Any, source_words: tuple[int, ...], target_words: tuple[int, ...]
) -> AttentionMap:
    weights = np.array(weights, np.float64)
    plain = made(
        np.zeros((len(target_words), len(source_words))), source_words, target_words
    ).shares("pieces", specials=True)
    return replace(plain, kind="cross", weights=weights, hidden_mass=np.zeros(weights.shape[:3]))


def test_head_statistics_by_hand() -> None:
    """Entropies 1, 1.5 and 0 bits; the other head looks at the end token only."""
    map_ = cross_map(
        [[[[0.5, 0.5, 0], [0.25, 0.25, 0.5]], [[0, 0, 1], [0, 0, 1]]]], (0, 1, -1), (0, -1)
    )
    found = alignment.head_statistics(map_)
    np.testing.assert_allclose(found.entropy, [[1.25, 0]])
    np.testing.assert_allclose(found.end_mass, [[0.25, 1]])
    with pytest.raises(ValueError, match="got one with hidden columns"):
        alignment.head_statistics(map_.without_specials())
    with pytest.raises(ValueError, match="at least one row"):
        alignment.head_statistics(cross_map(np.zeros((1, 1, 0, 3)), (0, 1, -1), ()))


def test_statistics_of_each_kind(shipped: dict[str, Translator]) -> None:
    translation = shipped["transformer"].translate("The cat saw the dog.")
    for kind in ("cross", "encoder", "decoder"):
        map_ = translation.attention(kind)
        found = alignment.head_statistics(map_)
        assert found.entropy.shape == found.end_mass.shape == map_.weights.shape[:2]
        assert (found.entropy >= 0).all()
        assert (found.entropy <= np.log2(len(map_.source_tokens)) + 1e-6).all()
        assert ((found.end_mass > 0) & (found.end_mass < 1)).all()


# -- links and their error rate


def test_links_go_from_source_to_target() -> None:
    """Source s0 s1 | s2 | s3 | s4 | end, target t0 | t1 t2 | t3 | end."""
    map_ = cross_map(
        [
            [
                [
                    [0.3, 0.3, 0.4, 0.0, 0.0, 0.0],  # the word s0 s1 has 0.6 in all
                    [0.0, 0.0, 0.3, 0.0, 0.5, 0.2],
                    [0.0, 0.0, 0.1, 0.0, 0.7, 0.2],
                    [0.3, 0.0, 0.1, 0.1, 0.1, 0.4],  # the end token holds more than any word
                    [0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
                ]
            ]
        ],
        (0, 0, 1, 2, 3, -1),
        (0, 1, 1, 2, -1),
    )
    assert alignment.links(map_) == {(0, 0), (3, 1)}
    with pytest.raises(ValueError, match="use it with specials=True"):
        alignment.links(map_.words())
    with pytest.raises(IndexError, match="head 0, the only one"):
        alignment.links(map_, 0, 1)


def test_a_row_of_zeros_has_no_link() -> None:
    map_ = cross_map(np.zeros((1, 1, 1, 2)), (0, -1), (0,))
    assert alignment.links(map_) == frozenset()


def test_the_diagonal() -> None:
    assert alignment.diagonal_links(4, 2) == {(1, 0), (3, 1)}
    assert alignment.diagonal_links(2, 4) == {(0, 0), (0, 1), (1, 2), (1, 3)}
    assert alignment.diagonal_links(0, 2) == frozenset()


def test_error_rate_by_hand() -> None:
    """A∩S one link, A∩P two, three links of which two are sure: 1 − 3/5."""
    pair = {"sure": [[0, 0], [1, 2]], "possible": [[3, 1]]}
    counts = alignment.alignment_counts(frozenset({(0, 0), (3, 1), (2, 2)}), pair)
    assert counts == (1, 2, 3, 2)
    assert alignment.alignment_error_rate(np.array(counts)) == pytest.approx(0.4)
    everything = frozenset({(0, 0), (1, 2), (3, 1)})
    perfect = alignment.alignment_counts(everything, pair)
    assert alignment.alignment_error_rate(np.array(perfect)) == pytest.approx(0)
    turned = alignment.alignment_counts(frozenset((t, s) for s, t in everything), pair)
    assert alignment.alignment_error_rate(np.array(turned)) > 0.5
    assert np.isnan(alignment.alignment_error_rate(np.zeros(4)))


PAIR = {
    "english": "a b c d",
    "french": "x y z",
    "sure": [[2, 0], [0, 1], [1, 2]],
    "possible": [[3, 0]],
}


def toy_translation(weights: np.ndarray, pair: dict[str, Any] = PAIR) -> Translation:
    english, french = pair["english"].split(), pair["french"].split()
    return Translation(
        "toy",
        pair["english"],
        pair["french"],
        source_pieces=Pieces.of_words(english).with_end("</s>"),
        target_pieces=Pieces.of_words(french).with_end("</s>"),
        attentions={"cross": weights},
    )


def test_the_head_that_looks_where_people_aligned_is_chosen(
    tiny: dict[str, Translator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two layers of two heads: one follows the links, one the links read the wrong way round, two look
    at the end."""
    weights = np.zeros((2, 2, 4, 5))
    weights[..., 4] = 0.4
    for source, target in PAIR["sure"]:
        weights[1, 0, target, source] = 0.6
    for target, source in PAIR["sure"]:
        weights[0, 1, target, source] = 0.6
    monkeypatch.setattr(alignment, "teacher_forced", lambda *_: toy_translation(weights))
    rates = alignment.head_error_rates(tiny["transformer"], [PAIR])
    assert rates.shape == (2, 2)
    assert rates[1, 0] == 0
    assert rates[0, 0] == rates[0, 1] == rates[1, 1] == 1
    assert alignment.choose_head(tiny["transformer"], [PAIR]) == (1, 0)


def test_a_head_that_aligns_one_step_later_is_chosen_with_its_reading(
    tiny: dict[str, Translator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One head follows the links at the step that reads the word; at the step that chose it, it is wrong."""
    weights = np.zeros((2, 2, 4, 5))
    weights[..., 4] = 0.4
    for source, target in PAIR["sure"]:
        weights[0, 1, target + 1, source] = 0.6
    later = toy_translation(weights).attention("cross").at("reading")
    assert alignment.links(later, 0, 1) == {tuple(link) for link in PAIR["sure"]}
    assert later.read == later.to_dict()["reading"] == "reading"
    assert not later.weights[:, :, -1].any()
    monkeypatch.setattr(alignment, "teacher_forced", lambda *_: toy_translation(weights))
    monkeypatch.setattr(alignment_report, "saliency", lambda *_: Shares())
    found = alignment_report.alignment_report(
        {"transformer": tiny["transformer"]}, [PAIR] * 4, number=10
    )
    assert found["choice"] == {"transformer": {"layer": 0, "head": 1, "reading": "reading"}}
    assert found["results"]["transformer"]["aer"]["value"] == 0
    assert found["results"]["transformer:predicting"]["aer"]["value"] > 0.5
    assert found["public"] is None
    # Possible links counted as sure: the one that no one found is missed now.
    both = alignment_report.alignment_report(
        {"transformer": tiny["transformer"]}, [PAIR] * 4, public=[PAIR], number=10
    )
    assert (
        both["public"]["transformer"]["recall"]
        == both["own_as_public"]["transformer"]["recall"]
        == 0.75
    )
    assert both["results"]["transformer"]["recall"] == 1


@pytest.mark.parametrize("content", ["", "{", "3", '[{"english": "a"}]', "[1]"])
def test_a_file_that_holds_no_aligned_pairs(tmp_path: Path, content: str) -> None:
    path = tmp_path / "pairs.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"pairs.json: expected a list of pairs with english, .*--help"
    ):
        alignment_report.read_pairs(path)


class Shares:
    """In place of saliency: shares that link nothing."""

    def shares(self, specials: bool) -> AttentionMap:
        return toy_translation(np.zeros((1, 1, 4, 5))).attention("cross")


def test_a_map_is_read_at_one_of_two_steps() -> None:
    map_ = toy_translation(np.full((1, 1, 4, 5), 0.2)).attention("cross")
    assert map_.at("predicting") is map_
    with pytest.raises(ValueError, match="expected one of predicting, reading, got 'now'"):
        map_.at("now")
    with pytest.raises(ValueError, match="got one read at 'reading'"):
        map_.at("reading").at("predicting")


def test_removing_a_word_costs_what_reading_without_it_says(tiny: dict[str, Translator]) -> None:
    translator = tiny["lstm-attention"]
    forced = alignment.teacher_forced(translator, "the red cat sleeps", "le chat dort")
    costs = faithfulness.removal_costs(translator, forced)
    assert costs.shape == (4, 3)
    without = alignment.teacher_forced(translator, "the cat sleeps", "le chat dort")
    words = without.target_pieces.word_of_piece
    expected = [
        sum(
            old - new
            for old, new, word in zip(
                forced.token_log_probs, without.token_log_probs, words, strict=True
            )
            if word == number
        )
        for number in range(3)
    ]
    assert costs[1].tolist() == pytest.approx(expected)


def test_a_ranking_is_compared_with_the_other_words(
    tiny: dict[str, Translator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removing the aligned word costs 1, any other nothing: only what finds that word gains."""
    pair = {
        "english": "cats see dogs",
        "french": "chats voient chiens",
        "sure": [[0, 0], [1, 1], [2, 2]],
        "possible": [],
    }
    weights = np.zeros((1, 1, 4, 4))
    for i in range(3):
        weights[0, 0, i, 2 - i] = 1
    monkeypatch.setattr(faithfulness, "forced_pair", lambda *_: toy_translation(weights, pair))
    monkeypatch.setattr(faithfulness, "removal_costs", lambda *_: np.eye(3))
    monkeypatch.setattr(faithfulness, "saliency", lambda *_: Shares())
    choice = {"toy": alignment_report.HeadChoice(0, 0, "predicting")}
    found = faithfulness.deletion_report({"toy": tiny["lstm"]}, [pair, pair], choice, number=10)[
        "models"
    ]["toy"]
    assert found["aligned"] == {
        "words": 6,
        "cost": 1.0,
        "random": 0.0,
        "gain": {"value": 1.0, "low": 1.0, "high": 1.0},
    }
    assert found["diagonal"]["gain"]["value"] == 1
    assert found["attention"]["cost"] == pytest.approx(1 / 3, abs=1e-4)  # right in the middle only
    assert found["saliency"] == {"words": 0, "cost": None, "random": None, "gain": None}


def test_choosing_says_what_is_wrong(tiny: dict[str, Translator]) -> None:
    pair = {
        "english": "Nobody painted the bridge.",
        "french": "Personne a peint le pont.",
        "sure": [[0, 0]],
        "possible": [],
    }
    with pytest.raises(ValueError, match="lstm, which has none; use saliency"):
        alignment.choose_head(tiny["lstm"], [pair])
    with pytest.raises(ValueError, match="got 0 pairs without any"):
        alignment.choose_head(tiny["transformer"], [])
    with pytest.raises(ValueError, match=r"got \[0, 5\] for 'Nobody"):
        alignment.choose_head(tiny["transformer"], [{**pair, "possible": [[0, 5]]}])
    with pytest.raises(ValueError, match="expected the 5 whitespace words .* sees 4"):
        alignment.choose_head(
            tiny["transformer"], [{**pair, "english": "Nobody painted \u200b the bridge."}]
        )
    with pytest.raises(ValueError, match="expected a target of 1 to 200 pieces, got 0"):
        alignment.choose_head(tiny["transformer"], [{**pair, "french": " "}])


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_a_forced_target_is_read_as_search_would_read_it(
    shipped: dict[str, Translator], name: str
) -> None:
    source, target = "The black cat is sleeping.", "Le chat noir dort."
    forced = alignment.teacher_forced(shipped[name], source, target)
    stepped = shipped[name].translate_from(source, forced.target_ids)
    assert forced.text == target
    same = ("token_log_probs", "score", "seconds", "attentions")
    assert {k: v for k, v in vars(forced).items() if k not in same} == {
        k: v for k, v in vars(stepped).items() if k not in same
    }
    assert forced.token_log_probs == pytest.approx(stepped.token_log_probs, abs=1e-4)
    assert forced.score == pytest.approx(stepped.score, abs=1e-4)
    assert set(forced.attentions) == set(stepped.attentions)
    assert saliency(shipped[name], forced).shares().target_tokens == (
        "Le",
        "chat",
        "noir",
        "dort.",
    )


# -- the shipped report


@pytest.fixture(scope="module")
def content(models_folder: Path) -> dict[str, Any]:
    found = Report.read(models_folder / "report" / "attention.json")
    assert found is not None
    return found.content()


def test_the_report_is_of_the_shipped_weights_and_texts(
    content: dict[str, Any], models_folder: Path
) -> None:
    assert Report.of(content).stale(read_training(models_folder)) is None
    pairs = alignment_report.aligned_pairs()
    assert content["data"]["aligned_sha256"] == alignment_report.pairs_digest(pairs)
    for key in ("schema", "command", "data", "versions", "hardware", "created", "note"):
        assert content[key], key
    expected = {f"{name}:saliency" for name in MODEL_NAMES}
    expected |= {"transformer", "transformer:mean", "lstm-attention", "diagonal"}
    expected |= {f"{n}:{r}" for n in ("transformer", "lstm-attention") for r in READINGS}
    assert set(content["results"]) == expected
    for result in content["results"].values():
        assert result["aer"]["low"] <= result["aer"]["value"] <= result["aer"]["high"]
        assert 0 <= result["precision"] <= 1
        assert 0 <= result["recall"] <= 1


def test_the_report_equals_a_rerun(content: dict[str, Any], shipped: dict[str, Translator]) -> None:
    pairs = alignment_report.aligned_pairs()
    heads = content["heads"]["transformer"]
    rates = alignment.head_error_rates(shipped["transformer"], pairs[0::2])
    np.testing.assert_allclose(rates, heads["aer"], atol=0.01)
    best = heads["best"]["predicting"]
    assert rates[best["layer"], best["head"]] == rates.min()
    chosen = content["choice"]["transformer"]
    later = np.array(heads["aer_reading"])
    assert min(rates.min(), later.min()) == pytest.approx(
        (later if chosen["reading"] == "reading" else rates)[chosen["layer"], chosen["head"]],
        abs=0.01,
    )
    again = alignment_report.alignment_report(
        {"lstm-attention": shipped["lstm-attention"]}, pairs, number=content["resamples"]
    )
    assert again["choice"] == {"lstm-attention": content["choice"]["lstm-attention"]}
    for key, values in again["heads"]["lstm-attention"].items():
        if key == "best":
            continue
        np.testing.assert_allclose(values, content["heads"]["lstm-attention"][key], atol=0.01)
    assert set(again["results"]) == {
        "lstm-attention",
        "lstm-attention:predicting",
        "lstm-attention:reading",
        "lstm-attention:saliency",
        "diagonal",
    }
    assert again["results"]["diagonal"] == content["results"]["diagonal"]
    for key, result in again["results"].items():
        committed = content["results"][key]
        assert result["aer"] == pytest.approx(committed["aer"], abs=0.02)
        assert result["links"] == pytest.approx(committed["links"], abs=2)


def test_attention_aligns_better_than_no_model(
    content: dict[str, Any],
) -> None:
    """Intervals far apart for one, the value alone for the other: few pairs say no more."""
    results = content["results"]
    assert results["lstm-attention"]["aer"]["high"] < results["diagonal"]["aer"]["low"]
    assert results["transformer"]["aer"]["value"] < results["diagonal"]["aer"]["value"]


def test_a_choice_is_only_for_the_weights_it_was_made_on(
    content: dict[str, Any], shipped: dict[str, Translator]
) -> None:
    chosen = content["choice"]["transformer"]
    expected = (chosen["layer"], chosen["head"], chosen["reading"])
    assert alignment_report.aligned_head("transformer") == expected
    assert alignment_report.aligned_head(shipped["transformer"]) == expected
    assert alignment_report.aligned_head("lstm") is None
    assert alignment_report.aligned_head("another") is None
    one = shipped["transformer"]
    other = Translator(
        one.model,
        one.tokenizer,
        name="transformer",
        training={**one.training, "weights_sha256": "1" * 64},
    )
    assert alignment_report.aligned_head(other) is None
    assert (
        alignment_report.aligned_head(Translator(one.model, one.tokenizer, name="transformer"))
        is None
    )


def test_stale_reports_are_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "load", lambda folder: folder)
    monkeypatch.setattr(
        alignment_report, "alignment_report", lambda translators, pairs, public: {"choice": {}}
    )
    monkeypatch.setattr(artefacts, "deletion_report", lambda *_: {})
    (attention,) = (a for a in artefacts.ARTEFACTS if a.name == "attention")

    def current(weights: str) -> Report:
        trainings = {"lstm": {"weights_sha256": weights}}
        site = artefacts.Site(tmp_path, trainings, print, tmp_path)
        found = attention.current(site)
        assert found is not None
        assert attention.stale(found, trainings) is None
        assert found == Report.read(site.file("attention.json"))
        return found

    made = current("1" * 64)
    assert made.data["pairs"] == made.data["chosen_on"] + made.data["reported"]
    old = replace(made, created="before")
    old.write(tmp_path / "report" / "attention.json")
    assert current("1" * 64) == old
    assert current("2" * 64).created != "before"
    other = replace(old, data={**made.data, "aligned_sha256": "3" * 64})
    other.write(tmp_path / "report" / "attention.json")
    assert current("1" * 64).data == made.data
