"""Found or not found: the alignment against arithmetic, the marks, the shipped table, the command."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import REPOSITORY
from hypothesis import given
from hypothesis import strategies as st

from seqviz import cli, coverage, handwritten
from seqviz.coverage import Lexicon, LexiconError, Word, counts, mark
from seqviz.coverage.trainer import _shares

TOY = Lexicon(
    {
        "cat": "chat",
        "see": "voi vu",
        "saw": "vu",
        "school": "ecol",
        "agre": "accord",
        "today": "aujourdhui",
        "heart": "coeur",
        "union": "union",
        "unit": "etatsun uni",
        "state": "etatsun etat",
        "car": "voitur",
        "term": "term",
        "longterm": "term",
        "two": "deux 2",
        "2": "2 deux",
    },
    {"chat": "cat", "car": "because", "ecol": "school", "le": "the", "coeur": "heart core"},
)


def found(source: str, output: str, lexicon: Lexicon | None = TOY) -> list[bool | None]:
    return [word.found for word in mark(source, output, lexicon)]


# ---------------------------------------------------------------------------------------------
# IBM Model 1


def plain_model1(
    pairs: Sequence[tuple[list[int], list[int]]], iterations: int
) -> dict[tuple[int, int], float]:
    """t(target | source), slowly and obviously; 0 is the empty source word."""
    t = {(s, f): 1.0 for source, target in pairs for s in (0, *source) for f in target}
    for _ in range(iterations):
        count: defaultdict[tuple[int, int], float] = defaultdict(float)
        total: defaultdict[int, float] = defaultdict(float)
        for source, target in pairs:
            for f in target:
                norm = sum(t[s, f] for s in (0, *source))
                for s in (0, *source):
                    count[s, f] += t[s, f] / norm
                    total[s] += t[s, f] / norm
        t = {(s, f): n / total[s] for (s, f), n in count.items()}
    return t


def as_dict(made: coverage.Alignments, values: np.ndarray) -> dict[tuple[int, int], float]:
    return {
        (s, t): v
        for s, t, v in zip(made.source.tolist(), made.target.tolist(), values.tolist())
        if v > 0
    }


sentences = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@pytest.mark.parametrize("block", [1, 40, 10_000])
@given(pairs=st.lists(st.tuples(sentences, sentences), min_size=1, max_size=6))
def test_both_directions_equal_the_plain_reference(
    pairs: list[tuple[list[int], list[int]]], block: int
) -> None:
    made = coverage.align([s for s, _ in pairs], [t for _, t in pairs], iterations=4, block=block)
    forward = plain_model1(pairs, 4)
    backward = {(s, t): v for (t, s), v in plain_model1([(t, s) for s, t in pairs], 4).items()}
    assert as_dict(made, made.forward) == pytest.approx(forward, rel=1e-9)
    assert as_dict(made, made.backward) == pytest.approx(backward, rel=1e-9)
    # Agreement: the product of the two posteriors, summed over the corpus.
    agreed: defaultdict[tuple[int, int], float] = defaultdict(float)
    for source, target in pairs:
        for s in source:
            for t in target:
                p = forward[s, t] / sum(forward[x, t] for x in (0, *source))
                q = backward[s, t] / sum(backward[s, x] for x in (0, *target))
                agreed[s, t] += p * q
    assert as_dict(made, made.aligned) == pytest.approx(dict(agreed), rel=1e-9)


def test_two_steps_by_hand() -> None:
    """Pairs (a b, x y) and (a, x); a=1, b=2, x=1, y=2.

    Step 1: every word of the first pair is explained by the empty word, a and b with 1/3 each, x of
    the second by the empty word and a with 1/2 each. So a has x 5/6 and y 1/3: 5/7 and 2/7; b has 1/2
    and 1/2. Step 2, first pair: x is a's with (5/7) / (5/7 + 5/7 + 1/2) = 10/27, y with 4/15.
    """
    one = coverage.align([[1, 2], [1]], [[1, 2], [1]], iterations=1)
    assert as_dict(one, one.forward) == pytest.approx(
        {(0, 1): 5 / 7, (0, 2): 2 / 7, (1, 1): 5 / 7, (1, 2): 2 / 7, (2, 1): 1 / 2, (2, 2): 1 / 2}
    )
    two = coverage.align([[1, 2], [1]], [[1, 2], [1]], iterations=2)
    x, y = 10 / 27 + 1 / 2, 4 / 15
    b_x, b_y = 7 / 27, 7 / 15
    assert as_dict(two, two.forward) == pytest.approx(
        {
            (0, 1): x / (x + y),
            (0, 2): y / (x + y),
            (1, 1): x / (x + y),
            (1, 2): y / (x + y),
            (2, 1): b_x / (b_x + b_y),
            (2, 2): b_y / (b_x + b_y),
        }
    )


def test_probabilities_sum_to_one_in_both_directions() -> None:
    random = np.random.default_rng(0)
    sources = [random.integers(1, 30, random.integers(1, 9)).tolist() for _ in range(60)]
    targets = [random.integers(1, 20, random.integers(1, 9)).tolist() for _ in range(60)]
    made = coverage.align(sources, targets, iterations=3, block=500)
    by_source = np.bincount(made.source, made.forward)
    by_target = np.bincount(made.target, made.backward)
    assert by_source[sorted({0}.union(*map(set, sources)))] == pytest.approx(1.0)
    assert by_target[sorted({0}.union(*map(set, targets)))] == pytest.approx(1.0)


# ---------------------------------------------------------------------------------------------
# Marks


def test_words_of_all_kinds() -> None:
    assert mark("The cat saw 2 zorbs , today!", "Le chat a vu hier.", TOY) == [
        Word("The", False, None),
        Word("cat", True, True),
        Word("saw", True, True),
        Word("2", True, False),
        Word("zorbs", True, None),
        Word(",", False, None),
        Word("today!", True, False),
    ]


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ("I agree.", "Je suis d'accord.", [None, True]),
        ("I agree.", "Je suis d\u2019accord.", [None, True]),
        ("school", "L'ÉCOLE", [True]),
        ("school", "l'e\u0301cole", [True]),
        ("today", "Aujourd'hui", [True]),
        ("heart", "cœur", [True]),
        ("heart", "coeur", [True]),
        ("United States", "Etats-Unis", [True, True]),
        ("the cat's", "chats", [None, True]),
        ("long-term", "à long terme", [True]),
        ("cat/dog", "chat", [True]),  # the table knows no dog
        ("(cat)", "\u00abchat\u00bb", [True]),
    ],
)
def test_spelling_of_words(source: str, output: str, expected: list[bool | None]) -> None:
    assert found(source, output) == expected


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ("2,500", "2 500", True),
        ("2,500", "2.500", True),
        ("2,500", "2500", True),
        ("2500", "2\u202f500", True),
        ("2,500", "2 600", False),
        ("3.5", "3,5", True),
        ("19th", "19e", True),
        ("1990s", "années 1990", True),
        ("10%", "10 %", True),
        ("10%", "100 %", False),
        ("2", "deux", True),
        ("two", "2", True),
    ],
)
def test_numbers(source: str, output: str, expected: bool) -> None:
    assert found(source, output) == [expected]


def test_names_are_looked_for_by_their_spelling() -> None:
    assert found("I saw Fischer.", "J'ai vu Fischer.") == [None, True, True]
    assert found("I saw Fischer.", "J'ai vu cela.") == [None, True, False]
    assert found("in Ruritania", "en Ruritanie") == [None, True]
    # At the start of a sentence a capital is no sign of a name.
    assert found("Zorbs saw.", "Vu.") == [None, True]
    assert found("Saw. Zorbs saw", "Vu vu") == [True, None, True]


def test_a_word_of_the_same_spelling_counts_unless_it_means_something_else() -> None:
    assert found("zorb", "un zorb") == [True]
    assert found("union", "L'union") == [True]
    assert found("car", "car") == [False]


def test_a_repeated_word_needs_as_many_matches() -> None:
    source = "The cat saw the cat"
    assert found(source, "Le chat a vu le chat") == [None, True, True, None, True]
    assert found(source, "Le chat a vu") == [None, True, True, None, False]
    assert found(source, "Il a bien vu le chat") == [None, False, True, None, True]
    assert found(source, "Il a vu") == [None, False, True, None, False]


def test_irregular_forms_have_the_translations_of_their_base() -> None:
    assert TOY.translations("saw") == ("vu", "voi")
    assert TOY.translations("Seen") == ("voi", "vu")
    assert TOY.translations("sees") == ("voi", "vu")


def test_counts() -> None:
    marks = mark("The cat saw 2 zorbs today", "Le chat a vu", TOY)
    assert counts(marks) == (2, 4)
    assert counts([]) == (0, 0)


TEXT = st.text(max_size=60) | st.lists(
    st.sampled_from(
        ["cat", "Cat", " ", "'", "-", "2", ",500", "é", "œ", ".", "\u2019", "d'", "n't"]
    ),
    max_size=20,
).map("".join)


@given(source=TEXT, output=TEXT)
def test_one_word_for_each_whitespace_word(source: str, output: str) -> None:
    marks = mark(source, output, TOY)
    assert [word.text for word in marks] == source.split()
    assert all(word.content or word.found is None for word in marks)
    assert mark(source, output, TOY) == marks


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467", "</s> <unk> <pad>",
        "<b>cat</b> &nbsp;", "\ud800 cat\udfff", "猫 坐在 垫子上", "قطة", "' - '' n't -'", "a" * 5_000,
        "cat-" * 1_250, "l'" * 2_500, "1," * 2_500, "-" * 5_000,
    ],
)  # fmt: skip
def test_odd_input(text: str) -> None:
    for source, output in ((text, "Le chat."), ("The cat.", text), (text, text)):
        started = time.process_time()
        marks = mark(source, output, TOY)
        assert time.process_time() - started < 2.0
        assert [word.text for word in marks] == source.split()


def test_unknown_scripts_are_not_judged_but_the_same_spelling_is_found() -> None:
    assert found("猫", "chat") == [None]
    assert found("猫", "猫") == [True]


# ---------------------------------------------------------------------------------------------
# The shipped table


@pytest.fixture(scope="module")
def shipped() -> Lexicon:
    return Lexicon.load()


@pytest.fixture(scope="module")
def aligned() -> list[dict[str, Any]]:
    return handwritten.texts("aligned")


PRECISION_FLOOR, RECALL_FLOOR = 0.92, 0.88
"""Measured: 0.99 and 0.98 on the even pairs, which the thresholds were chosen on; 0.95 and 0.91 on the
odd ones, which were only reported."""


@pytest.mark.parametrize("half", [0, 1])
def test_not_found_can_be_trusted(
    shipped: Lexicon, aligned: list[dict[str, Any]], half: int
) -> None:
    measured = coverage.evaluate(shipped, aligned[half::2])
    assert measured["words"] > 90
    assert measured["precision"] >= PRECISION_FLOOR
    assert measured["recall"] >= RECALL_FLOOR
    assert measured["unjudged"] <= 0.03


def test_evaluation_by_hand() -> None:
    """A cat that is found and missed as it should be, and a school that is always found: French
    holds the word twice, of which one is linked."""
    pair = {
        "english": "The cat at school",
        "french": "Le chat école à l'école",
        "sure": [[0, 0], [1, 1], [3, 4]],
        "possible": [],
    }
    measured = coverage.evaluate(TOY, [pair])
    assert measured["errors"] == [("school", "Le chat école à", "not found")]
    del measured["errors"]
    assert measured == {
        "pairs": 1,
        "words": 2,
        "flagged_missing": 1,
        "flagged_present": 0,
        "precision": 1.0,
        "recall": 0.5,
        "unjudged": 0.0,
    }


def test_everyday_words(shipped: Lexicon) -> None:
    assert shipped.translations("cats")[0] == "chat"
    assert shipped.translations("house")[0] == "maison"
    assert shipped.translations("the") == ()
    assert shipped.translations("qwrtz") == ()
    assert "house" in shipped.meanings("maisons")
    assert "school" in shipped.meanings("l'école")
    assert "Europe" in shipped.meanings("Europe")
    assert shipped.meanings("qwrtz") == ()
    assert all(1 <= len(shipped.meanings(w)) <= 3 for w in ("le", "Parlement", "œil", "beaux"))


def test_shipped_file(models_folder: Path) -> None:
    path = models_folder / "lexicon.json"
    assert path.stat().st_size <= 1_000_000
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["command"].startswith("seqviz lexicon --data ")
    assert {row["name"] for row in content["data"]} == {
        "train.tsv.xz", *(f"train-{i}.tsv.xz" for i in range(5)),
    }  # fmt: skip
    assert sum(row["pairs"] for row in content["data"]) >= content["pairs"] > 100_000
    assert "snowballstemmer" in content["versions"]
    for name in ("translations", "meanings"):
        table = content[name]
        assert list(table) == sorted(table)
        for key, row in table.items():
            assert key and not any(c.isspace() for c in key)
            assert 1 <= len(row.split(" ")) <= coverage.MAX_TRANSLATIONS
            assert len(set(row.split(" "))) == len(row.split(" "))


def test_marking_is_fast(shipped: Lexicon) -> None:
    source = " ".join(["The members of the committee opened twelve new schools."] * 8)
    output = " ".join(["Les membres de la commission ont ouvert douze nouvelles écoles."] * 8)
    best = math.inf
    for _ in range(5):
        started = time.process_time()
        mark(source, output, shipped)
        best = min(best, time.process_time() - started)
    assert best < 0.02  # about 1 ms on an idle machine


def test_marking_needs_no_pytorch() -> None:
    code = (
        "import sys; from seqviz import coverage; "
        "print(coverage.mark('The cat sleeps.', 'Le chat dort.')[1].found, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True False\n", done.stderr


# ---------------------------------------------------------------------------------------------
# Files and the command


def test_the_shipped_table_is_read_once() -> None:
    assert Lexicon.load() is Lexicon.load()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "expected a lexicon at .*found none"),
        (b"", "cannot be read"),
        (b'{"schema": 1, "translations": {"a"', "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b"[1]", "expected a lexicon of schema 1, got None"),
        (b'{"schema": 7}', "expected a lexicon of schema 1, got 7"),
        (b'{"schema": 1}', "the file is damaged"),
        (b'{"schema": 1, "translations": {"a": 3}, "meanings": {}}', "the file is damaged"),
        (b'{"schema": 1, "translations": [], "meanings": {}}', "the file is damaged"),
    ],
)
def test_a_file_that_is_no_lexicon(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "lexicon.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LexiconError, match=message):
        Lexicon.load(path)


@pytest.mark.parametrize(
    ("files", "shares", "total", "expected"),
    [
        ([100, 100], [1, 1], 50, [25, 25]),
        ([100, 100], [3, 1], 40, [30, 10]),
        ([10, 100, 100], [1, 1, 1], 90, [10, 40, 40]),
        ([10, 20], [1, 1], 1_000, [10, 20]),
        ([10, 100], [10, 1], 30, [10, 20]),
    ],
)
def test_shares(files: list[int], shares: list[int], total: int, expected: list[int]) -> None:
    assert _shares(files, shares, total) == expected


NOUNS = {"cat": "chat", "dog": "chien", "bridge": "pont", "garden": "jardin", "door": "porte"}
VERBS = {"sleeps": "dort", "falls": "tombe", "waits": "attend"}


@pytest.fixture
def tiny_corpus(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    rows = [(f"The {e} {v}.", f"Le {f} {w}.") for e, f in NOUNS.items() for v, w in VERBS.items()]
    rows.append(("long " * 60, "long " * 60))
    rows.append(("", "vide"))
    path.write_text("".join(f"d\t{e}\t{f}\n" for e, f in rows), encoding="utf-8")
    return path


def run(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[object, str, str]:
    monkeypatch.setattr(sys, "argv", ["seqviz", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


def test_command_makes_a_table(
    tiny_corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "made" / "lexicon.json"
    arguments = ["lexicon", "--data", str(tiny_corpus), "--out", str(out), "--seed", "3"]
    code, printed, err = run(arguments, monkeypatch, capsys)
    assert (code, printed) == (0, "")
    assert "15 pairs" in err
    lexicon = Lexicon.load(out)
    for english, french in NOUNS.items():
        assert lexicon.translations(english)[0] == french.removesuffix("e")
        assert lexicon.meanings(french)[0] == english
    assert found("The dogs sleep.", "Le chien.", lexicon) == [None, True, False]

    content = json.loads(out.read_text(encoding="utf-8"))
    assert content["schema"] == coverage.SCHEMA
    assert content["command"] == (
        "seqviz lexicon --data pairs.tsv --out lexicon.json --pairs 250000 --seed 3"
    )
    assert content["data"][0]["name"] == "pairs.tsv"
    assert len(content["data"][0]["sha256"]) == 64
    assert str(tmp_path) not in out.read_text(encoding="utf-8")

    first = out.read_text(encoding="utf-8").replace(content["created"], "")
    run(arguments, monkeypatch, capsys)
    second = out.read_text(encoding="utf-8")
    assert second.replace(json.loads(second)["created"], "") == first
    assert [path.name for path in out.parent.iterdir()] == ["lexicon.json"]


@pytest.mark.parametrize(
    ("lines", "extra", "code", "message"),
    [
        (None, [], 1, "expected a corpus file at"),
        ("d\tonly two\n", [], 1, "expected 3 tab-separated columns"),
        ("d\t \t \n", [], 1, "expected at least one pair"),
        ("d\ta\tb\n", ["--pairs", "0"], 2, "--pairs"),
    ],
)
def test_command_errors_are_one_line(
    lines: str | None,
    extra: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = tmp_path / "pairs.tsv"
    if lines is not None:
        data.write_text(lines, encoding="utf-8")
    out = tmp_path / "lexicon.json"
    got, printed, err = run(
        ["lexicon", "--data", str(data), "--out", str(out), *extra], monkeypatch, capsys
    )
    assert (got, printed) == (code, "")
    assert message in err.splitlines()[-1]
    assert err.splitlines()[-1].startswith("seqviz: error: ")
    assert not out.exists()


def test_help_has_an_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, printed, _ = run(["lexicon", "--help"], monkeypatch, capsys)
    assert code == 0
    assert "Example" in printed
