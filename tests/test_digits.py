"""Numbers in digits are read after each language's format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqviz.digits import matched, numbers, unmatched, values


@pytest.mark.parametrize(
    ("english", "french", "expected"),
    [
        ("It costs €1,234.56.", "Cela coûte 1 234,56 €.", ["1234.56"]),
        ("It costs $12,345,678.", "Cela coûte 12 345 678 dollars.", ["12345678"]),
        ("20 000 people", "20.000 personnes", ["20000"]),
        ("Room 305 is free.", "La chambre 305 est libre.", ["305"]),
        ("About 3.50 % of it.", "Environ 3,5% de cela.", ["3.5"]),
        ("0.05 of 7", "0,05 de 7", ["0.05", "7"]),
        ("On 03/04/2025.", "Le 03/04/2025.", ["3/4/2025"]),
        ("On 2025-04-03.", "Le 03.04.2025.", ["3/4/2025"]),
        ("March 3, 2025", "3 mars 2025", ["3", "2025"]),
        ("January 1st", "1er janvier", ["1"]),
        ("the 21st century", "le XXIe siècle", ["21"]),
        ("the 2nd of 14 days", "le 2e de 14 jours", ["2", "14"]),
        ("Article 3.2 of 2001/20", "l'article 3.2 de 2001/20", ["3.2", "2001", "20"]),
        ("version 3.11.2", "version 3.11.2", ["3.11.2"]),
        ("address 192.168.1.1", "adresse 192.168.1.1", ["192.168.1.1"]),
        ("In 2003 500 people came.", "En 2003 500 personnes vinrent.", ["2003", "500"]),
        ("Give me 3,4,5.", "Donne-moi 3,4,5.", ["3", "4", "5"]),
        ("A5-0104/98 and CO2", "A5-0104/98 et CO2", ["5", "104", "98", "2"]),
        ("At 2:30.", "À 2 h 30.", ["2:30"]),
        ("After 2:30:45", "Après 2:30:45", ["2:30", "45"]),
        ("No digit at all", "Pas un chiffre : la Vie", []),
    ],
)
def test_both_formats_give_the_same_values(english, french, expected):
    assert values(english, "en") == expected
    assert values(french, "fr") == expected


@pytest.mark.parametrize(
    ("english", "french"),
    [
        ("At 2:30.", "À 14 h 30."),
        ("At 2.30 p.m.", "À 14h30."),
        ("At 9.30 tomorrow", "Demain à 9 h 30"),
        ("At 4:00 p.m.", "À 16 heures"),
        ("At 6 o'clock", "À 18 h"),
        ("At 6 pm", "À six ou 18 heures"),
        ("At 12 a.m.", "À 0 h"),
        ("For 48 hours", "Pendant 48 heures"),
        ("For 18 hours", "Pendant 18 heures"),
        ("the 1990s", "les années 90"),
        ("1.5 million people", "1 500 000 personnes"),
        ("2.5 billion people", "2,5 milliards de personnes"),
        ("2,500 million people", "2,5 milliards de personnes"),
        ("3, then 5", "5, puis 3"),
    ],
)
def test_other_ways_to_write_the_same_are_no_difference(english, french):
    assert unmatched(english, french) == ([], [])


@pytest.mark.parametrize(
    ("english", "french", "lost", "added"),
    [
        ("Room 305", "Chambre 3055", ["305"], ["3055"]),
        ("On 03/04/2025", "Le 30/204/2025", ["3/4/2025"], ["30", "204", "2025"]),
        ("€1,234.56", "11, 234, 56", ["1234.56"], ["11", "234", "56"]),
        ("€1,234.56", "1,234 €", ["1234.56"], ["1.234"]),
        ("At 2:30 a.m.", "À 14 h 30", ["2:30"], ["14:30"]),
        ("At 2:30", "À 2 h 35", ["2:30"], ["2:35"]),
        ("3 and 3", "3", ["3"], []),
        ("8 people", "huit personnes", ["8"], []),
    ],
)
def test_other_digits_are_a_difference(english, french, lost, added):
    left, right = unmatched(english, french)
    assert [n.value for n in left] == lost
    assert [n.value for n in right] == added


def test_a_number_says_where_it_stands_and_what_it_is():
    text = "The 2nd, A4, the 1990s, 03/04/2025, 2:30 p.m. and €1,234.50."
    found = numbers(text, "en")
    assert [(text[n.start : n.end], n.kind, n.digits) for n in found] == [
        ("2", "ordinal", "2"),
        ("4", "code", "4"),
        ("1990", "decade", "1990"),
        ("03/04/2025", "date", "03/04/2025"),
        ("2:30", "time", "2:30"),
        ("1,234.50", "number", "1234.50"),
    ]


def test_each_number_is_matched_once_and_the_likeliest_value_first():
    source, target = numbers("6 o'clock, 18 people", "en"), numbers("18 personnes à 6 heures", "fr")
    assert [(a.value, b.value) for a, b in matched(source, target)] == [("6", "6"), ("18", "18")]
    assert len(matched(numbers("7 7 7", "en"), numbers("7 7", "fr"))) == 2


@given(st.integers(0, 10**9), st.one_of(st.none(), st.integers(0, 99)))
def test_any_amount_written_in_both_formats_is_equal(whole, cents):
    decimals = "" if cents is None else f"{cents:02}"
    english = f"{whole:,}" + (f".{decimals}" if decimals else "")
    french = f"{whole:,}".replace(",", " ") + (f",{decimals}" if decimals else "")
    assert unmatched(f"It is {english}.", f"C'est {french}.") == ([], [])
    assert len(values(f"C'est {french}.", "fr")) == 1


@given(
    st.text("0123456789.,:/- aphm%\u00a0\u202fe'XV", max_size=40),
    st.sampled_from(["en", "fr", "zh"]),
)
def test_every_digit_lies_in_exactly_one_number_in_order(text, language):
    found = numbers(text, language)
    inside = [place for n in found for place in range(n.start, n.end)]
    assert inside == sorted(set(inside))
    assert {i for i, c in enumerate(text) if c in "0123456789"} <= set(inside)
