"""What a French word means: how words are looked up, and the shipped tables."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from seqviz import cli, meaning
from seqviz.coverage import trainer
from seqviz.handwritten import texts
from seqviz.meaning import MeaningError, gloss, lacking, line

EN = {
    "a": "has",
    "dis": "say",
    "donne": "give",
    "est": "is",
    "fermée": "closed",
    "grand-mère": "grandmother",
    "grand": "tall",
    "jusqu'": "until",
    "l'": "the",
    "le": "the",
    "moi": "me",
    "n'": "not",
    "peut-être": "perhaps",
    "quelqu'un": "someone",
    "qu'": "that",
    "t": "WRONG",
    "t-il": "he",
    "vingt": "twenty",
    "école": "school",
    "œuf": "egg",
}


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Small tables in a folder of their own; English has one that is overruled."""
    write(tmp_path / "meanings.fr-en.made.tsv", {"est": "east", "fermier": "farmer"})
    write(tmp_path / "meanings.fr-en.tsv", EN)
    write(tmp_path / "meanings.fr-zh.tsv", {"l'": "这", "école": "学校", "est": "是"})
    monkeypatch.setattr(meaning, "models_folder", lambda: tmp_path)
    meaning.table.cache_clear()
    yield tmp_path
    meaning.table.cache_clear()


def write(path: Path, rows: dict[str, str]) -> None:
    text = "".join(f"{form}\t{rows[form]}\n" for form in sorted(rows))
    path.write_text(text, encoding="utf-8")


