"""The lab's frame, the same for every experiment: settings, numbers, report, sentence, command, figure."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import tiny_lab
import torch

from seqviz import cli, plotting
from seqviz.lab import (
    EXPERIMENTS,
    capacity,
    experiment,
    extrapolation,
    gradient,
    recall,
    settings,
    two_digits,
)
from seqviz.lab.readers import TEST, VALIDATION
from seqviz.report import Report, read_training
from seqviz.translating.translator import Translator

MEASURED_ON = {"num_threads"}
"""Settings that say what the machine has, where nothing was asked for."""

TIMED = {"cost"}
"""Experiments whose numbers are times, so that none comes again."""


@dataclass(frozen=True)
class Case:
    """One experiment on the command line and as a picture.

    Attributes:
        options: of its command.
        set: what they set.
        said: on the way, on standard error.
        refused: options that no settings can have, and what is answered.
        drawn: words of its figure, by language.
        axes: panels of its figure.
        no_report: what its figure is not drawn from.
    """

    options: str
    set: dict[str, Any]
    said: str
    refused: tuple[str, str]
    drawn: dict[str, list[str]]
    axes: int
    no_report: dict[str, Any]


CASES = {
    "gradient": Case(
        "--seeds 2 --length 6 --width 8 --model lstm",
        {"num_seeds": 2, "length": 6, "width": 8, "models": ["lstm"]},
        "after training: lstm",
        ("--width 7", "expected an even width divisible by num_heads"),
        {
            "en": [
                "tanh RNN",
                "LSTM, forget bias 0",
                "self-attention",
                "distance (steps)",
                "1 %",
            ],
            "zh": ["tanh RNN", "LSTM，遗忘偏置 3", "自注意力", "距离（步）", "1%"],
        },
        3,
        {"at_start": {}},
    ),
    "recall": Case(
        "--distance 1 --distance 2 --search-distance 1 --seeds 1 --steps 3 --width 8 --rate 0.01",
        {"distances": [1, 2], "search_distances": [1], "steps": 3, "rates": [0.01]},
        "mixed, rnn: learning rate 0.01",
        ("--width 10", "divisible by num_heads, got 10 and 4; try 8"),
        {
            "en": [
                "tanh RNN",
                "LSTM, forget bias 3",
                "attention",
                "chance",
                "Trained at one distance",
            ],
            "zh": ["tanh RNN", "LSTM，遗忘偏置 3", "注意力", "随机猜测", "只在一种距离上训练"],
        },
        3,
        {"mixed": {}},
    ),
    "capacity": Case(
        "--width 4 --width 5 --max-length 3 --seeds 1 --steps 3 --rate 0.01",
        {"widths": [4, 5], "max_length": 3, "num_seeds": 1},
        "lstm-attention, width 5, seed 1: copies up to",
        ("--rate 1", "expected learning rates above 0 and below 1"),
        {
            "en": ["with attention", "fixed vector, h = 4", "h = 6, length", "longest trained"],
            "zh": ["加注意力", "固定向量，h = 4", "h = 6，长度", "训练的最大长度"],
        },
        3,
        {"lstm": {}},
    ),
    "cost": Case(
        "--width 8 --length 4 --length 8 --position 3 --tokens 16 --repeats 1 --threads 1",
        {"widths": [8], "lengths": [4, 8], "positions": [3], "tokens": 16, "num_threads": 1},
        "8 tokens a sentence, 2 at once",
        ("--width 7", "widths divisible by num_heads, got 7 and 4"),
        {
            "en": [
                "tanh RNN",
                "LSTM",
                "attention, fused",
                "attention, scores in memory",
                "16 wide",
                "N = 2 D",
                "64",
            ],
            "zh": [
                "tanh RNN",
                "LSTM",
                "融合注意力",
                "注意力，分数写入内存",
                "宽度 16",
                "N = 2 D",
                "64",
            ],
        },
        5,
        {"layers": {}},
    ),
    "training_cost": Case(
        "--model rnn --model transformer --models {folder} --benchmark {folder}/rates.json",
        {"models": ["rnn", "transformer"]},
        "transformer: curve and operations",
        ("--models {folder}/none", "expected a JSON file in"),
        {
            "en": [
                "million target tokens",
                "minutes on an idle machine",
                "loss, nats a token",
                "LSTM + attention",
                "Transformer",
            ],
            "zh": ["目标词元（百万）", "在空闲机器上的分钟数", "损失（nat / 词元）"],
        },
        3,
        {"models": {"rnn": {}}},
    ),
    "extrapolation": Case(
        "--length 2 --length 4 --trained-length 2 --seeds 1 --steps 3 --width 8 --rate 0.01",
        {"lengths": [2, 4], "trained_length": 2},
        "lookup, attention, seed 1: ",
        ("--trained-length 7", "trained_length to be one of the tested lengths, got 7"),
        {
            "en": ["Parity", "Last write", "Lookup", "tanh RNN", "attention", "chance", "trained"],
            "zh": ["奇偶", "最后写入", "按键取值", "tanh RNN", "注意力", "随机猜测", "训练过"],
        },
        3,
        {"tasks": {}},
    ),
}

each = pytest.mark.parametrize("name", EXPERIMENTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tiny_model: Any) -> Path:
    return tiny_lab.write_models(tmp_path_factory.mktemp("models"), tiny_model)


@pytest.fixture(scope="module", autouse=True)
def small(tiny_model: Any, tiny_tokenizer: Any):
    """Tiny models, and texts that the tiny tokenizer does not cut into too many pieces."""

    def load(name: str) -> Translator:
        return Translator(tiny_model(name).double(), tiny_tokenizer, name=name)

    texts = [{"id": str(n), "english": f"{tiny_lab.TEXT} {tiny_lab.TEXT[:n]}"} for n in (20, 40)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradient, "load", load)
        patch.setattr(gradient, "measured_texts", lambda min_words: texts)
        yield


@pytest.fixture(scope="module")
def given(folder: Path) -> Callable[[str], Any]:
    """Small settings of an experiment."""

    def find(name: str) -> Any:
        if name == "training_cost":
            return tiny_lab.training_cost(folder)
        return getattr(tiny_lab, name.upper())

    return find


@pytest.fixture(scope="module")
def reports(given: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
    """The report of an experiment, as it stands in its file; run once."""
    made: dict[str, dict[str, Any]] = {}

    def find(name: str) -> dict[str, Any]:
        if name not in made:
            report = experiment.find(name).report(given(name))
            made[name] = json.loads(json.dumps(report.content()))
        return made[name]

    return find


# ---------------------------------------------------------------------------------------------
# Numbers and report


@each
def test_a_report_says_what_was_run(name: str, reports: Any, given: Any) -> None:
    report, one = reports(name), experiment.find(name)
    assert report["command"] == one.command == f"seqviz lab {name.replace('_', '-')}"
    for key in ("schema", "data", "versions", "hardware", "created", "legend"):
        assert report[key]
    assert report["settings"].items() >= json.loads(json.dumps(asdict(given(name)))).items()


@each
def test_the_same_settings_give_the_same_numbers(name: str, reports: Any, given: Any) -> None:
    state = torch.random.get_rng_state()
    said: list[str] = []
    again = json.loads(json.dumps(experiment.find(name).measure(given(name), said.append)))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_default_dtype() == torch.float32
    assert said
    for key, value in again.items():
        if name not in TIMED and key not in experiment.find(name).given:
            assert value == reports(name).get(key, value), key


@each
def test_the_sentence_is_of_the_numbers_and_in_two_languages(name: str, reports: Any) -> None:
    one, report = experiment.find(name), reports(name)
    assert report["says"] == {code: one.sentence(report, code) for code in ("en", "zh")}
    assert not re.search("[\u4e00-\u9fff]", report["says"]["en"])
    assert re.search("[\u4e00-\u9fff]", report["says"]["zh"])
    with pytest.raises(ValueError, match="language to be one of en, zh, got 'fr'"):
        one.sentence(report, "fr")


# ---------------------------------------------------------------------------------------------
# Settings


BAD = [
    ("gradient", {"width": 6, "num_heads": 4}, "got 6 and 4; try 4"),
    ("gradient", {"width": 9, "num_heads": 3}, "even width divisible by num_heads, got 9 and 3; try 6"),
    ("gradient", {"length": 1}, "length to be a whole number from 2 to 512, got 1"),
    ("gradient", {"num_seeds": True}, "num_seeds to be a whole number from 1 to 1000, got True"),
    ("gradient", {"forget_biases": ()}, "at least one finite forget bias, got (); try 0, 1, 3"),
    ("gradient", {"input_std": 0.0}, "input_std above 0, got 0.0; try 1"),
    ("recall", {"distances": (5, 5)}, "distances to be rising whole numbers from 1 to 2000, got (5, 5)"),
    ("recall", {"num_seeds": 99}, "num_seeds to be a whole number from 1 to 20, got 99"),
    ("recall", {"rates": (2.0,)}, "learning rates above 0 and below 1, got (2.0,)"),
    ("recall", {"kinds": ("rnn", "gru")}, "kinds to be some of rnn, lstm, lstm-forget-3, attention"),
    ("recall", {"kinds": ()}, "each once, got ()"),
    ("capacity", {"widths": (8, 4)}, "widths to be rising whole numbers from 1 to 1024, got (8, 4)"),
    ("capacity", {"max_length": 1}, "max_length to be a whole number from 2 to 200, got 1"),
    ("capacity", {"rates": ()}, "learning rates above 0 and below 1, got ()"),
    ("extrapolation", {"trained_length": 7}, "trained_length to be one of the tested lengths, got 7"),
    ("extrapolation", {"lengths": (20, 200)}, "lengths to be rising whole numbers from 1 to 128"),
    ("extrapolation", {"width": 10, "num_heads": 4}, "divisible by num_heads, got 10 and 4; try 8"),
    ("extrapolation", {"rates": (0.1, 0.1)}, "every learning rate once, got (0.1, 0.1)"),
    ("cost", {"widths": ()}, "widths to be rising whole numbers from 2 to 4096, got ()"),
    ("cost", {"positions": (0, 3)}, "positions to be rising whole numbers from 1"),
    ("cost", {"widths": (6,)}, "widths divisible by num_heads, got 6 and 4; try 4"),
    ("cost", {"lengths": (32, 48), "tokens": 64}, "got 48 and 64; try tokens 96 or a multiple"),
    ("cost", {"num_threads": 0}, "num_threads to be a whole number from 1 to 1024, got 0"),
    ("cost", {"round_seconds": 0.0}, "round_seconds above 0 and at most 10, got 0.0; try 0.02"),
    ("cost", {"device": "tpu"}, "device to be one of cpu, cuda, got 'tpu'"),
    ("training_cost", {"num_examples": 0}, "num_examples to be a whole number from 1 to"),
    ("training_cost", {"models": ("rnn", "rnn")}, "each named once, got ('rnn', 'rnn'); try"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changed", "message"), BAD)
def test_bad_settings_say_what_to_do(name: str, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        experiment.find(name).settings(**changed)
    assert message in str(caught.value)


@dataclass(frozen=True)
class Fields:
    count: Annotated[int, settings.Whole(1, 9)] = 1
    values: Annotated[tuple[int, ...], settings.Rising(1, 9)] = (1, 2)
    rates: settings.Rates = (0.1,)
    threads: Annotated[int | None, settings.Whole(1, 4)] = None
    name: str = "any"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"count": 0}, "count to be a whole number from 1 to 9, got 0"),
        ({"count": True}, "count to be a whole number from 1 to 9, got True"),
        ({"count": 1.5}, "count to be a whole number from 1 to 9, got 1.5"),
        ({"count": None}, "count to be a whole number from 1 to 9, got None"),
        ({"threads": 5}, "threads to be a whole number from 1 to 4, got 5"),
        ({"values": ()}, r"values to be rising whole numbers from 1 to 9, got \(\); try 1, 2"),
        ({"values": (2, 1)}, r"values to be rising whole numbers from 1 to 9, got \(2, 1\)"),
        ({"values": (1, True)}, "values to be rising whole numbers"),
        ({"values": (1, 1)}, "values to be rising whole numbers"),
        ({"values": (1, 10)}, r"values to be rising whole numbers from 1 to 9, got \(1, 10\)"),
        *(({"rates": rates}, "learning rate") for rates in ((0.0,), (1.0,), (math.nan,))),
    ],
)
def test_every_field_is_held_to_its_range(changed: dict[str, Any], message: str) -> None:
    settings.check(Fields(count=9, threads=4))
    with pytest.raises(ValueError, match=message):
        settings.check(Fields(**changed))


# ---------------------------------------------------------------------------------------------
# What models are trained and tested on


@dataclass(frozen=True)
class Learned:
    """An experiment whose models are trained on sequences drawn at random.

    Attributes:
        given: its settings, with sequences so long that two of one stream are hardly ever the same.
        kinds: of model that are compared, and so get the same batches.
        run: trains a model of one kind.
        held_out: tests it on a length, a seed and a stream.
        lengths: all that are trained.
    """

    given: Any
    kinds: tuple[str, ...]
    run: Callable[[Any, str], Any]
    held_out: Callable[..., Any]
    lengths: set[int]


EQUAL: dict[str, Any] = {"batch_size": 32, "num_validation": 32, "num_test": 32}
"""Numbers of sequences: of one size, what the same stream draws is the same."""

LEARNED = {
    recall: Learned(
        replace(tiny_lab.RECALL, distances=(9, 12), steps=40, **EQUAL),
        settings.KINDS,
        lambda given, kind: recall.run(given, kind, given.distances, 0.01, 1)[0],
        recall.held_out,
        {9, 12},
    ),
    capacity: Learned(
        replace(tiny_lab.CAPACITY, max_length=9, steps=60, **EQUAL),
        tuple(capacity.CONTEXTS),
        lambda given, kind: capacity.run(given, kind, 4, 0.01, 1),
        capacity.copied,
        set(range(1, 10)),
    ),
    extrapolation: Learned(
        replace(tiny_lab.EXTRAPOLATION, trained_length=9, lengths=(9, 12), steps=60, **EQUAL),
        extrapolation.MODELS,
        lambda given, kind: extrapolation.run(given, "lookup", kind, 0.01, 1),
        lambda given, *rest: extrapolation.held_out(given, "lookup", *rest),
        set(range(1, 10)),
    ),
}
each_learned = pytest.mark.parametrize("module", LEARNED, ids=lambda module: module.__name__)


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch, module: Any) -> list[tuple[int, torch.Tensor]]:
    """All that is drawn: length, and what the model reads. No model is changed."""
    seen: list[tuple[int, torch.Tensor]] = []
    real = module.draw

    def draw(first: Any, size: int, length: int, random: torch.Generator) -> Any:
        batch = real(first, size, length, random)
        seen.append((length, batch.inputs[0]))
        return batch

    monkeypatch.setattr(module, "draw", draw)
    monkeypatch.setattr(
        module, "train", lambda model, draw, steps, *rest: [draw() for _ in range(steps)]
    )
    return seen


@each_learned
def test_training_draws_each_of_its_lengths_and_no_other(module: Any, batches: Any) -> None:
    case = LEARNED[module]
    case.run(case.given, case.kinds[0])
    assert len(batches) == case.given.steps
    assert {length for length, _ in batches} == case.lengths


@each_learned
def test_all_kinds_of_model_get_the_same_batches(module: Any, batches: Any) -> None:
    case, seen = LEARNED[module], []
    for kind in case.kinds:
        batches.clear()
        case.run(case.given, kind)
        seen.append([inputs.tolist() for _, inputs in batches])
    assert all(one == seen[0] for one in seen) and seen[0]


@each_learned
def test_test_sequences_are_not_those_of_training_or_validation(module: Any, batches: Any) -> None:
    case = LEARNED[module]
    model = case.run(case.given, case.kinds[0])
    train = [row for length, inputs in batches if length == 9 for row in inputs.tolist()]
    tested = []
    for stream in (TEST, VALIDATION, TEST):
        batches.clear()
        case.held_out(case.given, model, 9, 1, stream)
        ((_, inputs),) = batches
        tested.append(inputs.tolist())
    test, validation, again = tested
    assert test == again and train
    for one, other in ((train, test), (test, validation), (train, validation)):
        assert not any(row in other for row in one)


# ---------------------------------------------------------------------------------------------
# What several seeds say together


def test_the_rate_is_searched_on_its_own_seeds_and_then_every_seed_is_run() -> None:
    seen: list[tuple[float, int, int]] = []

    def answers(rate: float, seed: int, stream: int) -> list[Any]:
        seen.append((rate, seed, stream))
        if stream == VALIDATION:
            return [0.5, np.array([0.25, 0.75])] if rate == 0.01 else [0.4, np.array([0.0, 0.2])]
        return [1.0, np.array([0.0, 0.5 * seed])]

    said: list[str] = []
    given = settings.Capacity(num_seeds=2, rates=(0.003, 0.01))
    found, by_seed = experiment.learned(given, "here", answers, said.append, (1001, 1002))
    searched = [(rate, seed, VALIDATION) for rate in (0.003, 0.01) for seed in (1001, 1002)]
    assert seen == [*searched, (0.01, 1, TEST), (0.01, 2, TEST)]
    assert found["search"] == {"tried": [[0.003, 0.25], [0.01, 0.5]], "chosen": 0.01}
    assert found["rate"] == 0.01
    assert found["accuracy"]["seeds"] == [[1.0, 0.25], [1.0, 0.5]]
    assert [row[0] for row in by_seed] == [1.0, 1.0]
    assert said[0] == "here: learning rate 0.003: 0.250" and said[-1] == "here, seed 2: 1.00 0.50"


def test_the_best_rate_is_chosen_and_of_equal_ones_the_smallest() -> None:
    scores = {0.1: 0.5, 0.01: 0.9, 0.001: 0.9, 0.0001: 0.2}
    lines: list[str] = []
    found = experiment.search(tuple(scores), scores.__getitem__, lines.append)
    assert found == {"tried": [[r, s] for r, s in scores.items()], "chosen": 0.001}
    assert lines[0] == "learning rate 0.1: 0.500"


def test_the_interval_is_students() -> None:
    """Mean 0.5, s = 0.1, three seeds: 0.5 ± 4.303 · 0.1 / √3 = 0.5 ± 0.24843."""
    assert experiment.interval([0.4, 0.5, 0.6]) == pytest.approx((0.25157, 0.74843), abs=1e-5)
    assert experiment.interval([0.9, 1.0, 1.0]) == pytest.approx((0.82323, 1.0), abs=1e-5)
    assert experiment.interval([0.3]) is None
    assert experiment.interval([1.0] * 5) == (1, 1)
    assert experiment.interval([0.5] * settings.MAX_SEEDS) == (0.5, 0.5)


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.706), (2, 4.3027), (9, 2.2622)])
def test_quantiles_leave_a_fortieth_above(freedom: int, quantile: float) -> None:
    """The density of Student's t, integrated on a grid: an independent way to the table."""
    assert experiment._STUDENT[freedom - 1] == pytest.approx(quantile, abs=1e-3)
    scale = math.gamma((freedom + 1) / 2) / math.gamma(freedom / 2) / math.sqrt(freedom * math.pi)
    grid = np.linspace(0, quantile, 200_001)
    density = scale * (1 + grid**2 / freedom) ** (-(freedom + 1) / 2)
    assert np.trapezoid(density, grid) == pytest.approx(0.475, abs=1e-5)


