"""Persons in training pairs get other names on both sides."""

import json
import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqviz.data.names import NameList, NameListError, swapped
from seqviz.shipped import models_folder
from seqviz.tokenizer import load

NAMES = NameList(
    women=("Ada", "Mei", "Zoé"),
    men=("Omar", "Tom", "Jean"),
    family=("Nowak", "Zhang", "Okafor", "Eriksen"),
    never=frozenset({"Paris", "French", "Monnet", "London"}),
)
SEEN = frozenset("in is we thank and the bush president président green with then".split())


def _swap(english, french, seed=1, **more):
    return swapped(english, french, Random(seed), NAMES, SEEN, **more)


@pytest.mark.parametrize(
    ("english", "french", "english_form", "french_form"),
    [
        ("We thank Mr Brandel.", "Merci à M. Brandel.", r"We thank Mr (\w+)\.", r"Merci à M. (\w+)\."),
        ("Mrs Brandel's plan", "le plan de Mme Brandel", r"Mrs (\w+)'s plan", r"le plan de Mme (\w+)"),
        ("Dr. Brandel is here.", "Le docteur Brandel est là.", r"Dr. (\w+) is.*", r"Le docteur (\w+) est.*"),
        ("Miss van der Lund left.", "Mlle van der Lund partit.", r"Miss (\w+) left\.", r"Mlle (\w+) partit\."),
        ("Ms O'Brandel-Lund left.", "Mme O'Brandel-Lund partit.", r"Ms (\w+) left\.", r"Mme (\w+) partit\."),
        ("Mr Karl Brandel is here.", "M. Brandel est là.", r"Mr Karl (\w+) is here\.", r"M. (\w+) est là\."),
        ("President Brandel left.", "Monsieur Brandel partit.", r"President (\w+) left\.", r"Monsieur (\w+) partit\."),
        ("Mr Brandel and Mr Lund", "MM. Brandel et Lund", r"Mr (\w+) and Mr (\w+)", r"MM. (\w+) et (\w+)"),
        ("Then Jean Brandel left.", "Jean Brandel partit.", r"Then (\w+ \w+) left\.", r"(\w+ \w+) partit\."),
        ("Is Tom Canadian?", "Tom est-il canadien ?", r"Is (.+) Canadian\?", r"(.+) est-il canadien \?"),
        ("Jean-Karl left.", "Jean-Karl partit.", r"(.+) left\.", r"(.+) partit\."),
    ],
)  # fmt: skip
def test_both_sides_get_the_same_name(english, french, english_form, french_form):
    for seed in range(30):
        new_english, new_french = _swap(english, french, seed)
        left, right = re.fullmatch(english_form, new_english), re.fullmatch(french_form, new_french)
        assert left and right and left.groups() == right.groups(), (new_english, new_french)
        assert not set(left.groups()) & {*english.replace(".", "").split()}


@pytest.mark.parametrize(
    ("english", "french"),
    [
        ("Mr President, thank you.", "Monsieur le Président, merci."),
        ("We thank Mr Green.", "Merci à M. Green."),  # seen with a small letter
        ("We met Mr Paris.", "Vu M. Paris."),
        ("The Jean Monnet House", "La maison Jean Monnet"),
        ("Saint Jean is far.", "Saint Jean est loin."),
        ("Tom Street is long.", "Tom Street est longue."),
        ("The Club Tom is shut.", "Le Club Tom est fermé."),
        ("Mary and Zoé, Zoé!", "Marie et Zoé, zut !"),  # not equally often
        ("We thank Mr Brandel.", "Merci à M. Brandle."),
        ("Evans' and Mr Evans' plan", "Le plan de M. Evans"),
        ("London and French", "London et French"),
        ("We thank Mr Figel', then left.", "Merci à M. Figel', au revoir."),
        ("Tom B. Lund left.", "Tom Lund partit."),
        ("A. Tom left.", "A. Tom partit."),
        ("The Tom Brandel Foundation", "La fondation Tom Brandel"),
        ("Zoé Brandelskaya left.", "Zoé Brandelskaïa partit."),
        ("Tom-Brandel-Stiftung", "Tom-Brandel-Stiftung"),
        ("Tom al-Brandel left.", "Tom el-Brandel partit."),
        ("Tom's plan", "Le plan de Tom Brandel"),
        ("Saddam Omar left.", "Saddam Omar partit."),
        ("De Jean left.", "De Jean partit."),
        ("Mother Zoé left.", "Mère Zoé partit."),
        ("Mr BRANDEL left.", "M. BRANDEL partit."),
        ("Tomtom is a word.", "Tomtom est un mot."),
    ],
)
def test_what_may_be_no_name_of_a_person_stays(english, french):
    assert {_swap(english, french, seed) for seed in range(20)} == {(english, french)}


