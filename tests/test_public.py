"""`seqviz corpus`: public files in, clean corpus files and a report of what was dropped out."""

from __future__ import annotations

import io
import json
import lzma
import os
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from write_corpus import pairs as artificial

from seqviz import cli
from seqviz.data import public
from seqviz.data.cleaning import Cleaner, language_check, restore_ligatures
from seqviz.data.pairs import CorpusError, Pair, read_pairs
from seqviz.data.public import lines
from seqviz.data.sets import HeldOut, build

ROOT = Path(__file__).resolve().parents[1]
EN_FR = ("en", "fr")


def archive(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return path


def rows(folder: Path, name: str) -> list[Pair]:
    """The pairs of a set; a set without a pair is an empty file."""
    if not lzma.decompress((folder / f"{name}.tsv.xz").read_bytes()):
        return []
    return list(read_pairs(folder / f"{name}.tsv.xz"))


def made(pairs, out: Path, *, held_out: HeldOut | None = None, languages=EN_FR, identify=None):
    counts: Counter[str] = Counter()
    cleaner = Cleaner(languages, identify)
    return build(pairs, out, cleaner, held_out or HeldOut(share=0.0), counts, {"command": "test"})


def run(monkeypatch, capsys, *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["seqviz", "corpus", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0), capsys.readouterr().err


# ---------------------------------------------------------------------------------------------
# Reading


ENGLISH = "The first green boat is here.\nNobody has painted the bridge.\nWhere is my old letter?\n"
FRENCH = (
    "Le premier bateau vert est ici.\nPersonne n'a peint le pont.\nOù est ma vieille lettre ?\n"
)


def test_a_parallel_archive(tmp_path):
    path = archive(
        tmp_path / "fr-en.tgz",
        {
            "europarl-v7.fr-en.en": ENGLISH.encode(),
            "europarl-v7.fr-en.fr": FRENCH.encode(),
        },
    )
    found = list(public.read_europarl([path], EN_FR, Counter()))
    assert [pair.source for pair in found] == ENGLISH.split("\n")[:3]
    assert [pair.target for pair in found] == FRENCH.split("\n")[:3]
    assert {pair.document for pair in found} == {"block-000000"}
    back = list(public.read_europarl([path], ("fr", "en"), Counter()))
    assert [pair.source for pair in back] == FRENCH.split("\n")[:3]


def test_two_unpacked_files_are_the_archive(tmp_path):
    (tmp_path / "a.en").write_text(ENGLISH, encoding="utf-8")
    (tmp_path / "a.fr").write_text(FRENCH, encoding="utf-8")
    found = public.read_europarl([tmp_path / "a.en", tmp_path / "a.fr"], EN_FR, Counter())
    assert [pair.target for pair in found] == FRENCH.split("\n")[:3]


def test_blocks_stand_for_documents():
    many = io.BytesIO(b"a\n" * 450), io.BytesIO(b"b\n" * 450)
    found = list(public.parallel(*many, Counter(), "x"))
    assert Counter(pair.document for pair in found) == {
        "block-000000": 200,
        "block-000001": 200,
        "block-000002": 50,
    }


@pytest.mark.parametrize("english, french", [(3, 5), (5, 3), (0, 2)])
def test_files_of_unequal_length(english, french):
    files = io.BytesIO(b"a\n" * english), io.BytesIO(b"b\n" * french)
    said = rf"as many lines on both sides, got {english} and {french}; .* the same download"
    with pytest.raises(CorpusError, match=said):
        list(public.parallel(*files, Counter(), "x"))


def test_the_source_release_has_sessions(tmp_path):
    english = """<CHAPTER ID="1">
Resumption
<SPEAKER ID=1 NAME="President">
I open the session. You are all welcome.
<P>
This is one line
and its end.
<SPEAKER ID=2 LANGUAGE="FR" NAME="A">
I have a question.
<P>
It is short.
<SPEAKER ID=1 NAME="President">
Thank you. It is late. Good night.
"""
    french = """<CHAPTER ID="1">
Reprise
<SPEAKER ID=1 NAME="Présidente">
J'ouvre la session. Soyez les bienvenus.
<P>
Voici une ligne et sa fin.
<SPEAKER ID=2 LANGUAGE="FR" NAME="A">
J'ai une question.
<SPEAKER ID=1 NAME="Présidente">
Merci, il est tard. Bonne nuit.
"""
    for language, text in (("en", english), ("fr", french)):
        (tmp_path / language).mkdir()
        (tmp_path / language / "ep-00-01-17.txt").write_text(text, encoding="utf-8")
    (tmp_path / "en" / "ep-00-01-18.txt").write_text("<CHAPTER ID=1>\nAlone\n", encoding="utf-8")
    counts: Counter[str] = Counter()
    found = [tuple(pair) for pair in public.read_europarl([tmp_path], EN_FR, counts)]
    session = "ep-00-01-17"
    assert found == [
        (session, "Resumption", "Reprise"),
        (session, "I open the session.", "J'ouvre la session."),
        (session, "You are all welcome.", "Soyez les bienvenus."),
        (session, "This is one line and its end.", "Voici une ligne et sa fin."),
        (session, "Thank you. It is late. Good night.", "Merci, il est tard. Bonne nuit."),
    ]
    assert counts["paragraphs that do not match"] == 2


def test_everyday_sentences(tmp_path):
    text = "Go away.\tVa-t'en.\tCC-BY 2.0 (France) Attribution: …\nHi.\tSalut !\tCC-BY\nbroken\n"
    (tmp_path / "fra.txt").write_text(text, encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "fra-eng.zip", "w") as packed:
        packed.writestr("_about.txt", "terms " * 500)
        packed.writestr("fra.txt", text)
    for name in ("fra.txt", "fra-eng.zip"):
        counts: Counter[str] = Counter()
        found = list(public.read_tatoeba(tmp_path / name, EN_FR, counts))
        assert [pair[1:] for pair in found] == [("Go away.", "Va-t'en."), ("Hi.", "Salut !")]
        assert counts["not a pair"] == 1
    back = list(public.read_tatoeba(tmp_path / "fra.txt", ("fr", "en"), Counter()))
    assert back[0].source == "Va-t'en."
    (tmp_path / "export.tsv").write_text("12\tGo away.\t34\tVa-t'en.\n", encoding="utf-8")
    (pair,) = public.read_tatoeba(tmp_path / "export.tsv", EN_FR, Counter())
    assert pair[1:] == ("Go away.", "Va-t'en.")


@pytest.mark.parametrize("several", [False, True])
def test_a_saved_dataset(tmp_path, several, monkeypatch):
    datasets = pytest.importorskip("datasets", reason="pip install datasets")
    rows = [{"translation": {"de": b, "en": a}} for a, b in artificial(20)]
    found = datasets.Dataset.from_list(rows)
    if several:
        found = datasets.DatasetDict({"train": found})
    found.save_to_disk(str(tmp_path / "set"))
    read = list(
        public.read_dataset(
            str(tmp_path / "set"), ("de", "en"), Counter(), subset=None, split="train"
        )
    )
    assert [pair[1:] for pair in read] == [(b, a) for a, b in artificial(20)]
    with pytest.raises(CorpusError, match="translation with fr and en, got de, en"):
        list(
            public.read_dataset(
                str(tmp_path / "set"), ("fr", "en"), Counter(), subset=None, split="train"
            )
        )


def test_a_dataset_of_the_hub_is_asked_for_by_name(monkeypatch):
    datasets = pytest.importorskip("datasets", reason="pip install datasets")
    asked = []

    def load(name, subset, split):
        asked.append((name, subset, split))
        return datasets.Dataset.from_list([{"translation": {"en": "a", "fr": "b"}}])

    monkeypatch.setattr(datasets, "load_dataset", load)
    (pair,) = public.read_dataset(
        "opus_books", EN_FR, Counter(), subset="en-fr", split="validation"
    )
    assert pair[1:] == ("a", "b") and asked == [("opus_books", "en-fr", "validation")]


# ---------------------------------------------------------------------------------------------
# Hard knocks


def test_only_a_newline_ends_a_line_and_odd_lines_keep_the_files_in_step():
    odd = [
        "\ufeffone\r".encode(),
        "two \u2028 \u0085 \x0c still two".encode(),
        b"\xff\xfe three",
        b'"a lone quotation mark',
        b"five\twith a tab",
        b"x" * (public.MAX_LINE + 5),
        b"",
        b"eight",
    ]
    counts: Counter[str] = Counter()
    found = list(lines(io.BytesIO(b"\n".join(odd)), counts, "x"))
    assert found == [
        "one",
        "two \u2028 \u0085 \x0c still two",
        None,
        '"a lone quotation mark',
        "five\twith a tab",
        None,
        "",
        "eight",
    ]
    assert counts == {"not UTF-8": 1, "line too long": 1}


@given(st.lists(st.text(max_size=30).filter(lambda t: "\n" not in t), max_size=8))
def test_any_lines_come_back(texts):
    data = "\n".join([*texts, ""]).encode("utf-8", "replace")
    found = list(lines(io.BytesIO(data), Counter(), "x"))
    expected = [t.encode("utf-8", "replace").decode().rstrip("\r") for t in texts]
    if expected:
        expected[0] = expected[0].removeprefix("\ufeff")
    assert found == expected


def test_tabs_and_line_ends_inside_a_text_become_spaces(tmp_path):
    pair = Pair("d", "one\ttwo \u2028 three", "un\tdeux \x85 trois")
    made([pair], tmp_path)
    assert rows(tmp_path, "train") == [Pair("d", "one two three", "un deux trois")]


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.95])
def test_a_truncated_archive(tmp_path, kept):
    noise = "".join(f"{n * 7919 % 104729} line number {n}\n" for n in range(20_000)).encode()
    whole = archive(
        tmp_path / "whole.tgz", {"europarl-v7.fr-en.en": noise, "europarl-v7.fr-en.fr": noise}
    ).read_bytes()
    path = tmp_path / "cut.tgz"
    path.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(CorpusError, match="download it again|check --languages"):
        made(public.read_europarl([path], EN_FR, Counter()), tmp_path / "out")
    assert not (tmp_path / "out" / "train.tsv.xz").exists()
    assert not list((tmp_path / "out").iterdir())


