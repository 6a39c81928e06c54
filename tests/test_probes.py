"""Hand-written probes: their shape, what counts as right, and the command that runs them."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from typer.testing import CliRunner

from seqviz import MODEL_NAMES, cli, probes
from seqviz.data.names import NameList
from seqviz.probes import Probe, Probes
from seqviz.translating.numbers import differences
from seqviz.translating.translator import Translator

ALL = Probes.shipped().probes


def of(group: str) -> list[Probe]:
    return [probe for probe in ALL if probe.group == group]


# ---------------------------------------------------------------------------------------------
# What was written


def test_groups_and_kinds() -> None:
    assert len({(probe.group, probe.source) for probe in ALL}) == len(ALL) == 130
    assert Counter(probe.kind for probe in of("numbers")) == {
        "date": 10, "price": 10, "decimal": 10, "other": 20,
    }  # fmt: skip
    assert Counter(probe.kind for probe in of("names")) == {"European": 34, "other": 16}
    assert Counter(probe.kind for probe in of("inputs")) == {
        "lower case, no stop": 15, "with capitals and stops": 15,
    }  # fmt: skip
    for probe in ALL:
        assert len(probe.source.split()) <= 10
        assert probe.accepted and len(set(probe.accepted)) == len(probe.accepted), probe.source


def test_no_name_is_one_that_training_swaps_in() -> None:
    names = NameList.shipped()
    swapped = {name.casefold() for name in (*names.women, *names.men, *names.family)}
    assert len(swapped) > 1_000
    for probe in of("names"):
        (name,) = probe.accepted
        assert name in probe.source
        assert not swapped & set(name.casefold().split()), name
    assert len({probe.accepted for probe in of("names")}) == 50


@pytest.mark.parametrize("probe", of("numbers"), ids=lambda probe: probe.source)
def test_every_accepted_writing_of_a_number_is_no_difference(probe: Probe) -> None:
    """The note about numbers and the probes agree on what the same number is."""
    for answer in probe.accepted:
        assert differences(probe.source, f"Voici {answer}.") == ((), ()), answer


@pytest.mark.parametrize("probe", of("inputs"), ids=lambda probe: probe.source)
def test_patterns_of_first_inputs_are_well_formed(probe: Probe) -> None:
    for answer in probe.accepted:
        assert answer.count("(") == answer.count(")")
        assert not re.search(r"[^\w\s(|)?',-]", answer), answer
        # The first of each choice is an answer itself.
        plain = answer
        while "(" in plain:
            plain = re.sub(r"\(([^(|)]*)[^()]*\)", r"\1", plain)
        assert probe.is_right(plain.replace(" ?", " ")), plain


# ---------------------------------------------------------------------------------------------
# What counts


@pytest.mark.parametrize(
    ("accepted", "output", "right"),
    [
        (["305"], "La chambre 305 est libre.", True),
        (["305"], "La chambre 3055 est libre.", False),
        (["305"], "La chambre 305 305.", False),
        (["305"], "La chambre 1.305.", False),
        (["305"], "La chambre 305,2.", False),
        (["1 234,56"], "Cela coûte 1\u202f234,56\u00a0€.", True),
        (["1 234,56", "1234,56"], "Cela coûte 1234,56 euros.", True),
        (["1 234,56"], "Cela coûte 11, 234, 56.", False),
        (["14 h", "14 h 30"], "À 14 h 30.", True),
        (["14 h"], "À 14 h 30.", False),
        (["8", "huit"], "Les Huit planètes.", True),
        (["8", "huit"], "Les dix-huit planètes.", False),
        (["8", "huit"], "Les huitièmes.", False),
        (["15"], "Il coûte 15 millions d'euros.", False),
        (["3 millions"], "Il coûte 3 millions.", True),
        (["3-1"], "Ils ont gagné 3-1.", True),
    ],
)
def test_a_number_counts_once_and_alone(accepted: list[str], output: str, right: bool) -> None:
    assert Probe("numbers", "other", "x", tuple(accepted)).is_right(output) is right


@pytest.mark.parametrize(
    ("output", "right"),
    [
        ("Je m'appelle Zhang Ming.", True),
        ("L'ami de Zhang\u00a0Ming", True),
        ("Je m'appelle Zhang Minga.", False),
        ("Je m'appelle zhang ming.", False),
        ("Je m'appelle Zhang.", False),
    ],
)
def test_a_name_counts_as_it_is_written(output: str, right: bool) -> None:
    assert Probe("names", "other", "x", ("Zhang Ming",)).is_right(output) is right


@pytest.mark.parametrize(
    ("output", "right"),
    [
        ("Je t'aime.", True),
        ("je t’aime", True),
        ("JE VOUS AIME !", True),
        ("Je t'aime bien.", False),
        ("J'adore la fête.", False),
        ("", False),
    ],
)
def test_case_stops_and_apostrophes_do_not_count(output: str, right: bool) -> None:
    (probe,) = (probe for probe in of("inputs") if probe.source == "i love you")
    assert probe.is_right(output) is right


# ---------------------------------------------------------------------------------------------
# Run


def test_the_figures_are_those_of_the_outputs(tiny_model: Any, tiny_tokenizer: Any) -> None:
    translator = Translator(tiny_model("lstm"), tiny_tokenizer, name="lstm")
    few = Probes((*of("numbers")[:3], *of("names")[:2], *of("inputs")[:2]), "0")
    found = probes.run(translator, few)
    for probe, output in zip(few.probes, found["outputs"], strict=True):
        assert output["source"] == probe.source
        assert output["output"] == translator.translate(probe.source).text
        assert output["right"] == probe.is_right(output["output"])
    assert found["figures"]["numbers"]["all"] == found["figures"]["numbers: date"]["all"] == 3
    right = sum(output["right"] for output in found["outputs"])
    groups = [figure for key, figure in found["figures"].items() if ":" not in key]
    assert sum(figure["right"] for figure in groups) == right
    assert sum(figure["all"] for figure in groups) == 7


class Dictionary:
    """Says for each probe what counts, as far as `known` goes."""

    def __init__(self, known: set[str]) -> None:
        self.known, self.training, self.name = known, {"weights_sha256": "abc"}, "x"

    def translate(self, texts: list[str]) -> list[Any]:
        first = {
            probe.source: re.sub(r"\(([^(|)]*)[^()]*\)", r"\1", probe.accepted[0]) for probe in ALL
        }
        answers = [first[text] if text in self.known else "?" for text in texts]
        return [type("Said", (), {"text": answer}) for answer in answers]


def test_the_command_prints_a_line_a_kind_and_writes_the_report(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"lstm": {"hello"}, "transformer": {probe.source for probe in of("names")}}
    monkeypatch.setattr(
        "seqviz.translating.loading.load", lambda folder: Dictionary(known[folder.name])
    )
    out = tmp_path / "probes.json"
    result = CliRunner().invoke(
        cli.app, ["probes", "--model", "lstm", "--model", "transformer", "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["lstm", "transformer"]
    said = {line[:25].strip(): re.findall(r"\d+ of \d+", line) for line in lines[1:]}
    assert said["numbers"] == ["0 of 50", "0 of 50"]
    assert said["names"] == ["0 of 50", "50 of 50"]
    assert said["inputs"] == ["1 of 30", "0 of 30"]
    assert len(lines) == 1 + 3 + 4 + 2 + 2
    content = json.loads(out.read_text(encoding="utf-8"))
    assert content["command"] == "seqviz probes --model lstm --model transformer"
    assert content["models"] == {name: {"weights_sha256": "abc"} for name in known}
    assert content["data"] == {"file": "probes.json", "sha256": Probes.shipped().digest}
    assert content["results"]["transformer"]["figures"]["names"] == {"right": 50, "all": 50}
    assert len(content["results"]["lstm"]["outputs"]) == 130


def test_without_a_name_all_four_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqviz.translating.loading.load", lambda folder: Dictionary(set()))
    result = CliRunner().invoke(cli.app, ["probes"])
    assert result.stdout.splitlines()[0].split() == list(MODEL_NAMES)
    wrong = CliRunner().invoke(cli.app, ["probes", "--model", "lstn"])
    assert wrong.exit_code == 2
