"""Numbers of training pairs get other digits in each language's own format."""

import re
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqviz.data.numbers import mended, swapped
from seqviz.digits import numbers, unmatched, values


def _many(english, french, count=200):
    return [swapped(english, french, Random(seed)) for seed in range(count)]


@pytest.mark.parametrize(
    ("english", "french", "english_form", "french_form"),
    [
        ("Room 305 is free.", "La chambre 305 est libre.", r"Room \d{1,3} is free\.", r"La chambre \d{1,3} est libre\."),
        ("On 03/04/2025.", "Le 03/04/2025.", r"On \d\d/\d\d/\d{4}\.", r"Le \d\d/\d\d/\d{4}\."),
        ("In 1996, yes.", "En 1996, oui.", r"In [12]\d{3}, yes\.", r"En [12]\d{3}, oui\."),
        ("At 2:30.", "À 14 h 30.", r"At \d\d?:\d\d\.", r"À \d\d h \d\d\."),
        ("At 09:00.", "À 9h00.", r"At \d\d:00\.", r"À \d\d?h00\."),
        ("About 3.5 tonnes.", "Environ 3,5 tonnes.", r"About \d\.\d\d? tonnes\.", r"Environ \d,\d\d? tonnes\."),
        ("Section 3.2.", "Section 3.2.", r"Section \d\.\d\.", r"Section \d\.\d\."),
        ("12,345 people", "12 345 personnes", r"\d\d,\d{3} people", r"\d\d \d{3} personnes"),
        ("12 345 people", "12.345 personnes", r"\d\d \d{3} people", r"\d\d\.\d{3} personnes"),
        ("3,500 people", "3500 personnes", r"\d,\d{3} people", r"\d{4} personnes"),
        ("A5-0104/98", "A5-0104/98", r"A5-0\d{3}/\d\d", r"A5-0\d{3}/\d\d"),
        ("7 or 8 of 7", "7 ou 8 de 7", r"(\d+) or \d+ of \1", r"(\d+) ou \d+ de \1"),
    ],
)  # fmt: skip
def test_both_sides_get_the_same_digits_in_their_own_format(
    english, french, english_form, french_form
):
    outcomes = _many(english, french)
    assert len(set(outcomes)) > 20 or "9" in english  # 09:00 has few hours
    for new_english, new_french in outcomes:
        assert new_english != english and new_french != french
        assert re.fullmatch(english_form, new_english), new_english
        assert re.fullmatch(french_form, new_french), new_french
        assert unmatched(new_english, new_french) == ([], [])


@pytest.mark.parametrize(
    ("english", "french"),
    [
        ("There is 1 way and 0 doubt.", "Il y a 1 moyen et 0 doute."),
        ("1.0 and 0.0", "1,0 et 0,0"),
        ("On the 2nd day of the 21st century.", "Le 2e jour du XXIe siècle."),
        ("The 1990s.", "Les années 1990."),
        ("Two of 5 days.", "2 de cinq jours."),
        ("In 1830.", "En 1930."),
        ("3 and 3 make six.", "3 font six."),
        ("CO2 and G8.", "CO2 et G8."),
        ("3.11.2 is new.", "3.11.2 est neuf."),
        ("At 2:30.", "À 2 h 35."),
        ("No digit.", "Pas de chiffre."),
    ],
)
def test_nothing_is_swapped_that_must_stay_or_that_the_sides_disagree_about(english, french):
    assert set(_many(english, french, 50)) == {(english, french)}


def test_what_stands_beside_a_number_limits_it():
    for english, _ in _many(
        "On 8 March, an 80 % rise, 1.5 million.", "Le 8 mars, 80%, 1,5 million."
    ):
        day, percent, millions = values(english, "en")
        assert 2 <= int(day) <= 28
        assert re.search(r"an (8|11\b|18\b)", english) and Decimal(percent) < 100
        assert Decimal(millions) < 2
    for english, _ in _many("a 30-minute talk", "un discours de 30 minutes"):
        assert not re.search(r"\b(8|11\b|18\b)", english)


def test_dates_in_words_are_written_in_digits_at_times():
    outcomes = _many("On 8 March 2000 we met.", "Le 8 mars 2000, nous nous sommes vus.")
    digits = [e for e, _ in outcomes if re.search(r"\d/\d+/\d{4}", e)]
    assert 80 < len(digits) < 160
    for english, french in outcomes:
        assert unmatched(english, french) == ([], [])
    for english, french in _many("On March 9th, 2000.", "Le 8 mars 2000.", 30):
        assert "March" in english and "mars" in french


def test_prices_take_many_shapes_and_signs():
    outcomes = _many("It costs EUR 500 a year.", "Cela coûte 500 euros par an.")
    assert all(unmatched(*outcome) == ([], []) for outcome in outcomes)
    text = "\n".join(e + "\t" + f for e, f in outcomes)
    assert re.search(r"€\d,\d{3}\.\d\d .*\t.* \d \d{3},\d\d €", text)
    assert re.search(r"EUR \d+ .*\t.* \d+ euros", text)


def test_an_unknown_character_takes_the_place_of_one_number():
    assert swapped("Room 305.", "Chambre 305.", Random(1), unknown="你") == (
        "Room 你.",
        "Chambre 你.",
    )
    english, french = swapped("5 of 9.", "5 de 9.", Random(1), unknown="你")
    assert english.count("你") == french.count("你") == 1
    assert len(values(english, "en")) == 1


def test_needless_spaces_inside_numbers_go_where_the_other_side_shows_it():
    assert mended("Up 0.7 %.", "Plus 0, 7%.") == ("Up 0.7 %.", "Plus 0,7%.")
    assert mended("5, 000 men", "5 000 hommes") == ("5,000 men", "5 000 hommes")
    assert mended("Nos 3, 7 and 5, 200", "3, 7 et 5, 200") == (
        "Nos 3, 7 and 5, 200",
        "3, 7 et 5, 200",
    )


_NUMBER = st.tuples(st.integers(0, 10**7), st.sampled_from([None, 1, 2]), st.integers(0, 99))


def _pair(items):
    english, french = [], []
    for whole, decimals, fraction in items:
        tail = "" if decimals is None else f"{fraction:02}"[:decimals]
        english.append(f"{whole:,}" + (f".{tail}" if tail else ""))
        french.append(f"{whole:,}".replace(",", " ") + (f",{tail}" if tail else ""))
    return "We saw " + "; then ".join(english) + ".", "Vu " + "; puis ".join(french) + "."


@given(st.lists(_NUMBER, max_size=5), st.integers(0, 2**32))
def test_swapping_keeps_the_values_equal_and_0_and_1_where_they_are(items, seed):
    english, french = _pair(items)
    new_english, new_french = swapped(english, french, Random(seed))
    assert unmatched(new_english, new_french) == ([], [])
    before, after = values(english, "en"), values(new_english, "en")
    assert len(before) == len(after)
    assert [v if v in ("0", "1") else "" for v in before] == [
        v if v in ("0", "1") else "" for v in after
    ]


@given(
    st.text("0123456789 .,:/-h%eanst€'", max_size=40),
    st.text("0123456789 .,:/-h%ersn€'", max_size=40),
    st.integers(0, 99),
)
def test_no_text_breaks_swapping_and_only_digits_and_marks_change(english, french, seed):
    new = swapped(english, french, Random(seed))
    assert new == swapped(english, french, Random(seed))
    for old, fresh in zip((english, french), new):
        assert re.sub("[^a-z%]", "", old) == re.sub("[^a-z%]", "", fresh)
    if not numbers(english, "en"):
        assert new == (english, french)