def test_a_zip_whose_content_is_damaged(tmp_path):
    path = tmp_path / "fra-eng.zip"
    with zipfile.ZipFile(path, "w") as packed:  # stored, so that only the checksum can tell
        packed.writestr("fra.txt", "The boat.\tLe bateau.\tCC\n")
    path.write_bytes(path.read_bytes().replace(b"bateau", b"gateau"))
    with pytest.raises(CorpusError, match=r"fra-eng\.zip: cannot be read past .*download it again"):
        list(public.read_tatoeba(path, ("en", "fr"), Counter()))


def test_what_is_no_archive(tmp_path):
    path = tmp_path / "page.tgz"
    path.write_text("<html>Not found</html>", encoding="utf-8")
    with pytest.raises(CorpusError, match="expected a .tgz archive of Europarl.*download it again"):
        list(public.read_europarl([path], EN_FR, Counter()))
    with pytest.raises(CorpusError, match="lines of two texts"):
        list(public.read_tatoeba(path, EN_FR, Counter()))
    with pytest.raises(CorpusError, match="found none; check the path"):
        list(public.read_europarl([tmp_path / "nowhere.tgz"], EN_FR, Counter()))


def test_an_archive_of_another_pair(tmp_path):
    path = archive(tmp_path / "de-en.tgz", {"europarl-v7.de-en.de": b"x\n"})
    with pytest.raises(CorpusError, match="got europarl-v7.de-en.de; check --languages"):
        list(public.read_europarl([path], EN_FR, Counter()))