def test_every_occurrence_is_replaced_alike():
    english = "Mr Karl Brandel spoke. Brandel's plan, then Karl Brandel again."
    french = "M. Karl Brandel parla. Le plan de Brandel, puis encore Karl Brandel."
    new_english, new_french = _swap(english, french)
    family = re.match(r"Mr (\w+) (\w+) spoke", new_english)
    assert family and new_english.count(family[2]) == new_french.count(family[2]) == 3
    assert "Brandel" not in new_english + new_french


def test_a_name_keeps_to_men_or_women():
    for seed in range(30):
        assert re.search("Ada|Mei", _swap("Zoé is here.", "Zoé est là.", seed)[0])
        assert re.search("Omar|Jean", _swap("Tom is here.", "Tom est là.", seed)[0])
        assert re.match(
            "Mrs (Ada|Mei|Zoé) ", _swap("Mrs Xa Yb left.", "Mme Xa Yb partit.", seed)[0]
        )


def test_the_words_before_a_name_stay_right():
    for seed in range(30):
        assert re.search("d'(Ada)", _swap("Zoé's, Ana's", "Zoé et Ana", seed)[1]) is None
        _, french = _swap("Mr Ustel's plan", "Le plan d'Ustel", seed)
        assert re.search("d'[OE]", french), french
        _, french = _swap("a plan of Mr Brandel", "un plan de M. Brandel, de Brandel", seed)
        assert not re.search(", de [OE]", french)
        assert re.search("an [OE]", _swap("an Ustel plan by Mr Ustel", "Ustel, M. Ustel", seed)[0])


def test_an_unknown_character_takes_the_place_of_one_name():
    assert _swap("Tom left.", "Tom partit.", unknown="你") == ("你 left.", "你 partit.")
    english, french = _swap("Dr Jean Lund, Lund, Tom", "Dr Jean Lund, Lund, Tom", unknown="你")
    assert english == french and re.fullmatch("Dr 你, 你, (Omar|Jean).*", english)


_WORDS = st.lists(
    st.sampled_from(
        "Mr Mrs Dr M. Mme Tom Zoé Jean Brandel Lund O'Hara de van d'Ustel and. Paris's the Green I -".split()
    ),
    max_size=9,
).map(" ".join)


def _outside_names(text):
    """Dashes, and words in lower case that neither belong to a name nor change with its sound."""
    of_names = {"van", "von", "de", "del", "la", "le", "du", "a", "an", "d'", "l'"}
    return [word for word in text.split() if word.lower() == word and word not in of_names]


@given(_WORDS, _WORDS, st.integers(0, 99))
def test_no_text_breaks_swapping_and_the_same_draws_give_the_same(english, french, seed):
    assert _swap(english, french, seed) == _swap(english, french, seed)
    same_english, same_french = _swap(english, english, seed)
    # A name may have any number of words, but what cannot belong to one stays, in its order.
    assert _outside_names(same_english) == _outside_names(english)
    assert bool(same_english != english) == bool(same_french != english)


def test_the_shipped_list_is_large_and_the_tokenizer_knows_its_letters():
    names = NameList.shipped()
    given_names = names.women + names.men
    assert len(set(given_names)) >= 400 and len(set(names.family)) >= 600
    assert len(set(given_names)) == len(given_names) and len(set(names.family)) == len(names.family)
    assert not names.never & {*given_names, *names.family}
    tokenizer = load(models_folder() / "tokenizer")
    for name in given_names + names.family:
        assert tokenizer.unk_token_id not in tokenizer(name).input_ids, name


def test_a_damaged_list_is_told_in_one_line(tmp_path):
    good = {"women": ["Ada"], "men": ["Omar"], "family": ["Nowak"], "never": []}
    for content, message in [
        ("{", "cannot be read"),
        (json.dumps([1]), "expected the keys women, men, family, never, got list"),
        (json.dumps({**good, "men": []}), "at least one name in 'men', got none"),
        (json.dumps({**good, "family": [3]}), "a list of words in 'family'"),
        (json.dumps({"women": ["Ada"]}), "expected the keys women, men, family, never, got women"),
    ]:
        path = tmp_path / "names.json"
        path.write_text(content, encoding="utf-8")
        with pytest.raises(NameListError, match=re.escape(message)) as error:
            NameList.read(path)
        assert "\n" not in str(error.value) and str(path) in str(error.value)
    with pytest.raises(NameListError, match="cannot be read"):
        NameList.read(tmp_path / "none.json")
    path.write_text(json.dumps(good), encoding="utf-8")
    assert NameList.read(path).gender == {"Ada": "women", "Omar": "men"}
