"""Attention maps: merging pieces to words, hiding specials, and what must not get lost on the way."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seqviz import tokenizer as tokenizers
from seqviz.maps import AttentionMap
from seqviz.pieces import WORD_START, Pieces

ODD_TEXTS = (
    "",
    " ",
    "🙂🙃 👩‍👩‍👧 a",
    "$x_$ costs $5 and \\frac",
    "<b>bold</b> &amp; <script>alert(1)</script>",
    "${7*7} {{value}} {0}",
    "the cat saw the dog the cat",
    "我们 把 分数 </s> <pad>",
    "שלום עולם مرحبا بالعالم",
    "a\x00b\x1b[31m\tc\u2028d\x85e",
    "\u2581 \u2581\u2581a ▁b",
    "e\u0301 \u200d \ufeff x",
    " ".join(f"w{i}" for i in range(100)),
)


def side(letter: str, numbers: list[int]) -> Pieces:
    """Tokens s0, s1, … in words S0, S1, …"""
    words = range(max(numbers, default=-1) + 1)
    return Pieces(
        tuple(f"{letter}{i}" for i in range(len(numbers))),
        tuple(f"{letter.upper()}{i}" for i in words),
        tuple(numbers),
    )


def map_of(
    source: list[int],
    target: list[int],
    *,
    layers: int = 2,
    heads: int = 3,
    seed: int = 0,
) -> AttentionMap:
    """A map with random rows that sum to 1, over tokens of the given words (-1: special)."""
    draw = np.random.default_rng(seed)
    weights = draw.dirichlet(np.full(len(source), 0.3), size=(layers, heads, len(target)))
    return AttentionMap(
        kind="cross",
        model="transformer",
        weights=weights,
        source_pieces=side("s", source),
        target_pieces=side("t", target),
        hidden_mass=np.zeros((layers, heads, len(target))),
    )


@st.composite
def word_numbers(draw: st.DrawFn) -> list[int]:
    """Words of one to four pieces, with special tokens in between."""
    numbers: list[int] = []
    word = 0
    for pieces in draw(st.lists(st.integers(0, 4), min_size=1, max_size=12)):
        numbers += [word] * pieces or [-1]
        word += bool(pieces)
    return numbers


maps = st.builds(
    map_of,
    word_numbers(),
    word_numbers(),
    layers=st.integers(1, 3),
    heads=st.integers(1, 4),
    seed=st.integers(0, 99),
)

KNOWN = AttentionMap(
    kind="cross",
    model="lstm-attention",
    # Three target pieces (the first two one word) and an end token; four source pieces, of which the
    # middle two are one word, and an end token. All sixteenths, so that sums are exact.
    weights=np.array(
        [
            [8, 4, 2, 1, 1],
            [2, 2, 4, 0, 8],
            [0, 1, 0, 15, 0],
            [1, 1, 1, 1, 12],
        ]
    )[None, None]
    / 16,
    source_pieces=Pieces(
        ("▁the", "▁Eur", "ope", "▁the", "</s>"), ("the", "Europe", "the"), (0, 1, 1, 2, -1)
    ),
    target_pieces=Pieces(("▁l'", "Europe", "▁le", "</s>"), ("l'Europe", "le"), (0, 0, 1, -1)),
    hidden_mass=np.zeros((1, 1, 4)),
)


def test_words_of_known_weights():
    """S ≠ T, by hand: pieces of a source word are summed, those of a target word averaged."""
    merged = KNOWN.words()
    assert merged.source_tokens == ("the", "Europe", "the")
    assert merged.target_tokens == ("l'Europe", "le")
    np.testing.assert_array_equal(
        merged.head(0, 0), np.array([[(8 + 2) / 2, (6 + 6) / 2, (1 + 0) / 2], [0, 1, 15]]) / 16
    )
    np.testing.assert_array_equal(merged.hidden(), np.array([(1 + 8) / 2, 0]) / 16)


def test_words_with_specials_shown():
    merged = KNOWN.words(specials=True)
    assert merged.source_tokens == ("the", "Europe", "the", "</s>")
    assert merged.target_tokens == ("l'Europe", "le", "</s>")
    np.testing.assert_array_equal(merged.head()[2], np.array([1, 2, 1, 12]) / 16)
    np.testing.assert_array_equal(merged.hidden_mass, 0)


def test_pieces_without_specials_are_not_rescaled():
    shown = KNOWN.without_specials()
    assert shown.source_tokens == ("▁the", "▁Eur", "ope", "▁the")
    assert shown.target_tokens == ("▁l'", "Europe", "▁le")
    np.testing.assert_array_equal(shown.head(), KNOWN.head()[:3, :4])
    np.testing.assert_array_equal(shown.hidden(), np.array([1, 8, 0]) / 16)


def test_repeated_words_keep_their_own_rows_and_columns():
    merged = KNOWN.words()
    assert merged.source_tokens.count("the") == 2
    assert merged.head()[1].tolist() == [0.0, 1 / 16, 15 / 16]


@given(maps)
def test_merging_conserves_mass(map_: AttentionMap):
    merged = map_.words(specials=True)
    np.testing.assert_allclose(merged.weights.sum(axis=-1), 1, atol=1e-12)
    assert (merged.weights >= 0).all()
    # What target pieces give a source word together is what the word's mean row gives times their number.
    groups = [
        [i for i, number in enumerate(map_.target_pieces.word_of_piece) if number == word]
        for word in dict.fromkeys(n for n in map_.target_pieces.word_of_piece if n >= 0)
    ]
    word_rows = [i for i, number in enumerate(merged.target_pieces.word_of_piece) if number >= 0]
    for row, group in zip(word_rows, groups, strict=True):
        for column, number in enumerate(merged.source_pieces.word_of_piece):
            if number >= 0:
                columns = [i for i, n in enumerate(map_.source_pieces.word_of_piece) if n == number]
                whole = map_.weights[:, :, group][..., columns].sum(axis=(-1, -2))
                np.testing.assert_allclose(merged.weights[:, :, row, column] * len(group), whole)


@given(maps)
def test_shown_and_hidden_mass_make_one(map_: AttentionMap):
    for shown in (map_.words(), map_.without_specials(), map_.without_specials().words()):
        assert -1 not in shown.source_pieces.word_of_piece + shown.target_pieces.word_of_piece
        np.testing.assert_allclose(shown.weights.sum(axis=-1) + shown.hidden_mass, 1, atol=1e-12)
        assert shown.head().shape == (len(shown.target_tokens), len(shown.source_tokens))


@given(maps)
def test_hiding_and_merging_commute_and_repeat(map_: AttentionMap):
    merged = map_.words()
    for other in (merged.words(), map_.without_specials().words(), map_.words(True).words()):
        assert other.source_tokens == merged.source_tokens
        assert other.target_tokens == merged.target_tokens
        np.testing.assert_allclose(other.weights, merged.weights, atol=1e-12)
        np.testing.assert_allclose(other.hidden_mass, merged.hidden_mass, atol=1e-12)


@given(maps)
def test_each_layer_and_head_and_their_means(map_: AttentionMap):
    map_ = map_.words()
    for layer in range(map_.num_layers):
        for head in range(map_.num_heads):
            np.testing.assert_array_equal(map_.head(layer, head), map_.weights[layer, head])
        np.testing.assert_allclose(map_.head(layer), map_.weights[layer].mean(axis=0))
    np.testing.assert_allclose(map_.head(head=0), map_.weights[:, 0].mean(axis=0))
    np.testing.assert_allclose(map_.head(), map_.weights.mean(axis=(0, 1)))


def test_special_tokens_only():
    nothing = map_of([-1], [-1, -1]).words()
    assert nothing.source_tokens == nothing.target_tokens == ()
    assert nothing.head().shape == (0, 0)
    one_side = map_of([-1, -1], [0, 0]).words()
    assert one_side.head().shape == (1, 0)
    np.testing.assert_allclose(one_side.hidden(), 1)


@pytest.mark.parametrize(
    ("layer", "head", "message"),
    [
        (2, 0, "expected layer 0 to 1 or None for the mean, got 2"),
        (-1, 0, "expected layer 0 to 1 .* got -1"),
        (0, 3, "expected head 0 to 2 .* got 3"),
    ],
)
def test_no_such_head(layer: int, head: int, message: str):
    for ask in (map_of([0], [0]).head, map_of([0], [0]).hidden):
        with pytest.raises(IndexError, match=message):
            ask(layer, head)


def test_no_such_layer_where_there_is_one():
    with pytest.raises(IndexError, match="expected layer 0, the only one, or None"):
        KNOWN.head(1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": KNOWN.weights[0]}, r"expected weights \(layers, heads, 4, 5\)"),
        ({"weights": KNOWN.weights.transpose(0, 1, 3, 2)}, r"got \(1, 1, 5, 4\)"),
        ({"source_pieces": KNOWN.source_pieces.take(range(4))}, "4 source tokens, got"),
        ({"hidden_mass": np.zeros((1, 1, 3))}, r"expected hidden_mass of shape \(1, 1, 4\)"),
    ],
)
def test_sizes_that_do_not_fit(change: dict, message: str):
    with pytest.raises(ValueError, match=message):
        replace(KNOWN, **change)


# ---------------------------------------------------------------------------------------------
# Any text


def map_of_pieces(source: list[str], target: list[str]) -> AttentionMap:
    """A map as a translation makes it: pieces, an end token, words from `Pieces.of`."""
    weights = np.random.default_rng(0).dirichlet(
        np.ones(len(source) + 1), size=(1, 2, len(target) + 1)
    )
    return AttentionMap(
        kind="cross",
        model="transformer",
        weights=weights,
        source_pieces=Pieces.of(source).with_end("</s>"),
        target_pieces=Pieces.of(target).with_end("</s>"),
        hidden_mass=np.zeros(weights.shape[:3]),
    )


def check_nothing_lost(map_: AttentionMap) -> None:
    merged = map_.words()
    for pieces, words in (
        (map_.source_tokens[:-1], merged.source_tokens),
        (map_.target_tokens[:-1], merged.target_tokens),
    ):
        text = "".join(pieces).replace(WORD_START, " ")
        assert " ".join(words).split() == text.split()
        assert len(words) == max(1, len(text.split())) if pieces else words == ()
    np.testing.assert_allclose(merged.weights.sum(axis=-1) + merged.hidden_mass, 1)
    assert len(map_.words(specials=True).source_tokens) == len(merged.source_tokens) + 1


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_keep_every_token(text: str, tiny_tokenizer):
    cut = tokenizers.segment(tiny_tokenizer, text).pieces
    assert cut.words == tuple(tokenizers.normalize(text).split())
    map_ = map_of_pieces(list(cut.tokens), list(cut.tokens[:-1]))
    check_nothing_lost(map_)
    assert map_.words().source_tokens == cut.words


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=60)
def test_any_text_keeps_every_token(tiny_tokenizer, source: str, target: str):
    pieces = [
        list(tokenizers.segment(tiny_tokenizer, text).pieces.tokens) for text in (source, target)
    ]
    check_nothing_lost(map_of_pieces(*pieces))


pieces = st.lists(
    st.sampled_from(["a", "b", WORD_START, "▁a", "▁bc", "</s>", "$x_$", "<b>", "我", "ש"]),
    max_size=15,
)


@given(pieces, pieces)
@example([WORD_START], ["a", WORD_START])
@example([WORD_START, WORD_START, "a"], [])
def test_any_pieces_a_model_may_write(source: list[str], target: list[str]):
    check_nothing_lost(map_of_pieces(source, target))


def test_maps_are_compared_by_their_numbers():
    same = replace(KNOWN, weights=KNOWN.weights.copy(), hidden_mass=KNOWN.hidden_mass.copy())
    other = KNOWN.weights.copy()
    other[0, 0, 0, :2] = other[0, 0, 0, 1::-1]
    assert other.sum() == KNOWN.weights.sum() and not np.array_equal(other, KNOWN.weights)
    assert same == KNOWN and hash(KNOWN) == hash(same) and len({KNOWN, same}) == 1
    others = [
        replace(KNOWN, weights=other),
        replace(KNOWN, hidden_mass=KNOWN.hidden_mass + 1),
        replace(KNOWN, model="other"),
        replace(KNOWN, kind="saliency"),
        KNOWN.words(),
        KNOWN.at("reading"),
        None,
        KNOWN.weights.tolist(),
    ]
    for one in others:
        assert one != KNOWN
    assert len({KNOWN, *others[:6]}) == 7
    empty = replace(KNOWN, weights=KNOWN.weights * np.nan)
    assert empty == replace(KNOWN, weights=KNOWN.weights * np.nan)
    assert KNOWN in [others[0], same] and KNOWN not in others


def test_what_holds_arrays_is_compared_by_their_numbers():
    from seqviz.looking.reach import Reach
    from seqviz.looking.saliency import Saliency

    side = KNOWN.source_pieces
    values = np.arange(len(side) ** 2, dtype=float).reshape(len(side), -1)
    one, same = (Saliency("rnn", values.copy(), side, side) for _ in range(2))
    assert one == same and hash(one) == hash(same) and one != replace(one, values=values + 1)
    numbers = np.ones(2)
    near, far = (Reach("rnn", ("a", "b"), numbers, n * numbers, None, (1.0,)) for n in (1, 2))
    assert near == replace(near, forward=np.ones(2)) and near != far
    assert near != replace(near, vector=numbers) and len({near, far}) == 2


def test_a_real_translation(tiny_model, tiny_tokenizer):
    """From a translator: all kinds, rows that sum to 1, words merged."""
    from seqviz.translating.translator import Translator

    model = tiny_model("transformer")
    model.set_attn_implementation("eager")
    translator = Translator(model, tiny_tokenizer, name="transformer")
    translation = translator.translate("the teacher saw the old bridge and the teacher")
    for kind, sides in (
        ("cross", (translation.source_words, translation.target_words)),
        ("encoder", (translation.source_words, translation.source_words)),
        ("decoder", (None, translation.target_words)),
    ):
        map_ = translation.attention(kind)
        assert (map_.num_layers, map_.num_heads) == (2, 2)
        np.testing.assert_allclose(map_.weights.sum(axis=-1), 1, atol=1e-5)
        merged = map_.words()
        if sides[0] is not None:
            assert merged.source_tokens == sides[0]
        assert merged.target_tokens == sides[1]
        np.testing.assert_allclose(merged.weights.sum(axis=-1) + merged.hidden_mass, 1, atol=1e-5)


# ---------------------------------------------------------------------------------------------
# Numbers to take away


def test_to_dict_is_json_and_says_what_it_is():
    said = json.loads(json.dumps(KNOWN.words().to_dict(0, None)))
    assert said["model"] == "lstm-attention" and said["kind"] == "cross"
    assert said["layer"] == 0 and said["head"] is None
    assert said["source"] == ["the", "Europe", "the"]
    np.testing.assert_allclose(said["weights"], KNOWN.words().head())
    np.testing.assert_allclose(said["hidden"], KNOWN.words().hidden())


@given(st.lists(st.text(max_size=5), min_size=1, max_size=4))
def test_to_csv_reads_back(tokens: list[str]):
    # Quotes, commas and line ends inside a token are the reader's business only if quoted well.
    tokens = [token.replace("\r", "?").replace("\0", "?") for token in tokens]
    map_ = replace(map_of(list(range(len(tokens))), [0]), source_pieces=Pieces.of_words(tokens))
    rows = list(csv.reader(io.StringIO(map_.to_csv(1, 2), newline="")))
    assert [cell.split(" ", 1)[1] for cell in rows[0][1:-1]] == tokens
    assert rows[1][0] == "1 t0"
    np.testing.assert_allclose([float(x) for x in rows[1][1:-1]], map_.head(1, 2)[0], atol=1e-7)