def test_members_with_tricks_are_never_unpacked(tmp_path):
    path = archive(
        tmp_path / "fr-en.tgz",
        {
            "../../evil": b"x",
            "/tmp/evil": b"x",
            "../europarl-v7.fr-en.en": ENGLISH.encode(),
            "/europarl-v7.fr-en.fr": FRENCH.encode(),
        },
    )
    before = set(tmp_path.rglob("*"))
    assert len(list(public.read_europarl([path], EN_FR, Counter()))) == 3
    assert set(tmp_path.rglob("*")) == before
    assert not (tmp_path.parent / "evil").exists()


# ---------------------------------------------------------------------------------------------
# Cleaning


@pytest.mark.parametrize(
    "text, expected",
    [
        ("ma soeur et son coeur", "ma sœur et son cœur"),
        ("Oeuvre, OEUVRE, chef-d'oeuvre", "Œuvre, ŒUVRE, chef-d'œuvre"),
        ("des noeuds, des voeux, des oeufs", "des nœuds, des vœux, des œufs"),
        ("la main-d'oeuvre et les moeurs", "la main-d'œuvre et les mœurs"),
        ("coexister, moelle, poêle, Noël, coefficient, goéland", None),
        ("Joel, Phoebe, boeing, coercition, poète", None),
    ],
)
def test_ligatures(text, expected):
    assert restore_ligatures(text) == (expected or text)


