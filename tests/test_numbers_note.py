"""A number that a translation lost, changed or invented is said; other formats and words are no change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from seqviz import cli
from seqviz.translating import notes, number_words, search
from seqviz.translating.notes import Note
from seqviz.translating.numbers import Differences, differences
from seqviz.translating.result import Translation
from seqviz.translating.translator import Translator
from seqviz.ui import cards

PAIRS = [
    line.split("\t")
    for line in (Path(__file__).parent / "number_pairs.tsv").read_text("utf-8").splitlines()
]
"""Written by hand: English, French, and the French with a number that is not the same."""


def test_there_are_a_hundred_pairs_of_each() -> None:
    assert len(PAIRS) == len({source for source, _, _ in PAIRS}) == 100
    assert all(correct != changed for _, correct, changed in PAIRS)


@pytest.mark.parametrize(("source", "correct", "changed"), PAIRS)
def test_a_changed_number_is_found_and_a_right_one_is_not(
    source: str, correct: str, changed: str
) -> None:
    assert differences(source, correct) == Differences((), ())
    found = differences(source, changed)
    assert found.missing or found.invented
    assert all(number in source for number in found.missing)
    assert all(number in changed for number in found.invented)


def test_missing_and_invented_are_named_as_they_are_written() -> None:
    assert differences("It costs €1,234.56.", "Cela coûte 1 234,65 €.") == Differences(
        ("1,234.56",), ("1 234,65",)
    )
    assert differences("On 03/04/2025.", "Le 30/204/2025.").missing == ("03/04/2025",)
    assert differences("Hello!", "Bonjour 2 fois!") == Differences((), ("2",))
    assert differences("Room 305.", "La chambre.") == Differences(("305",), ())
    # Digits alone are not all of a number.
    assert differences("2.5 billion", "2,5 millions") == Differences(("2.5",), ("2,5",))
    assert differences("15 euros", "15 millions d'euros") == Differences(("15",), ("15",))
    assert differences("2 to 3 million euros", "2 à 3 millions d'euros") == ((), ())
    assert differences("£2m is 2,000", "2 millions sont 2 000") == ((), ())
    # Groups of digits may be set apart otherwise, but not in short numbers.
    assert differences("Call 0612345678.", "Appelez le 06 12 34 56 87.").missing == ("0612345678",)
    assert differences("2.5 %", "2, 5 %") == (("2.5",), ("2", "5"))
    # Each number counts: three times is not twice.
    assert differences("3, 3 and 3", "3 et 3") == Differences(("3",), ())
    # One word stands for one figure.
    assert differences("Rooms 3 and 3.", "Les chambres trois.") == Differences(("3",), ())


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("quatre-vingt-dix-sept mille neuf cent quatre-vingts", "fr", ["97980"]),
        ("vingt et un, deux et trois", "fr", ["21", "2", "3"]),
        ("entre mille huit cent vingt et mille neuf cent", "fr", ["1820", "1900"]),
        ("dix-sept, soixante et onze, cent un", "fr", ["17", "71", "101"]),
        ("la vingt et unième fois, le premier", "fr", ["21", "1"]),
        ("two hundred and five and six", "en", ["205", "6"]),
        ("nineteen ninety-four", "en", ["1994"]),
        ("the forty-second of twelve", "en", ["42", "12"]),
        ("a hundred thousand", "en", ["100000"]),
        ("drei", "de", []),
    ],
)
def test_number_words(text: str, language: str, expected: list[str]) -> None:
    assert [worth[0] for worth in number_words.read(text, language).numbers] == expected


def test_without_known_words_only_a_change_is_found() -> None:
    assert differences("At 3.", "Um drei.", "en", "de") == Differences((), ())
    assert differences("At 3.", "Um 4.", "en", "de") == Differences(("3",), ("4",))
    assert differences("It costs 1,234.56.", "Es kostet 1.234,56.", "en", "de") == ((), ())


# ---------------------------------------------------------------------------------------------
# As a note


@pytest.fixture
def answering(tiny_model: Any, tiny_tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A translator whose search writes a given French text."""
    translator = Translator(tiny_model("lstm"), tiny_tokenizer, name="lstm")

    def answer(text: str) -> Translator:
        ids = (*tiny_tokenizer(text, add_special_tokens=False).input_ids, 0)
        found = search.Hypothesis(ids, (-1.0,) * len(ids), finished=True)
        monkeypatch.setattr(search, "greedy", lambda _, rows, *args, **kwargs: [found] * len(rows))
        return translator

    return answer


