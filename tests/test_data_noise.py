"""Training pairs are rewritten as visitors type, by shares and by a seed."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqviz.data.names import NameList
from seqviz.data.noise import (
    RUN,
    UNKNOWN_CHARACTERS,
    Noise,
    Noiser,
    noised,
    words_seen_in_lower_case,
)
from seqviz.digits import unmatched
from seqviz.shipped import models_folder
from seqviz.tokenizer import load, normalize

NONE = Noise(0, 0, 0, 0, 0, 0)
NAMES = NameList(("Ada",), ("Tom", "Omar"), ("Nowak", "Zhang"))
PAIRS = [
    (f"Tom saw {n + 2} cats in Paris.", f"Tom a vu {n + 2} chats à Paris.") for n in range(4000)
]


def _noise(**shares):
    return Noise(**{**vars(NONE), **shares})


def _noised(noise, pairs=PAIRS, seed=(1, 0), **more):
    return list(noised(pairs, noise, frozenset(), seed, names=NAMES, **more))


def test_without_noise_nothing_changes():
    assert _noised(NONE) == PAIRS


@pytest.mark.parametrize(
    ("style", "rewritten"),
    [
        ("lower_case", str.lower),
        ("capitals", str.upper),
        ("no_stop", lambda text: text.removesuffix(".")),
    ],
)
def test_a_style_changes_its_share_of_sources_in_runs_and_no_target(style, rewritten):
    outcomes = _noised(_noise(**{style: 0.25}))
    changed = [outcome != pair for outcome, pair in zip(outcomes, PAIRS)]
    assert 0.18 < sum(changed) / len(changed) < 0.32
    assert all(sum(changed[i : i + RUN]) in (0, RUN) for i in range(0, len(changed), RUN))
    for (source, target), (old_source, old_target), other in zip(outcomes, PAIRS, changed):
        assert source == (rewritten(old_source) if other else old_source)
        assert target == old_target


def test_half_of_what_is_in_lower_case_has_no_stop_either():
    outcomes = [source for source, _ in _noised(_noise(lower_case=0.2, no_stop=0.2, capitals=0.1))]
    lower = [s for s in outcomes if s.islower()]
    bare = [s for s in outcomes if not s.endswith(".")]
    both = [s for s in lower if not s.endswith(".")]
    assert 600 < len(lower) < 1000 and 600 < len(bare) < 1000
    assert 280 < len(both) < 520
    assert 240 < sum(s.isupper() for s in outcomes) < 560
    assert not any(s.isupper() and not s.endswith(".") for s in outcomes)


@pytest.mark.parametrize(
    ("source", "expected"),
    [("What is it?", "What is it"), ("No!!", "No"), ("Wait ...", "Wait"), ('"Yes."', '"Yes."'), ("...", "..."), ("No", "No")],
)  # fmt: skip
def test_only_the_final_stop_goes(source, expected):
    [(new, target)] = _noised(_noise(no_stop=1), [(source, "Oui.")])
    assert (new, target) == (expected, "Oui.")


def test_numbers_and_names_change_in_their_share_of_pairs():
    outcomes = _noised(_noise(numbers=0.5, names=0.25))
    other_number = [
        re.findall(r"\d+", new) != re.findall(r"\d+", old)
        for (new, _), (old, _) in zip(outcomes, PAIRS)
    ]
    other_name = ["Tom" not in source for source, _ in outcomes]
    assert 0.45 < sum(other_number) / len(PAIRS) < 0.55
    assert 0.21 < sum(other_name) / len(PAIRS) < 0.29
    both = sum(a and b for a, b in zip(other_number, other_name))
    assert 0.1 < both / len(PAIRS) < 0.15
    assert all(unmatched(*outcome) == ([], []) for outcome in outcomes)


def test_spaces_inside_numbers_are_mended_whenever_numbers_are_swapped():
    pair = ("Up by 0.7 %.", "Plus 0, 7%.")
    assert _noised(_noise(numbers=1e-9), [pair]) == [("Up by 0.7 %.", "Plus 0,7%.")]
    assert _noised(NONE, [pair]) == [pair]


def test_unknown_characters_stand_in_the_same_place_on_both_sides():
    outcomes = _noised(_noise(unknown=0.1, numbers=0.5, names=0.5))
    with_character = [o for o in outcomes if any(c in UNKNOWN_CHARACTERS for c in o[0])]
    assert 0.08 < len(with_character) / len(outcomes) < 0.12
    places = set()
    for source, target in with_character:
        [character] = {c for c in source if c in UNKNOWN_CHARACTERS}
        assert source.count(character) == target.count(character) == 1
        forms = [
            f"^{character} saw.*\t{character} a vu",
            f"saw {character} cats.*\t.*a vu {character} chats",
            f"Paris {character}\\.\t.*Paris {character}\\.$",
        ]
        [place] = [n for n, form in enumerate(forms) if re.search(form, f"{source}\t{target}")]
        places.add(place)
    assert places == {0, 1, 2}


@given(st.integers(0, 40), st.integers(1, 50), st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_a_part_of_a_corpus_is_rewritten_as_in_the_whole(first, count, seed):
    noise = Noise(0.2, 0.2, 0.1, 0.5, 0.5, 0.1)
    whole = _noised(noise, PAIRS[:100], seed)
    part = _noised(noise, PAIRS[first : first + count], seed, first=first)
    assert part == whole[first : first + count]


def test_another_seed_or_variant_gives_other_pairs():
    noise = Noise()
    one = _noised(noise, PAIRS[:200], (1, 0))
    assert one == _noised(noise, PAIRS[:200], (1, 0))
    assert one != _noised(noise, PAIRS[:200], (2, 0))
    assert one != _noised(noise, PAIRS[:200], (1, 1))


@given(st.text(max_size=30), st.text(max_size=30), st.integers(0, 99))
def test_no_text_breaks_the_noise(source, target, seed):
    noiser = Noiser(Noise(0.4, 0.4, 0.3, 1, 1, 0.5), frozenset(), NAMES)
    first = noiser(source, target, Random(seed), Random(seed))
    assert first == noiser(source, target, Random(seed), Random(seed))


def test_words_seen_in_lower_case_come_from_both_sides():
    pairs = [("The Rose is a rose.", "L'été, la Rose : rose"), ("Mr X-ray, Ann's", "d'Ann")]
    assert words_seen_in_lower_case(iter(pairs)) == {
        "is",
        "a",
        "rose",
        "été",
        "la",
        "ray",
        "s",
        "d",
    }


@pytest.mark.parametrize("value", [1.5, -0.1, float("nan"), "0.1", None, True])
@pytest.mark.parametrize("share", ["lower_case", "names", "unknown"])
def test_a_bad_share_is_told_in_one_line(share, value):
    with pytest.raises(
        ValueError, match=f"expected {share} to be a share from 0 to 1, got"
    ) as error:
        Noise(**{share: value})
    assert "\n" not in str(error.value)


def test_styles_that_exclude_each_other_fit_together():
    Noise(lower_case=0.9, capitals=0.1)
    with pytest.raises(ValueError, match=r"at most 1 together, got 0\.9 and 0\.2"):
        Noise(lower_case=0.9, capitals=0.2)


def test_no_unknown_characters_are_told():
    with pytest.raises(ValueError, match="at least one unknown character, got none"):
        Noiser(Noise(), frozenset(), NAMES, unknown_characters="")
    Noiser(NONE, frozenset(), NAMES, unknown_characters="")


def test_the_unknown_characters_are_unknown_to_the_shipped_tokenizer():
    assert len(set(UNKNOWN_CHARACTERS)) == len(UNKNOWN_CHARACTERS) >= 150
    tokenizer = load(models_folder() / "tokenizer")
    for character in UNKNOWN_CHARACTERS:
        assert normalize(character) == character
        assert tokenizer.tokenize(f"a {character}")[-1] == tokenizer.unk_token, character