def test_ligatures_are_french_only():
    assert Cleaner(("fr", "en")).clean(Pair("d", "mon coeur", "my coeur")) == Pair(
        "d", "mon cœur", "my coeur"
    )


@pytest.mark.parametrize(
    "source, target, said",
    [
        ("", "Bonjour.", "empty"),
        (" \u200b ", "Bonjour.", "empty"),
        ("Yes.", "Oui, c'est tout à fait cela.", "lengths differ"),
        ("The boat is green.", "Le bateau est vert.", None),
        ("The boat is  green .", "Le bateau « est » vert ?", None),
    ],
)
def test_reasons(source, target, said):
    found = Cleaner(EN_FR).clean(Pair("d", source, target))
    assert (found if isinstance(found, str) else None) == said
    if said is None:
        assert "  " not in found.source and "«" not in found.target and " ?" not in found.target


def test_duplicates_but_for_case_and_spacing():
    cleaner = Cleaner(EN_FR)
    assert isinstance(cleaner.clean(Pair("d", "Thank you.", "Merci.")), Pair)
    assert cleaner.clean(Pair("e", "thank  you.", "MERCI.")) == "duplicate"
    assert isinstance(cleaner.clean(Pair("e", "Thank you.", "Merci bien.")), Pair)


def test_other_languages_are_dropped():
    pytest.importorskip("py3langid", reason="pip install 'seqviz[corpora]'")
    cleaner = Cleaner(EN_FR, language_check())
    english = "We cannot accept this proposal, because it would weaken our policy."
    french = "Nous ne pouvons pas accepter cette proposition, qui affaiblirait notre politique."
    german = "Wir können diesen Vorschlag nicht annehmen, weil er unsere Politik schwächen würde."
    assert isinstance(cleaner.clean(Pair("d", english, french)), Pair)
    for pair in ((english, english + " "), (french, french), (german, french), (english, german)):
        assert cleaner.clean(Pair("d", *pair)) == "other language", pair
    for pair in (("No.", "Non."), ("Ok.", "Ok."), ("Tom!", "Tom !")):
        assert isinstance(cleaner.clean(Pair("d", *pair)), Pair), pair  # too short to judge


def test_without_the_package_the_check_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "py3langid", None)
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises((CorpusError, ModuleNotFoundError)):
        language_check()


# ---------------------------------------------------------------------------------------------
# Languages that are written shorter or longer

CHINESE = [
    ("OK.", "好的。"),
    ("Go on.", "继续吧。"),
    ("Good morning.", "早上好。"),
    ("Where is the station?", "车站在哪里？"),
    ("I would like a cup of tea, please.", "请给我一杯茶。"),
    ("She has lived in this city for twelve years.", "她在这座城市住了十二年。"),
    ("My brother works in a small shop near the river.", "我哥哥在河边的一家小商店工作。"),
    ("It rained all day, so we stayed at home and read.", "下了一整天雨，所以我们待在家里看书。"),
    ("The train to the north leaves at half past seven.", "开往北方的火车七点半出发。"),
    ("If you have any questions, ask the teacher after class.", "如果有问题，下课后请问老师。"),
]


def test_pairs_of_languages_written_shorter_are_kept(tmp_path):
    pairs = [Pair("d", *pair) for pair in CHINESE]
    wrong = [
        Pair("d", "No.", "我们昨天在车站等了很久，可是火车没有来。"),
        Pair("d", "The bridge over the river was closed for the whole winter.", "早。"),
    ]
    report = made([*pairs, *wrong], tmp_path, languages=("en", "zh"))
    assert rows(tmp_path, "train") == pairs
    assert report["dropped"] == {"lengths differ": 2}
    assert 0.25 < report["settings"]["typical_ratio"] < 0.4
    assert all(Cleaner(("en", "zh")).clean(pair) == "lengths differ" for pair in pairs[3:])
    report = made([Pair("d", b, a) for _, a, b in pairs], tmp_path, languages=("zh", "en"))
    assert report["pairs"]["train"] == len(pairs) and report["dropped"] == {}
    assert 2.5 < report["settings"]["typical_ratio"] < 4


def test_languages_of_like_length_keep_the_plain_rule(tmp_path):
    longer = [Pair("d", f"{'a' * n} {n}", f"{'b' * int(1.3 * n)} {n}") for n in range(20, 60)]
    report = made([*longer, Pair("d", "word " * 10, "mot")], tmp_path)
    assert "typical_ratio" not in report["settings"]
    assert report["dropped"] == {"lengths differ": 1}