def test_seeds_are_summed_up_by_point() -> None:
    found = experiment.over_seeds([[1.0, 0.2], [1.0, 0.4]])
    assert found["mean"] == pytest.approx([1, 0.3])
    assert found["seeds"] == [[1.0, 0.2], [1.0, 0.4]]
    assert found["low"] == [1, 0] and found["high"] == [1, 1]  # 0.3 ± 12.706 · 0.1, cut
    alone = experiment.over_seeds([[0.5, 0.25]])
    assert alone == {"mean": [0.5, 0.25], "low": None, "high": None, "seeds": [[0.5, 0.25]]}


@pytest.mark.parametrize(
    ("number", "said"), [(0.123, "0.12"), (1.0, "1"), (1.96, "2"), (12.6, "13"), (1234.0, "1234")]
)
def test_digits(number: float, said: str) -> None:
    assert two_digits(number) == said


# ---------------------------------------------------------------------------------------------
# Command


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["seqviz", "lab", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code if isinstance(ended.value.code, int) else 0


@each
def test_the_command_writes_report_and_figures(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    case, command = CASES[name], name.replace("_", "-")
    options, out = case.options.format(folder=folder), tmp_path / "new" / f"{name}.json"
    assert run(monkeypatch, command, *options.split(), "--out", str(out)) == 0
    said = capsys.readouterr()
    found = json.loads(out.read_text(encoding="utf-8"))
    assert said.out.strip() == found["says"]["en"] == experiment.find(name).sentence(found, "en")
    assert case.said in said.err
    assert found["command"] == f"seqviz lab {command} {options}"
    assert found["settings"].items() >= case.set.items()
    written = sorted(path.name for path in out.parent.iterdir())
    assert written == [f"{name}.json", f"{name}.svg", f"{name}.zh.svg"]
    if name in TIMED:
        assert found["hardware"].endswith("1 threads") and found["num_threads"] == 1
        return
    assert run(monkeypatch, command, *options.split()) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {**printed, "created": found["created"]} == found


@each
def test_a_failing_command_leaves_the_old_report(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    (options, message), command = CASES[name].refused, name.replace("_", "-")
    out = tmp_path / f"{name}.json"
    out.write_text("old", encoding="utf-8")
    given = options.format(folder=folder).split()
    assert run(monkeypatch, command, *given, "--out", str(out)) == 1
    assert message in capsys.readouterr().err
    assert [(p.name, p.read_text(encoding="utf-8")) for p in tmp_path.iterdir()] == [
        (out.name, "old")
    ]
    assert run(monkeypatch, command, "--out", str(tmp_path)) == 2
    assert "expected a file for --out that ends in .json" in capsys.readouterr().err


def test_options_are_known_without_pytorch() -> None:
    """So that the command line starts at once."""
    code = "import sys, seqviz.lab.commands; print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---------------------------------------------------------------------------------------------
# Figure


@each
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_figure_labels_every_curve(
    name: str, language: str, reports: Any, tmp_path: Path
) -> None:
    figure = plotting.lab.FIGURES[name](reports(name), language=language)
    plotting.save(figure, tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    for text in CASES[name].drawn[language]:
        assert text in drawn, text
    assert len(figure.axes) == CASES[name].axes


@each
def test_the_figure_refuses_what_is_no_report(name: str) -> None:
    for content in ({}, CASES[name].no_report):
        with pytest.raises(ValueError, match=f"content of an? {name.replace('_', ' ')} report"):
            plotting.lab.FIGURES[name](content)


def test_every_experiment_has_a_figure() -> None:
    assert set(plotting.lab.FIGURES) == set(EXPERIMENTS) == set(CASES)


# ---------------------------------------------------------------------------------------------
# The committed reports


@each
def test_the_committed_report_is_that_of_its_command(name: str, models_folder: Path) -> None:
    one, report = experiment.find(name), Report.read(models_folder / "report" / f"{name}.json")
    assert report is not None
    assert report.command == one.command
    defaults = json.loads(json.dumps({**asdict(one.settings()), **one.given}))
    found = report.results["settings"]
    assert {f.name for f in fields(one.settings)} <= set(found)
    assert {k: v for k, v in found.items() if k not in MEASURED_ON} == {
        k: v for k, v in defaults.items() if k not in MEASURED_ON
    }
    for language in ("en", "zh"):
        assert report.results["says"][language] == one.sentence(report.results, language)
    assert report.versions and report.hardware and report.created
    if report.models:
        assert report.stale(read_training(models_folder)) is None


@each
def test_the_committed_figure_is_drawn_from_its_report(name: str, models_folder: Path) -> None:
    """English only: how wide Chinese is depends on the fonts of a machine."""
    folder, drawn = models_folder / "report", io.BytesIO()
    report = Report.read(folder / f"{name}.json")
    assert report is not None
    plotting.save(plotting.lab.FIGURES[name](report.content()), drawn, "svg")
    assert drawn.getvalue().decode() == (folder / f"{name}.svg").read_text(encoding="utf-8")
    assert (folder / f"{name}.zh.svg").is_file()