def _note(found: Translation) -> Note:
    (note,) = (note for note in found.notes if note.kind == "numbers")
    return note


def test_the_note_names_the_numbers_in_every_language_of_the_page(answering: Any) -> None:
    found = answering("La chambre 3055.").translate(["Room 305."])[0]
    note = _note(found)
    assert note.values == (("305",), ("3055",))
    assert note.message == "check the numbers: missing 305; not in the source 3055"
    assert {"kind": "numbers", "message": note.message} in found.to_dict()["notes"]
    for language in ("en", "zh"):
        markup = cards.notes(found.notes, language)
        assert "305" in markup and "3055" in markup
    right = answering("La chambre 305.").translate(["Room 305."])[0]
    assert "numbers" not in {note.kind for note in right.notes}


def test_one_side_alone_is_said_too(answering: Any) -> None:
    missing = _note(answering("La chambre.").translate(["Room 305."])[0])
    invented = _note(answering("La chambre 7.").translate(["The room."])[0])
    assert missing.message == "check the numbers: missing 305"
    assert invented.message == "check the numbers: not in the source 7"
    for language in ("en", "zh"):
        said = [notes.said(note, language) for note in (missing, invented)]
        assert "305" in said[0] and "7" in said[1] and "{" not in "".join(said)


def test_the_numbers_of_all_parts_and_paragraphs_are_said(answering: Any) -> None:
    translator = answering("Le 7.")
    text = " ".join([*["Nobody likes it at all today."] * 16, "Room 305."])
    found = translator.translate(text)
    assert len(found.parts) == 17
    assert _note(found).values == (("305",), ("7",) * 17)
    both = [translator.translate(["Room 305."])[0], translator.translate(["Room 12."])[0]]
    markup = cards.notes([note for one in both for note in one.notes], "en")
    assert "305, 12" in markup and markup.count("<li>") == 1


def test_the_command_says_it(answering: Any, monkeypatch: Any) -> None:
    translator = answering("La chambre 3055.")
    monkeypatch.setattr("seqviz.translating.loading.load", lambda name: translator)
    result = CliRunner().invoke(cli.app, ["translate", "Room 305."])
    assert result.stdout == "La chambre 3055.\n"
    assert "note: check the numbers: missing 305" in result.stderr


@pytest.mark.parametrize(
    ("source", "target", "missing", "invented"),
    [
        ("Born on 03/04/2025.", "Né le 30/204/2025.", ("03/04/2025",), ("30", "204", "2025")),
        ("It is 305.", "C'est 3055.", ("305",), ("3055",)),
        ("€1,234.56", "11, 234, 56", ("1,234.56",), ("11", "234", "56")),
        (
            "See https://www.europa.eu/news/12.",
            "Voir le www.euurope.ue.",
            ("https://www.europa.eu/news/12",),
            ("www.euurope.ue",),
        ),
        ("Mail to a.b1@c.org, now", "À a.b1@d.org", ("a.b1@c.org",), ("a.b1@d.org",)),
        ("See WWW.seqviz.org/?n=3.", "Voir www.seqviz.org/?n=3, oui", (), ()),
        ("Twice: www.a.org and www.a.org", "Deux fois : www.a.org", ("www.a.org",), ()),
    ],
)
def test_dates_amounts_and_addresses_that_change(
    source: str, target: str, missing: tuple[str, ...], invented: tuple[str, ...]
) -> None:
    assert differences(source, target) == (missing, invented)