def test_a_long_chinese_text_in_another_language_is_dropped():
    cleaner = Cleaner(("en", "zh"), lambda text: "ko" if "이" in text else "en", 0.5)
    short, long = "이것은 책입니다", "이것은 아주 긴 문장이고 다른 언어로 쓰였습니다"
    assert isinstance(cleaner.clean(Pair("d", "This is a book.", short)), Pair)
    assert cleaner.clean(Pair("d", "This is one long sentence in it.", long)) == "other language"


def test_a_corpus_of_which_a_third_is_dropped_is_not_written(tmp_path, monkeypatch, capsys):
    english = [f"Sentence {n} is here." for n in range(6)]
    french = [f"La phrase {n} est ici." for n in range(4)] + ["Non.", "Oui."]
    (tmp_path / "a.en").write_text("\n".join(english) + "\n", encoding="utf-8")
    (tmp_path / "a.fr").write_text("\n".join(french) + "\n", encoding="utf-8")
    files = ("europarl", str(tmp_path / "a.en"), str(tmp_path / "a.fr"), "--no-language-check")
    out = tmp_path / "out"
    code, said = run(monkeypatch, capsys, *files, "--out", str(out))
    assert code == 1 and "2 of 6 (33%) are dropped for one reason, lengths differ" in said
    assert "nothing is written" in said and "--accept-dropped" in said
    assert len(said.strip().splitlines()) == 1 and not list(out.iterdir())
    code, said = run(monkeypatch, capsys, *files, "--out", str(out), "--accept-dropped")
    assert code == 0 and "dropped 2: lengths differ" in said and len(rows(out, "train")) == 4


def test_what_reading_dropped_counts_as_well(tmp_path):
    counts = Counter({"not UTF-8": 3, "line too long": 1})
    pairs = [Pair("d", f"word {n}", f"mot {n}") for n in range(4)]
    with pytest.raises(CorpusError, match=r"3 of 8 \(38%\) are dropped for one reason, not UTF-8"):
        build(pairs, tmp_path, Cleaner(EN_FR), HeldOut(share=0.0), counts, {})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--target", "xx"], "expected a language as a code of ISO 639-1"),
        (["--source", "fr"], "expected two different languages, got fr twice"),
        (["--languages", "eng-fra"], "got 'eng'"),
    ],
)
def test_wrong_languages_are_refused_in_one_line(tmp_path, monkeypatch, capsys, options, said):
    files = ("tatoeba", str(tmp_path / "a.zip"), "--out", str(tmp_path / "out"))
    code, output = run(monkeypatch, capsys, *files, *options)
    assert code == 2 and said in output


def test_source_and_target_go_before_languages(tmp_path, monkeypatch, capsys):
    path = tmp_path / "cmn.txt"
    path.write_text("".join(f"{a}\t{b}\tCC\n" for a, b in CHINESE), encoding="utf-8")
    out = tmp_path / "out"
    options = ("--source", "zh", "--target", "en", "--no-language-check", "--held-out", "0")
    code, _ = run(monkeypatch, capsys, "tatoeba", str(path), "--out", str(out), *options)
    assert code == 0
    assert json.loads((out / "corpus.json").read_text(encoding="utf-8"))["languages"] == [
        "zh",
        "en",
    ]
    assert rows(out, "train")[0][1:] == ("好的。", "OK.")


# ---------------------------------------------------------------------------------------------
# Holding out and writing


def test_training_shares_no_side_with_what_is_held_out(tmp_path):
    pairs = [
        Pair("train-1", "Thank you.", "Merci."),
        Pair("train-1", "The boat is green.", "Le bateau est vert."),
        Pair("test-1", "The  BOAT is green.", "Le bateau est tout vert."),
        Pair("dev-1", "Good morning.", "Bonjour."),
        Pair("train-2", "Good day.", "bonjour."),
    ]
    report = made(pairs, tmp_path, held_out=HeldOut(dev="dev-*", test="test-*"))
    assert [pair.source for pair in rows(tmp_path, "train")] == ["Thank you."]
    assert [pair.source for pair in rows(tmp_path, "test")] == ["The BOAT is green."]
    assert report["pairs"] == {"train": 1, "dev": 1, "test": 1}
    assert report["dropped"] == {"held out": 2} and report["read"] == 5
    assert report["held_out"]["documents"] == {"dev": ["dev-1"], "test": ["test-1"]}
    assert report == json.loads((tmp_path / "corpus.json").read_text(encoding="utf-8"))


