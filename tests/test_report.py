"""Atomic writing, cards, and a README whose numbers are those of the weights beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seqviz import MODEL_NAMES, corpus, coverage, report
from seqviz.cli import more_results
from seqviz.length_report import check
from seqviz.report import Report, weights_of

REPOSITORY = Path(__file__).resolve().parents[1]


def test_write_json_is_whole_or_nothing(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "report.json"
    report.write_json(file, {"a": "é"})
    assert json.loads(file.read_text(encoding="utf-8")) == {"a": "é"}
    with pytest.raises(TypeError):
        report.write_json(file, {"a": object()})
    with pytest.raises(UnicodeEncodeError):
        report.write_text(file, "half an emoji \ud83d")
    assert json.loads(file.read_text(encoding="utf-8")) == {"a": "é"}
    assert [p.name for p in file.parent.iterdir()] == ["report.json"]


def test_fill_readme() -> None:
    text = "a\n<!-- results:begin -->\nold\n<!-- results:end -->\nb\n"
    filled = report.fill_readme(text, "new")
    assert filled == "a\n<!-- results:begin -->\nnew\n<!-- results:end -->\nb\n"
    assert report.fill_readme(filled, "new") == filled
    for broken in ("", "<!-- results:end --><!-- results:begin -->", text + text):
        with pytest.raises(ValueError, match="expected one <!-- results:begin -->"):
            report.fill_readme(broken, "new")


@pytest.fixture(scope="module")
def trainings(models_folder: Path) -> dict[str, dict[str, Any]]:
    return report.read_training(models_folder)


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


def test_readme_and_cards_hold_the_numbers_of_the_weights(
    trainings: dict[str, Any], models_folder: Path
) -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    length = report.read_report(models_folder, "length")
    found = report.read_report(models_folder, "coverage")
    results = report.results(trainings, length, found, more_results(models_folder, trainings))
    assert report.fill_readme(text, results) == text, "run 'seqviz report'"
    about = (models_folder / "DATA.md").read_text(encoding="utf-8")
    for name, training in trainings.items():
        folder = models_folder / name
        assert training["weights_sha256"] == corpus.file_digest(folder / "model.safetensors")
        assert (folder / "README.md").read_text(encoding="utf-8") == report.card(training, about)


# -- what was measured by length


@pytest.fixture(scope="module")
def length(models_folder: Path) -> dict[str, Any]:
    found = report.read_report(models_folder, "length")
    assert found is not None
    return check(found)


@pytest.mark.parametrize("name", ["length", "passages"])
def test_reports_are_of_the_shipped_weights(
    trainings: dict[str, Any], models_folder: Path, name: str
) -> None:
    assert report.stale(report.read_report(models_folder, name), trainings) is None


def test_the_length_report_answers_the_prediction_as_it_was_committed(
    length: dict[str, Any], models_folder: Path
) -> None:
    file = models_folder / "report" / "prediction.json"
    prediction = json.loads(file.read_text(encoding="utf-8"))
    assert length["prediction"]["sha256"] == corpus.file_digest(file)
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


def test_attention_was_measured_on_the_weights(
    trainings: dict[str, Any], models_folder: Path
) -> None:
    attention = report.read_report(models_folder, "attention")
    assert attention is not None
    assert report.stale(attention, trainings) is None, "run 'seqviz report'"
    text = report.alignment_results(attention)
    for key, found in attention["results"].items():
        assert f"| {found['aer']['value']:.2f} (" in text, key
    assert (
        "layer {layer} head {head}".format(
            **{key: value + 1 for key, value in attention["choice"]["transformer"].items()}
        )
        in text
    )


def test_figures_are_of_the_length_report(length: dict[str, Any], models_folder: Path) -> None:
    folder = models_folder / "report"
    text = (folder / "length.svg").read_text(encoding="utf-8")
    largest = max(b["n"] for b in length["curves"]["natural"]["lstm"]["buckets"])
    assert f"{largest:,}" in text
    for name in ("length", "length.zh", "where-it-breaks", "where-it-breaks.zh"):
        assert (folder / f"{name}.svg").is_file()


def test_found_words_can_be_trusted_as_far_as_reported(models_folder: Path) -> None:
    found = report.read_report(models_folder, "coverage")
    assert found is not None
    lexicon = models_folder / "lexicon.json"
    assert found["data"]["lexicon_sha256"] == corpus.file_digest(lexicon), "run 'seqviz report'"
    file = REPOSITORY / "seqviz" / "texts.json"
    aligned = json.loads(file.read_text(encoding="utf-8"))["aligned"]
    measured = coverage.evaluate(coverage.Lexicon.load(lexicon), aligned[1::2])
    for key in ("precision", "recall", "words"):
        assert found["reported"][key] == measured[key]
    assert measured["precision"] > 0.9
    assert measured["recall"] > 0.85


def test_stale_says_why() -> None:
    trainings = {"lstm": {"weights_sha256": "a"}, "rnn": {"weights_sha256": "b"}}
    models = {"lstm": {"weights_sha256": "a"}, "rnn": {"weights_sha256": "b"}}
    assert report.stale(None, trainings) == "there is none"
    assert report.stale({"models": models}, trainings) is None
    models["rnn"] = {"weights_sha256": "old"}
    assert report.stale({"models": models}, trainings) == "it was measured on other weights of rnn"
    assert report.stale({}, trainings) == "it was measured on other weights of lstm, rnn"


def test_a_damaged_report_is_an_error(tmp_path: Path) -> None:
    assert report.read_report(tmp_path, "length") is None
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "length.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="expected JSON, it is damaged"):
        report.read_report(tmp_path, "length")


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
