"""Reports and cards whose numbers are those of the weights beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seqviz import MODEL_NAMES, coverage, handwritten
from seqviz.files import file_digest
from seqviz.measuring import markdown
from seqviz.measuring.artefacts import ARTEFACTS, Artefact, Site
from seqviz.measuring.card import card
from seqviz.measuring.length import check
from seqviz.report import Report, read_training, weights_of


@pytest.fixture(scope="module")
def trainings(models_folder: Path) -> dict[str, dict[str, Any]]:
    return read_training(models_folder)


def test_the_four_models_are_shipped_at_one_equal_budget(trainings: dict[str, Any]) -> None:
    assert tuple(trainings) == MODEL_NAMES
    budgets = {t["target_tokens"] for t in trainings.values()}
    assert len(budgets) == 1
    assert budgets.pop() >= 2_000_000
    for key in ("data", "dev_data", "length_histogram"):
        assert len({json.dumps(t[key], sort_keys=True) for t in trainings.values()}) == 1, key
    rates = ("learning_rate", "matrix_learning_rate")  # all of the recipe that may differ
    recipes = [{k: v for k, v in t["recipe"].items() if k not in rates} for t in trainings.values()]
    assert all(recipe == recipes[0] for recipe in recipes)


def test_cards_hold_the_numbers_of_the_weights(
    trainings: dict[str, Any], models_folder: Path
) -> None:
    about = (models_folder / "DATA.md").read_text(encoding="utf-8")
    for name, training in trainings.items():
        folder = models_folder / name
        assert training["weights_sha256"] == file_digest(folder / "model.safetensors")
        assert (folder / "README.md").read_text(encoding="utf-8") == card(training, about)


# -- what was measured by length


@pytest.fixture(scope="module")
def length(models_folder: Path) -> dict[str, Any]:
    found = Report.read(models_folder / "report" / "length.json")
    assert found is not None
    return check(found.content())


NOT_YET = {
    "chains": "these weights were trained on another cut of the everyday corpus",
    "seeds": "no second seed was trained to their budget",
    "bits": "no model without a source was trained to their budget",
}
"""Reports that belong to the next weights, and why they are not of these."""


@pytest.mark.parametrize("artefact", ARTEFACTS, ids=lambda artefact: artefact.name)
def test_every_report_of_the_table_is_there_and_up_to_date(
    trainings: dict[str, Any], models_folder: Path, artefact: Artefact
) -> None:
    found = Report.read(models_folder / "report" / f"{artefact.name}.json")
    assert (found is None) == (artefact.name in NOT_YET)
    if found is None:
        return
    assert artefact.stale(found, trainings) is None, "run 'seqviz report'"
    assert found.command.startswith(artefact.command)
    assert bool(found.models) == ("weights" in artefact.of)
    site = Site(models_folder, trainings, print, Path())
    for name in artefact.figures(site, found):
        for ending in (".svg", ".zh.svg"):
            assert (models_folder / "report" / f"{name}{ending}").is_file()


def test_the_length_report_answers_the_prediction_as_it_was_committed(
    length: dict[str, Any], models_folder: Path
) -> None:
    file = models_folder / "report" / "prediction.json"
    prediction = json.loads(file.read_text(encoding="utf-8"))
    assert length["prediction"]["sha256"] == file_digest(file)
    assert prediction["written"] <= length["created"][:10]
    answered = {h["id"]: h for h in length["prediction"]["hypotheses"]}
    assert list(answered) == [h["id"] for h in prediction["hypotheses"]]
    for hypothesis in prediction["hypotheses"]:
        answer = answered[hypothesis["id"]]
        assert {key: answer[key] for key in hypothesis} == hypothesis
        outside = answer["low"] > 0 or answer["high"] < 0
        assert outside == (answer["verdict"] != "undecided")


def test_the_length_report_names_how_it_was_measured(length: dict[str, Any]) -> None:
    for key in ("schema", "command", "data", "versions", "hardware", "created", "signatures"):
        assert length[key], key
    assert length["num_beams"] == 1
    assert length["resamples"] == 1_000
    for curve in ("natural", "same-content"):
        assert set(length["curves"][curve]) == set(MODEL_NAMES)
        for model in length["curves"][curve].values():
            for bucket in model["buckets"]:
                assert bucket["bleu_low"] <= bucket["bleu"] <= bucket["bleu_high"]
                assert bucket["thin"] == (bucket["n"] < 50)
    assert length["length_histogram"][0] == 0


def test_the_block_on_alignment_holds_its_numbers(models_folder: Path) -> None:
    attention = Report.read(models_folder / "report" / "attention.json")
    assert attention is not None
    text = markdown.alignment(attention)
    for key, found in attention.results["results"].items():
        assert f"| {found['aer']['value']:.2f} (" in text, key
    chosen = attention.results["choice"]["transformer"]
    assert f"layer {chosen['layer'] + 1} head {chosen['head'] + 1}" in text
    for found in attention.results["deletion"]["models"].values():
        for ranking in found.values():
            assert f"| {ranking['gain']['value']:.2f} (" in text


def test_figures_are_of_the_length_report(length: dict[str, Any], models_folder: Path) -> None:
    text = (models_folder / "report" / "length.svg").read_text(encoding="utf-8")
    largest = max(b["n"] for b in length["curves"]["natural"]["lstm"]["buckets"])
    assert f"{largest:,}" in text


def test_found_words_can_be_trusted_as_far_as_reported(models_folder: Path) -> None:
    report = Report.read(models_folder / "report" / "coverage.json")
    assert report is not None
    lexicon = models_folder / "lexicon.json"
    assert report.data["lexicon_sha256"] == file_digest(lexicon), "run 'seqviz report'"
    aligned = handwritten.texts("aligned")
    measured = coverage.evaluate(coverage.Lexicon.load(lexicon), aligned[1::2])
    for key in ("precision", "recall", "words"):
        assert report.results["reported"][key] == measured[key]
    assert measured["precision"] > 0.9
    assert measured["recall"] > 0.85


def test_a_report_stands_in_its_file_as_it_was_made(tmp_path: Path) -> None:
    trainings = {"lstm": {"weights_sha256": "a", "steps": 3}}
    file = tmp_path / "report" / "one.json"
    assert Report.read(file) is None
    made = Report.now("seqviz one", {"name": "x"}, {"found": [1, "é"]}, weights_of(trainings))
    made.write(file)
    assert Report.read(file) == made
    content = json.loads(file.read_text(encoding="utf-8"))
    assert content == made.content()
    assert list(content) == [
        *("schema", "command", "data", "versions", "hardware", "created", "models", "found")
    ]
    assert content["models"] == {"lstm": {"weights_sha256": "a"}}
    assert made.created.endswith("+00:00")
    undated = Report.now("seqviz one", None, {"found": 0}, dated=False)
    assert list(undated.content()) == ["schema", "command", "versions", "found"]
    file.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="one.json: expected JSON, it is damaged"):
        Report.read(file)


def test_every_committed_report_is_read_and_written_alike(models_folder: Path) -> None:
    for file in (models_folder / "report").glob("*.json"):
        content = json.loads(file.read_text(encoding="utf-8"))
        if "command" in content:  # a prediction is written by hand
            found = Report.read(file)
            assert found is not None
            assert found.content() == content, file.name


def test_a_report_is_stale_on_other_weights_and_other_data() -> None:
    trainings = {"lstm": {"weights_sha256": "a"}, "rnn": {"weights_sha256": "b"}}
    found = Report("seqviz one", {"sha256": "x", "name": "n"}, {}, weights_of(trainings))
    assert found.stale(trainings) is None
    assert found.stale(trainings, {"sha256": "x"}) is None
    assert found.stale(trainings, {"sha256": "y"}) == "it was measured on other data (sha256)"
    trainings["rnn"] = {"weights_sha256": "new"}
    assert found.is_of("lstm", trainings["lstm"])
    assert not found.is_of("rnn", trainings["rnn"])
    assert not found.is_of("transformer", {})
    assert found.stale(trainings) == "it was measured on other weights of rnn"
    none = Report("seqviz one", None, {})
    assert none.stale(trainings) == "it was measured on other weights of lstm, rnn"
    assert none.stale({}) is None


# -- the walk


def _attention(trainings: dict[str, Any], digest: str) -> Report:
    return Report("seqviz report", {"aligned_sha256": digest}, {}, weights_of(trainings))


@pytest.fixture
def walked(tmp_path: Path) -> Callable[..., tuple[list[str], Report | None]]:
    """What is said, and what the report is, where one artefact is brought up to date."""
    old = {"lstm": {"weights_sha256": "1" * 64}}
    new = {"lstm": {"weights_sha256": "2" * 64}}

    def walk(found: bool = True, trainings: Any = new, **options: Any):
        said: list[str] = []
        site = Site(tmp_path, trainings, said.append, tmp_path)
        if found:
            _attention(old, "a").write(site.file("one.json"))
        made = options.pop("made", None)
        artefact = Artefact(
            "one",
            "seqviz one",
            ("weights", "texts"),
            anew=lambda site: made,
            otherwise="{why}; run {command}",
            **options,
        )
        return said, artefact.current(site)

    return walk


def test_what_is_out_of_date_is_made_anew_or_said(walked: Any, tmp_path: Path) -> None:
    fresh = _attention({"lstm": {"weights_sha256": "2" * 64}}, "a")
    said, found = walked()
    assert said == ["it was measured on other weights of lstm; run seqviz report"]
    assert found.models["lstm"]["weights_sha256"] == "1" * 64
    said, found = walked(made=fresh)
    assert (said, found) == ([], fresh)
    assert Report.read(tmp_path / "report" / "one.json") == fresh


def test_what_is_up_to_date_stays(walked: Any) -> None:
    other = _attention({}, "never")
    same = {"lstm": {"weights_sha256": "1" * 64}}
    said, found = walked(trainings=same, made=other)
    assert (said, found.data) == ([], {"aligned_sha256": "a"})
    _, found = walked(trainings=same, made=other, always=True)
    assert found == other
    said, _ = walked(trainings=same, data=lambda: {"aligned_sha256": "b"})
    assert said == ["it was measured on other data (aligned_sha256); run seqviz report"]


def test_what_nobody_has_measured_is_made_only_where_it_is_wanted(walked: Any) -> None:
    made = _attention({}, "a")
    assert walked(found=False, made=made) == ([], None)
    said, found = walked(found=False, wanted=True)
    assert (said, found) == (["there is none; run None"], None)
    assert walked(found=False, made=made, wanted=True)[1] == made