def test_other_test_sets_are_kept_apart(tmp_path):
    other = tmp_path / "other.tsv"
    other.write_text("x\tGood morning.\tBonjour à tous.\n", encoding="utf-8")
    pairs = [Pair("d", "good  morning.", "Bonjour."), Pair("d", "Thank you.", "Merci.")]
    out = tmp_path / "out"
    report = build(
        pairs, out, Cleaner(EN_FR), HeldOut(share=0.0), Counter(), {"command": "test"}, [other]
    )
    assert [pair.source for pair in rows(out, "train")] == ["Thank you."]
    assert report["held_out"]["apart"][0]["name"] == "other.tsv"
    assert report["dropped"] == {"held out": 1}


def test_shares_are_whole_documents_and_the_same_whatever_else_there_is(tmp_path):
    pairs = [Pair(f"d{n // 10}", f"word {n}", f"mot {n}") for n in range(5000)]
    held_out = HeldOut(share=0.1)
    where = {pair: held_out.set_of(pair) for pair in pairs}
    for document in {pair.document for pair in pairs}:
        assert len({where[pair] for pair in pairs if pair.document == document}) == 1
    counts = Counter(where.values())
    assert 300 < counts["test"] < 700 and 300 < counts["dev"] < 700
    alone = {held_out.set_of(Pair("", f"Word  {n}", "x")) for n in range(2)}
    assert alone == {held_out.set_of(Pair("", f"word {n}", "y")) for n in range(2)}


def test_nothing_is_half_written(tmp_path):
    made([Pair("d", "Old.", "Vieux.")], tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def broken():
        yield Pair("d", "New.", "Neuf.")
        raise CorpusError("the disk is gone")

    with pytest.raises(CorpusError, match="the disk is gone"):
        made(broken(), tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_nothing_left_says_why(tmp_path):
    with pytest.raises(CorpusError, match="got none of 2 .*empty 2"):
        made([Pair("d", "", ""), Pair("d", " ", "x")], tmp_path)


def test_the_command(tmp_path, monkeypatch, capsys):
    pytest.importorskip("py3langid", reason="pip install 'seqviz[corpora]'")
    (tmp_path / "a.en").write_text(ENGLISH, encoding="utf-8")
    (tmp_path / "a.fr").write_text(FRENCH, encoding="utf-8")
    out = tmp_path / "out"
    files = (str(tmp_path / "a.en"), str(tmp_path / "a.fr"))
    code, said = run(monkeypatch, capsys, "europarl", *files, "--out", str(out))
    assert code == 0 and "train.tsv.xz: 3 pairs" in said
    assert "no document fell into dev" in said and "larger --held-out" in said
    assert "right way round" not in said
    report = json.loads((out / "corpus.json").read_text(encoding="utf-8"))
    assert [file["name"] for file in report["data"]] == ["a.en", "a.fr"]
    assert str(tmp_path) not in json.dumps(report)
    code, said = run(
        monkeypatch, capsys, "europarl", *files, "--languages", "en", "--out", str(out)
    )
    assert code == 2 and "expected --languages such as en-fr" in said
    code, said = run(monkeypatch, capsys, "tatoeba", str(tmp_path / "no.zip"), "--out", str(out))
    assert code == 1 and len(said.strip().splitlines()) == 1 and "check the path" in said


def worked_example() -> list[str]:
    """The commands of the worked example, as the page on training has them."""
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    found = re.search(r"## A worked example\n.*?```sh\n(.*?)```", page, re.DOTALL)
    assert found
    return found[1].replace("\\\n", " ").strip().splitlines()


def test_the_worked_example(tmp_path):
    """From two files to a translation in German, by the very commands."""
    pytest.importorskip("py3langid", reason="pip install 'seqviz[corpora]'")
    said = ""
    for command in worked_example():
        words = shlex.split(command)
        if words[0] == "seqviz":
            words = [sys.executable, "-m", "seqviz", *words[1:]]
        elif words[0] == "python":
            words = [sys.executable, str(ROOT / words[1]), *words[2:]]
        found = subprocess.run(
            words,
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "XDG_CACHE_HOME": str(tmp_path),
            },
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert found.returncode == 0, f"{command}\n{found.stderr}"
        said = found.stdout
    assert said.strip() == "Der alte Kapitän verkauft zwei Bücher."
    training = json.loads((tmp_path / "my" / "transformer" / "training.json").read_text("utf-8"))
    assert training["dev_loss"] < 0.3
