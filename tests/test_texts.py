"""The hand-written texts: shape, lengths, punctuation and alignments."""

import json
import re
from pathlib import Path

import pytest

from seqviz import handwritten
from seqviz.translating.inputs import split_sentences

TEXTS = json.loads(
    (Path(__file__).resolve().parents[1] / "seqviz" / "texts.json").read_text(encoding="utf-8")
)
# curly quotes, guillemets, odd spaces, soft hyphens, long dashes
TYPOGRAPHIC = "[\u2018\u2019\u201c\u201d\u00ab\u00bb\u00a0\u202f\u2009\u00ad\u200b\u2013\u2014]"
REGISTERS = {"everyday", "parliamentary"}
PASSAGES = {passage["id"]: passage for passage in TEXTS["passages"]}
ALIGNED = {pair["id"]: pair for pair in TEXTS["aligned"]}


def words(text):
    return text.split()


def bare(text):
    """Words without the punctuation at their edges."""
    return [word.strip(".,?!;:") for word in text.split()]


def entries():
    """Every record that holds an English and a French text."""
    for text in TEXTS["everyday"]:
        yield from text["sentences"]
    for passage in TEXTS["passages"]:
        yield from passage["stages"]
    for part in ("examples", "development", "aligned"):
        yield from TEXTS[part]


def test_schema():
    assert set(TEXTS) == {"schema", "everyday", "passages", "examples", "development", "aligned"}
    assert TEXTS["schema"] == 1
    for passage in TEXTS["passages"]:
        assert set(passage) == {"id", "register", "title", "use", "stages"}
        assert passage["use"] == "shown"
        assert set(passage["title"]) == {"en", "zh"} and all(passage["title"].values())
        assert all(set(stage) == {"english", "french", "chinese"} for stage in passage["stages"])
    for text in TEXTS["everyday"]:
        assert set(text) == {"id", "title", "sentences"}
        assert set(text["title"]) == {"en", "zh"} and all(text["title"].values())
        assert all(set(one) == {"english", "french", "chinese"} for one in text["sentences"])
    common = {"id", "register", "english", "french"}
    assert all(set(entry) == common | {"chinese"} for entry in TEXTS["examples"])
    assert all(set(entry) == common for entry in TEXTS["development"])
    assert all(set(entry) == common | {"sure", "possible"} for entry in TEXTS["aligned"])


@pytest.mark.parametrize("part", ["passages", "examples", "development", "aligned"])
def test_identifiers_and_registers(part):
    ids = [entry["id"] for entry in TEXTS[part]]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in ids)
    registers = [entry["register"] for entry in TEXTS[part]]
    assert set(registers) == REGISTERS
    assert abs(registers.count("everyday") - registers.count("parliamentary")) <= 1


def test_counts():
    assert len(TEXTS["everyday"]) == 12
    assert len(TEXTS["passages"]) >= 8
    assert len(TEXTS["examples"]) == 6
    assert len(TEXTS["development"]) == 30
    assert len(TEXTS["aligned"]) >= 44


@pytest.mark.parametrize("name", PASSAGES)
def test_passage_grows(name):
    stages = PASSAGES[name]["stages"]
    assert len(stages) >= 8
    lengths = [len(words(stage["english"])) for stage in stages]
    assert lengths[0] <= 8
    assert 60 <= lengths[-1] <= 80
    for before, after in zip(stages, stages[1:]):
        for language in ("english", "french"):
            short, long = bare(before[language]), bare(after[language])
            assert len(short) < len(long)
            keep = -(-len(short) * 7 // 10)
            assert short[:keep] == long[:keep]


@pytest.mark.parametrize("text", TEXTS["everyday"], ids=lambda text: text["id"])
def test_everyday_texts_grow_by_short_sentences(text):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", text["id"])
    assert text["id"] not in PASSAGES
    assert len(text["sentences"]) == 8
    assert all(4 <= len(words(one["english"])) <= 8 for one in text["sentences"])
    whole = " ".join(one["english"] for one in text["sentences"])
    assert split_sentences(whole) == [one["english"] for one in text["sentences"]]


def test_lengths():
    assert all(8 <= len(words(entry["english"])) <= 20 for entry in TEXTS["examples"])
    assert all(5 <= len(words(entry["english"])) <= 35 for entry in TEXTS["development"])
    assert all(5 <= len(words(entry["english"])) <= 18 for entry in TEXTS["aligned"])
    assert all(len(words(entry["english"])) <= 100 for entry in entries())
    assert all(len(words(entry["french"])) <= 100 for entry in entries())


def test_plain_punctuation():
    for entry in entries():
        for language in ("english", "french"):
            text = entry[language]
            assert text == " ".join(text.split(" ")).strip() and "  " not in text
            assert not re.search(r"\s[?!;:.,]", text), text
            assert not re.search(TYPOGRAPHIC, text), text
            assert text[-1] in ".?!", text
        assert entry["english"].isascii(), entry["english"]
        if "chinese" in entry:
            assert not re.search(r"[A-Za-z,.?!;:()\s]", entry["chinese"]), entry["chinese"]
            assert entry["chinese"][-1] in "。？！"
            assert not re.search(r"[，。？！]{2}", entry["chinese"]), entry["chinese"]


def test_no_text_twice():
    seen = [" ".join(bare(entry["english"])).lower() for entry in entries()]
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("name", ALIGNED)
def test_alignment(name):
    pair = ALIGNED[name]
    sources, targets = len(words(pair["english"])), len(words(pair["french"]))
    sure = {tuple(link) for link in pair["sure"]}
    possible = {tuple(link) for link in pair["possible"]}
    assert len(sure) == len(pair["sure"]) and len(possible) == len(pair["possible"])
    assert not sure & possible
    for source, target in sure | possible:
        assert 0 <= source < sources and 0 <= target < targets
    assert 2 * len({source for source, _ in sure}) >= sources


def test_texts_are_asked_for_by_their_use():
    for use in ("everyday", "passages", "examples", "development", "aligned"):
        assert handwritten.texts(use) == TEXTS[use]
    with pytest.raises(
        KeyError, match="one of everyday, passages, examples, development, aligned; got 'x'"
    ):
        handwritten.texts("x")