def run(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[object, str, str]:
    monkeypatch.setattr(sys, "argv", ["seqviz", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


def pairs(french: str, language: str = "en") -> list[tuple[str, str | None]]:
    return [(word.french, word.meaning) for word in gloss(french, language)]


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("french", "expected"),
    [
        ("École", [("École", "school")]),
        ("FERMÉE", [("FERMÉE", "closed")]),
        ("L'école", [("L'", "the"), ("école", "school")]),
        ("l\u2019école", [("l\u2019", "the"), ("école", "school")]),
        ("l\u02bcécole", [("l\u02bc", "the"), ("école", "school")]),
        ("l' école", [("l'", "the"), ("école", "school")]),
        ("Qu'l'école", [("Qu'", "that"), ("l'", "the"), ("école", "school")]),
        ("jusqu'école", [("jusqu'", "until"), ("école", "school")]),
        ("quelqu\u2019un", [("quelqu\u2019un", "someone")]),
        ("d'Tom", [("d'", None), ("Tom", None)]),
        ("grand-mère", [("grand-mère", "grandmother")]),
        ("grand\u2011mère", [("grand\u2011mère", "grandmother")]),
        ("grand-rue", [("grand", "tall"), ("rue", None)]),
        ("donne-moi", [("donne", "give"), ("moi", "me")]),
        ("a-t-il", [("a", "has"), ("t-il", "he")]),
        ("Roth-Behrendt", [("Roth-Behrendt", None)]),
        ("fermier", [("fermier", "farmer")]),
        ("fermiers", [("fermiers", None)]),
        ("est", [("est", "is")]),
        ("vingt 20 3,5 1 000", [("vingt", "twenty"), *((n, None) for n in "20 3 5 1 000".split())]),
        ("éco\u00adle", [("école", "school")]),
        ("« œuf » !", [("œuf", "egg")]),
        ("", []),
        ("… — '", []),
    ],
)
def test_how_a_word_is_looked_up(french: str, expected: list[tuple[str, str | None]]) -> None:
    assert pairs(french) == expected
    assert pairs(unicodedata.normalize("NFD", french)) == expected


@pytest.mark.usefixtures("tables")
def test_the_line_keeps_punctuation_in_the_way_of_its_language() -> None:
    french = "L’école est fermée, Tom ? Dis-moi : 3,5... Est."
    assert line(french, "en") == "the school is closed, Tom? say me: 3,5... is."
    assert line(french, "zh") == "这 学校 是 fermée，Tom？Dis-moi：3,5……是。"
    assert line("", "zh") == ""


@pytest.mark.usefixtures("tables")
def test_what_lacks_an_entry() -> None:
    assert lacking("Le fermier Tom a 20 poules. Paris dort, dit Marie !", "en") == [
        "poules",
        "Paris",  # opens a sentence: might be any word
        "dort",
        "dit",
    ]
    assert lacking("L'école est", "zh") == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("école\n", "line 1: expected a French form .* got 'école'"),
        ("école\t\n", "line 1: expected"),
        ("école\t 学校\n", "line 1: expected"),
        ("\tschool\n", "line 1: expected"),
        ("École\tschool\n", "line 1: expected"),
        ("l\u2019\tthe\n", "line 1: expected"),
        ("b\tx\na\tx\n", "line 2: expected"),
        ("a\tx\na\ty\n", "line 2: expected"),
        (None, "it cannot be read .* restore the file"),
    ],
)
def test_a_damaged_table(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "table.tsv"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(MeaningError, match=message):
        meaning.read(path)


def test_another_language() -> None:
    with pytest.raises(MeaningError, match="expected a language of en, zh, got 'de'"):
        gloss("école", "de")


def test_the_shipped_tables() -> None:
    assert line("Elle n'est pas là, je suis ici.", "en") == "she not is (not) there, I am here."
    assert line("Elle n’est pas là, je suis ici.", "zh") == "她 不 是 (不) 那里，我 是 这里。"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_shown_word_has_a_meaning(language: str) -> None:
    """Numbers and names aside. What the models make up says so: "(no word)"."""
    found = meaning.coverage(meaning.shown_texts(), language)
    assert found.words > 1000
    assert not found.lacking, (
        "run 'seqviz meanings --shown' and add rows to the hand-written tables"
    )


def test_the_chinese_table_is_chinese_and_large() -> None:
    rows = meaning.table("zh")
    assert len(rows) >= 3000
    assert (rows["maison"], rows["n'"], rows["quelqu'un"]) == ("房子", "不", "某人")
    assert max(map(len, rows.values())) <= 16
    mostly = sum(any("\u4e00" <= c <= "\u9fff" for c in found) for found in rows.values())
    assert mostly / len(rows) > 0.98  # the others are names


def test_a_hand_written_meaning_overrules_a_made_one() -> None:
    made, hand = (meaning.read(meaning.models_folder() / name) for name in meaning.FILES["en"])
    assert len(made) >= 9000 and len(hand) >= 1500
    both = [form for form in hand if made.get(form, hand[form]) != hand[form]]
    assert both and all(meaning.table("en")[form] == hand[form] for form in both)


@pytest.mark.usefixtures("tables")
def test_coverage_counts_running_words() -> None:
    found = meaning.coverage(
        ["Le fermier dort, dort.", "20 écoles ? École !", "Il voit Tom."], "en"
    )
    assert found.words == 9 and found.known == 3
    assert found.lacking == {"dort": 2, "écoles": 1, "il": 1, "voit": 1}
    assert meaning.coverage([], "zh") == (0, 0, {})


def test_shown_texts_are_outputs_and_texts_by_hand(tables: Path) -> None:
    (tables / "report").mkdir()
    content = {
        "outputs": {"a": [{"rnn": "Un."}], "n": 3},
        "command": "no",
        "x": [{"outputs": "Deux."}],
    }
    (tables / "report" / "r.json").write_text(json.dumps(content), encoding="utf-8")
    shown = meaning.shown_texts()
    assert shown[:2] == ["Un.", "Deux."]
    assert texts("examples")[0]["french"] in shown and "no" not in shown


def test_check_prints_what_lacks_a_meaning(
    tables: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "outputs.txt"
    path.write_text("L'école dort.\nElle est fermée 3 fois, dit Tom.\n", encoding="utf-8")
    code, printed, _ = run(["meanings", "--check", str(path)], monkeypatch, capsys)
    assert code == 1
    assert printed.splitlines() == [
        *(f"en\t{word}\t1" for word in ("dit", "dort", "elle", "fois")),
        "en: 4 of 9 running words have a meaning (44.4%); 4 words lack one",
        *(f"zh\t{word}\t1" for word in ("dit", "dort", "elle", "fermée", "fois")),
        "zh: 3 of 9 running words have a meaning (33.3%); 5 words lack one",
    ]
    path.write_text("L'école est 3 !\n", encoding="utf-8")
    code, printed, _ = run(["meanings", "--check", str(path)], monkeypatch, capsys)
    assert code == 0
    assert printed.splitlines()[0] == (
        "en: 3 of 3 running words have a meaning (100.0%); 0 words lack one"
    )


def test_the_english_table_is_made_from_a_corpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = tmp_path / "pairs.tsv"
    numbers = [("the", "les"), ("two", "deux"), ("20", "20")]
    rows = [
        (f"{e} {w}s", f"{f} {v}s")
        for e, f in numbers
        for w, v in [("dog", "chien"), ("cat", "chat")]
    ]
    rows += [("one dog", "un chien"), ("one cat", "un chat")]
    corpus.write_text(
        "".join(f"d{i}\t{e}\t{f}\n" for i in range(20) for e, f in rows), encoding="utf-8"
    )
    out = tmp_path / "made.tsv"
    code, _, said = run(
        ["meanings", "--data", str(corpus), "--out", str(out), "--words", "7"], monkeypatch, capsys
    )
    assert code == 0 and "7 French forms" in said.splitlines()[-1]
    made = meaning.read(out)
    assert made["chiens"] == "dogs" and made["chien"] == "dog" and made["chats"] == "cats"
    assert "20" not in made and len(made) == 7


def test_a_made_meaning_is_a_content_word_where_there_is_one() -> None:
    assert trainer._content_first(["up", "gets", "raises"]) == "gets"
    assert trainer._content_first(["ca", "manage"]) == "manage"  # of "can't"
    assert trainer._content_first(["The", "of"]) == "The"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shown", "--data", "x.tsv"], "expected either --data"),
        (["--data", "x.tsv"], "expected --out"),
        (["--shown", "--out", "x.tsv"], "--out goes with --data"),
        (["--check", "none.txt"], "expected a text file at none.txt, found none"),
    ],
)
def test_wrong_use(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, printed, said = run(["meanings", *arguments], monkeypatch, capsys)
    assert code == 2 and message in said and not printed
