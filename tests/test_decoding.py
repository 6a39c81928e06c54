"""n-best, sampling, words that an output must or must not hold: against exhaustive search and written-out rules."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_search import EOS, PAD, SETTINGS, UNK, TableStepper, _sources

from seqviz.translating import constrained, search
from seqviz.translating.decoding import Decoding
from seqviz.translating.translator import Translator
from seqviz.translating.words import NEVER, Vocabulary, Watch

# What the pieces of `TableStepper` add to a text. "b" alone may also begin a text or go on with a word.
TEXTS = {EOS: "", UNK: "\0", 2: " a", 3: "b", 4: " b", PAD: ""}
VOCABULARY = Vocabulary(tuple(TEXTS[i] for i in range(6)), EOS)


def text_of(ids: tuple[int, ...]) -> str:
    return "".join(TEXTS[i] for i in ids).strip()


def holds(text: str, word: str) -> bool:
    capital = word[0].upper() + word[1:]
    letter = r"[^\W_]"
    forms = f"{re.escape(word)}|{re.escape(capital)}"
    return re.search(f"(?<!{letter})(?:{forms})(?!{letter})", text) is not None


def outputs(limit: int) -> list[tuple[int, ...]]:
    return [
        (*body, EOS)
        for length in range(limit)
        for body in itertools.product((2, 3, 4), repeat=length)
    ]


def score(stepper: TableStepper, ids: tuple[int, ...], penalty: float = 1.0) -> float:
    return stepper.score(0, ids) * len(ids) / len(ids) ** penalty


def exhaustive(
    stepper: TableStepper, limit: int, penalty: float = 1.0, good: Any = None
) -> list[tuple[int, ...]]:
    """All outputs that are `good`, the best first, of each text the best."""
    ranked = sorted(outputs(limit), key=lambda ids: -score(stepper, ids, penalty))
    texts: dict[str, tuple[int, ...]] = {}
    for ids in ranked:
        if good is None or good(text_of(ids)):
            texts.setdefault(text_of(ids), ids)
    return list(texts.values())


# ---------------------------------------------------------------------------------------------
# n-best


@given(seed=st.integers(0, 10_000), penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0]))
@settings(max_examples=12)
def test_the_n_best_of_a_wide_beam_are_those_of_exhaustive_search(
    seed: int, penalty: float
) -> None:
    stepper = TableStepper(seed)
    (found,) = search.n_best(
        stepper,
        *_sources(1),
        [4],
        ranking=search.Ranking(120, 9, penalty, text_of),
        **SETTINGS,
    )
    assert [one.ids for one in found] == exhaustive(stepper, 4, penalty)[:9]
    for one in found:
        assert one.score(penalty) == pytest.approx(score(stepper, one.ids, penalty), abs=1e-4)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_the_first_of_the_n_best_is_what_beam_search_returns(seed: int) -> None:
    stepper = TableStepper(seed, temperature=1.0)
    arguments = (stepper, *_sources(3), [7, 3, 5])
    best = search.beam_search(*arguments, num_beams=4, **SETTINGS)
    for single, found in zip(
        best, search.n_best(*arguments, ranking=search.Ranking(4, 3), **SETTINGS), strict=True
    ):
        assert found[0].score() >= single.score() - 1e-6
        scores = [one.score() for one in found]
        assert scores == sorted(scores, reverse=True) and 1 <= len(found) <= 3
        assert len({one.ids for one in found}) == len(found)


# ---------------------------------------------------------------------------------------------
# Words


@given(
    text=st.text("abAB '你é", max_size=9),
    word=st.text("abA", min_size=1, max_size=3) | st.sampled_from(["a b", "b'a", "é", "b é"]),
    cuts=st.lists(st.integers(0, 9), max_size=4),
)
@settings(max_examples=300)
def test_a_watch_finds_whole_words_however_they_are_cut(
    text: str, word: str, cuts: list[int]
) -> None:
    plain = re.sub(" +", " ", text).strip()
    watch = Watch([(word,)], VOCABULARY)
    # Each Chinese character is a word, which the pattern is told by spaces around it.
    expected = holds(plain.replace("你", " 你 "), word)
    assert watch.holds_one(text) == expected
    state, edges = Watch.START, [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for start, end in itertools.pairwise(edges):
        state = watch.read(state, text[start:end])
    assert bool(watch.would_be_held()[state]) == expected
    if bool(watch.is_held()[state]):  # nothing that follows can undo it
        assert holds((text + "x").replace("你", " 你 "), word)


def test_what_a_word_is() -> None:
    def found(word: str, text: str) -> bool:
        return Watch([(word,)], VOCABULARY).holds_one(text)

    assert found("eau", "De l'eau.") and found("eau", "Eau !") and found("eau", "(eau)")
    assert not found("eau", "eaux") and not found("eau", "beau") and not found("eau", "EAU")
    assert not found("Paris", "paris") and found("paris", "Paris,")
    assert found("pomme de terre", "une pomme de terre") and not found("pomme de", "pomme des")
    assert not found("e", "e\u0301t") and found("été", "Été")
    assert found("猫", "黑猫在睡觉") and found("vote", "vote/votes")


@given(
    seed=st.integers(0, 10_000),
    forced=st.sampled_from([["a"], ["b"], ["ab"], ["a b"], ["bb"], ["a", "b"], ["ab", "b"]]),
    bad=st.sampled_from([[], [], ["a"], ["ab"], ["b b"]]),
    limit=st.integers(2, 5),
)
@settings(max_examples=40)
def test_forced_words_of_a_wide_beam_are_those_of_exhaustive_search(
    seed: int, forced: list[str], bad: list[str], limit: int
) -> None:
    def good(text: str) -> bool:
        return all(holds(text, w) for w in forced) and not any(holds(text, w) for w in bad)

    stepper = TableStepper(seed)
    expected = exhaustive(stepper, limit, good=good)
    words = Watch([(word,) for word in forced], VOCABULARY)
    assume(int(words.needs()[Watch.START]) <= limit)
    assume(not set(forced) & set(bad))
    found = constrained.n_best(
        stepper,
        *_sources(1),
        limit,
        words=words,
        bad_words=Watch([(word,) for word in bad], VOCABULARY) if bad else None,
        ranking=search.Ranking(400, 4, text_of=text_of),
        start_token_id=PAD,
        forbidden_token_ids=(UNK, PAD),
    )
    assert [one.ids for one in found] == expected[:4]


@given(
    seed=st.integers(0, 10_000),
    forced=st.lists(st.sampled_from(["a", "b", "ab", "bb", "abb"]), min_size=1, max_size=2),
    spare=st.integers(0, 3),
)
@settings(max_examples=25)
def test_one_beam_finds_all_forced_words_even_where_they_only_just_fit(
    seed: int, forced: list[str], spare: int
) -> None:
    words = Watch([(word,) for word in dict.fromkeys(forced)], VOCABULARY)
    need = int(words.needs()[Watch.START])
    shortest = min(
        (ids for ids in outputs(7) if all(holds(text_of(ids), word) for word in forced)), key=len
    )
    assert need == len(shortest)
    (found,) = constrained.n_best(
        TableStepper(seed),
        *_sources(1),
        need + spare,
        words=words,
        bad_words=None,
        ranking=search.Ranking(1),
        start_token_id=PAD,
        forbidden_token_ids=(UNK, PAD),
    )
    assert found.finished and all(holds(text_of(found.ids), word) for word in forced)


def test_one_of_several_forms_is_enough() -> None:
    watch = Watch([("ab", "a")], VOCABULARY)
    assert watch.holds_one("b a") and watch.holds_one("b Ab") and not watch.holds_one("aa")
    assert int(watch.needs()[Watch.START]) == 2  # "a" and the end
    assert int(Watch([("c",)], VOCABULARY).needs()[Watch.START]) == NEVER


@given(seed=st.integers(0, 10_000), bad=st.sampled_from([["a"], ["b"], ["ab", "b"], ["a b"]]))
@settings(max_examples=20)
def test_without_bad_words_greedy_takes_the_best_that_is_left(seed: int, bad: list[str]) -> None:
    stepper, limit = TableStepper(seed), 6
    watch = Watch([(word,) for word in bad], VOCABULARY)
    ids: tuple[int, ...] = ()
    while len(ids) < limit and EOS not in ids:
        best, value = None, -math.inf
        for token in (EOS, 2, 3, 4):
            text = text_of((*ids, token))
            final = token == EOS or len(ids) == limit - 1
            if any(holds(text if final else text + "x", word) for word in bad):
                continue  # held, whatever follows
            if (logit := float(stepper.logits(0, ids)[token])) > value:
                best, value = token, logit
        assume(best is not None)
        ids = (*ids, best)  # type: ignore[assignment]
    (found,) = search.greedy(stepper, *_sources(1), [limit], bad_words=watch, **SETTINGS)
    assert found.ids == ids and not any(holds(text_of(ids), word) for word in bad)


@given(seed=st.integers(0, 10_000), bad=st.sampled_from([["a"], ["ab"], ["bb", "b"], ["b a"]]))
@settings(max_examples=12)
def test_beams_without_bad_words_are_those_of_exhaustive_search(seed: int, bad: list[str]) -> None:
    stepper = TableStepper(seed)
    watch = Watch([(word,) for word in bad], VOCABULARY)
    (found,) = search.n_best(
        stepper,
        *_sources(1),
        [4],
        ranking=search.Ranking(120, 5, text_of=text_of),
        bad_words=watch,
        **SETTINGS,
    )
    expected = exhaustive(stepper, 4, good=lambda text: not any(holds(text, word) for word in bad))
    assert [one.ids for one in found] == expected[:5]


# ---------------------------------------------------------------------------------------------
# Sampling


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_draws_follow_the_distribution(temperature: float) -> None:
    """Chi-square over every possible output of three tokens, of 6,000 draws, at p = 0.001."""
    stepper, limit, number = TableStepper(5, temperature=1.0), 3, 6_000
    possible: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(limit):
        longer: dict[tuple[int, ...], float] = {}
        for ids, p in possible.items():
            if EOS in ids:
                longer[ids] = p
                continue
            weights = {
                t: math.exp(float(stepper.logits(0, ids)[t]) / temperature) for t in (EOS, 2, 3, 4)
            }
            for token, weight in weights.items():
                longer[(*ids, token)] = p * weight / sum(weights.values())
        possible = longer
    sources = torch.zeros(number, 1, dtype=torch.long), torch.ones(number, 1, dtype=torch.long)
    draws = search.Draws([(7, n) for n in range(number)], temperature)
    found = search.greedy(stepper, *sources, [limit] * number, draws=draws, **SETTINGS)
    counts = Counter(one.ids for one in found)
    assert set(counts) <= set(possible)
    rare = {ids for ids, p in possible.items() if p * number < 5}
    cells = [(counts[ids], p * number) for ids, p in possible.items() if ids not in rare]
    if rare:
        cells.append((sum(counts[i] for i in rare), number * sum(possible[i] for i in rare)))
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    freedom = len(cells) - 1
    # The 99.9th percentile of chi-square, by Wilson and Hilferty.
    limit_ = freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ** 3
    assert freedom >= 5 and statistic < limit_
    # The log-probabilities are the model's own, whatever the temperature.
    assert found[0].score() == pytest.approx(stepper.score(0, found[0].ids), abs=1e-5)


def test_a_draw_is_never_what_is_impossible() -> None:
    log_probs = torch.tensor([[-math.inf, math.log(0.25), -math.inf, math.log(0.75), -math.inf]])
    seen = {int(search.Draws([(n,)], 1.0).choose(log_probs)) for n in range(200)}
    assert seen == {1, 3}
    assert {int(search.Draws([(n,)], 1e-300).choose(log_probs)) for n in range(20)} == {3}


@given(seed=st.integers(0, 10_000))
@settings(max_examples=15)
def test_draws_of_a_sentence_do_not_depend_on_its_batch(seed: int) -> None:
    stepper = TableStepper(seed, temperature=1.0)
    limits, (ids, mask) = [8, 2, 5, 7], _sources(4)
    seeds = [(seed, n) for n in range(4)]
    together = search.greedy(stepper, ids, mask, limits, draws=search.Draws(seeds, 1.5), **SETTINGS)
    for i, limit in enumerate(limits):
        row = slice(i, i + 1)
        (alone,) = search.greedy(
            stepper, ids[row], mask[row], [limit], draws=search.Draws(seeds[row], 1.5), **SETTINGS
        )
        assert alone.ids == together[i].ids


# ---------------------------------------------------------------------------------------------
# With models


SENTENCES = [
    "The old sailor painted the bridge.",
    "Nobody!",
    "Our president wants to buy an apple today.",
]
NAMES = ("rnn", "lstm-attention", "transformer")


@pytest.fixture(scope="module")
def translators(tiny_model: Any, tiny_tokenizer: Any) -> dict[str, Translator]:
    return {name: Translator(tiny_model(name), tiny_tokenizer, name=name) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_n_best_of_a_model(name: str, translators: dict[str, Translator]) -> None:
    translator = translators[name]
    found = translator.translate(SENTENCES, 4, num_return_sequences=4)
    plain = translator.translate(SENTENCES, 4)
    for sentence, best, results in zip(SENTENCES, plain, found, strict=True):
        assert 1 <= len(results) <= 4 and results[0].score >= best.score - 1e-6
        assert len({one.text for one in results}) == len(results)
        assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)
        alone = translator.translate(sentence, 4, num_return_sequences=4)
        assert [one.target_ids for one in alone] == [one.target_ids for one in results]
        for one in alone:
            assert one.source == sentence and one.num_beams == 4
            assert one.score == pytest.approx(sum(one.token_log_probs) / len(one.target_ids))
            if translator.attention_kinds:
                assert one.attention().weights.shape[2] == len(one.target_ids)
    assert translator.translate(SENTENCES[0], num_return_sequences=1)[0].target_ids == (
        translator.translate(SENTENCES[0]).target_ids
    )
    assert [one.text for one in translator.translate("", 4, num_return_sequences=3)] == [""]
    assert [one.text for one in translator.translate("你好", 4, num_return_sequences=3)] == ["你好"]


def test_n_best_of_a_text_in_parts(translators: dict[str, Translator]) -> None:
    text = " ".join(["The committee has forgotten those 12 letters."] * 14)
    results = translators["lstm-attention"].translate(text, 3, num_return_sequences=3)
    assert len({one.text for one in results}) == len(results) > 1
    for n, one in enumerate(results):
        assert one.source == text and len(one.parts) > 1
        for part in one.parts:
            again = translators["lstm-attention"].translate(part.source, 3, num_return_sequences=3)
            assert part.target_ids == again[min(n, len(again) - 1)].target_ids


def test_a_long_output_is_preferred_or_not(translators: dict[str, Translator]) -> None:
    translator = translators["transformer"]
    lengths = [
        len(translator.translate(SENTENCES[0], 8, length_penalty=penalty).target_ids)
        for penalty in (-4, 1, 6)
    ]
    assert lengths == sorted(lengths) and lengths[0] < lengths[-1]
    one = translator.translate(SENTENCES[0], 8, length_penalty=2)
    assert one.score == pytest.approx(sum(one.token_log_probs) / len(one.target_ids) ** 2)


@pytest.mark.parametrize("name", NAMES)
def test_a_longest_length_is_that_of_generate(
    name: str, translators: dict[str, Translator], tiny_tokenizer: Any
) -> None:
    translator = translators[name]
    model = translator.model
    for number in (1, 5, 201):
        found = translator.translate(SENTENCES[2], max_new_tokens=number)
        generated = model.generate(
            **tiny_tokenizer(SENTENCES[2], return_tensors="pt"),
            max_new_tokens=number,
            num_beams=1,
            suppress_tokens=[UNK, model.config.pad_token_id],
        )
        assert generated[0, 1:].tolist() == list(found.target_ids)
        if found.target_ids[-1] != 0:
            assert len(found.target_ids) == number
            assert "limit" in {note.kind for note in found.notes}


@pytest.mark.parametrize("name", NAMES)
def test_draws_of_a_model(name: str, translators: dict[str, Translator]) -> None:
    translator = translators[name]
    ask: dict[str, Any] = {"do_sample": True, "temperature": 1.3, "seed": 11}
    together = translator.translate(SENTENCES, num_return_sequences=3, **ask)
    for sentence, draws in zip(SENTENCES, together, strict=True):
        assert len(draws) == 3 and len({one.target_ids for one in draws}) > 1
        alone = translator.translate(sentence, num_return_sequences=3, **ask)
        assert [one.target_ids for one in alone] == [one.target_ids for one in draws]
        assert translator.translate(sentence, **ask).target_ids == draws[0].target_ids
    other = translator.translate(SENTENCES, do_sample=True, temperature=1.3, seed=12)
    assert [one.target_ids for one in other] != [draws[0].target_ids for draws in together]
    cold = translator.translate(SENTENCES, do_sample=True, temperature=1e-9)
    greedy = translator.translate(SENTENCES)
    assert [one.target_ids for one in cold] == [one.target_ids for one in greedy]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("beams", [1, 3])
def test_words_of_a_model(name: str, beams: int, translators: dict[str, Translator]) -> None:
    translator = translators[name]
    texts = [*SENTENCES, "The 桥 is green."]
    wanted = ["bateau", ["lettres", "lettre"], "l'Europe"]
    found = translator.translate(texts, beams, force_words=wanted, bad_words=["vert", "桥"])
    for text, one in zip(texts, found, strict=True):
        for forms in (["bateau"], ["lettres", "lettre"], ["l'Europe"]):
            assert any(holds(one.text, form) for form in forms), one.text
        assert "桥" not in one.text and one.target_ids[-1] == 0
        assert translator.translate(text, beams, force_words=wanted, bad_words=["vert", "桥"])
    plain = translator.translate(SENTENCES, beams)
    bad = sorted({word for one in plain for word in re.findall(r"\w+", one.text)})[:8]
    for before, one in zip(
        plain, translator.translate(SENTENCES, beams, bad_words=bad), strict=True
    ):
        assert not any(holds(one.text, word) for word in bad), one.text
        if not any(holds(before.text, word) for word in bad):
            assert one.target_ids == before.target_ids
    drawn = translator.translate(SENTENCES, do_sample=True, bad_words=bad)
    assert not any(holds(one.text, word) for one in drawn for word in bad)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "more results than beams": (
        {"num_beams": 2, "num_return_sequences": 3},
        "expected num_return_sequences up to num_beams, got 3 of 2; give more beams",
    ),
    "no results": ({"num_return_sequences": 0}, "expected num_return_sequences from 1"),
    "half a result": ({"num_return_sequences": 1.5}, "expected num_return_sequences from 1"),
    "cold": ({"do_sample": True, "temperature": 0}, "expected temperature above 0"),
    "below zero": ({"do_sample": True, "temperature": -1.0}, "expected temperature above 0"),
    "no number": ({"do_sample": True, "temperature": math.nan}, "expected temperature above 0"),
    "endless": ({"do_sample": True, "temperature": math.inf}, "expected temperature above 0"),
    "temperature alone": ({"temperature": 0.7}, "expected do_sample with temperature"),
    "seed alone": ({"seed": 3}, "expected do_sample with seed"),
    "seed below zero": ({"do_sample": True, "seed": -1}, "expected seed from 0"),
    "sampling with beams": ({"do_sample": True, "num_beams": 4}, "expected num_beams 1 with do_sample"),
    "penalty alone": ({"length_penalty": 2.0}, "expected num_beams above 1 with length_penalty"),
    "penalty that is no number": (
        {"num_beams": 2, "length_penalty": math.nan},
        "expected length_penalty from -10 to 10",
    ),
    "no length": ({"max_new_tokens": 0}, "expected max_new_tokens from 1 to 201, got 0"),
    "too long": ({"max_new_tokens": 202}, "expected max_new_tokens from 1 to 201"),
    "forced and forbidden": (
        {"force_words": ["pont"], "bad_words": ["pont"]},
        "expected words that are not both in force_words and bad_words, got 'pont'",
    ),
    "forbidden inside a forced phrase": (
        {"force_words": ["le pont vert"], "bad_words": ["pont"]},
        "expected words that are not both in force_words and bad_words",
    ),
    "does not fit": (
        {"force_words": ["une grande carte de l'Europe"], "max_new_tokens": 3},
        "expected room for force_words, which need [0-9]+ pieces with the end, got a limit of 3; give",
    ),
    "cannot be spelled": ({"force_words": ["桥"]}, "expected force_words that the pieces .* spell"),
    "drawn and forced": ({"do_sample": True, "force_words": ["pont"]}, "expected no force_words with"),
    "nothing to see": ({"bad_words": [" "]}, "expected bad_words that can be seen"),
    "no form": ({"force_words": [[]]}, "expected at least one form"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_go_is_one_clear_error(case: str, translators: dict[str, Translator]) -> None:
    arguments, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        translators["lstm-attention"].translate("The bridge is green.", **arguments)


def test_words_that_are_no_list_of_text(translators: dict[str, Translator]) -> None:
    translator = translators["rnn"]
    with pytest.raises(
        TypeError, match=r"force_words as a list of words, got 'pont'; write \['pont'\]"
    ):
        translator.translate("The bridge.", force_words="pont")
    with pytest.raises(TypeError, match="expected bad_words as text, got int"):
        translator.translate("The bridge.", bad_words=[3])  # type: ignore[list-item]
    long = " ".join(["The committee has forgotten those 12 letters."] * 14)
    with pytest.raises(ValueError, match="expected a text that is read at once with force_words"):
        translator.translate(["Nobody!", long], force_words=["pont"])


def test_settings_are_checked_once_and_kept() -> None:
    asked = Decoding(force_words=["e\u0301te\u0301", ["un", "une"]], bad_words=("l\u2019eau",))
    assert asked.force_words == (("été",), ("un", "une")) and asked.bad_words == ("l'eau",)
    assert not asked.is_greedy and Decoding().is_greedy


def test_the_examples_of_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[1] / "docs" / "decoding.md").read_text(encoding="utf-8")
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(example, "decoding.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) >= 4
