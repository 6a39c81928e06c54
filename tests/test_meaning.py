"""What a French word means: how words are looked up, and the shipped tables."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from seqviz import meaning
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
    assert line("Elle n'est pas là, je suis ici.", "en") == "she not is not there, I am here."
    assert line("Elle n’est pas là, je suis ici.", "zh") == "她 不 是 (不) 那里，我 是 这里。"
