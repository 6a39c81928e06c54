"""The lab's committed reports: default settings, sentences made from the numbers, figures drawn from them."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import pytest

from seqviz import plotting
from seqviz.lab import EXPERIMENTS
from seqviz.report import read_report

MEASURED_ON = {"num_threads"}
"""Settings that say what the machine has, where nothing was asked for."""


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_report_is_that_of_its_command(name: str, models_folder: Path) -> None:
    experiment, report = import_module(f"seqviz.lab.{name}"), read_report(models_folder, name)
    assert report is not None
    assert report["command"] == f"seqviz lab {name.replace('_', '-')}"
    defaults = json.loads(json.dumps(asdict(experiment.Settings())))
    given = {key: report["settings"][key] for key in defaults if key not in MEASURED_ON}
    assert given == {key: defaults[key] for key in given}
    for language in ("en", "zh"):
        assert report["says"][language] == experiment.sentence(report, language)
    assert report["versions"] and report["hardware"] and report["created"]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_figure_is_drawn_from_its_report(name: str, models_folder: Path) -> None:
    """English only: how wide Chinese is depends on the fonts of a machine."""
    folder, drawn = models_folder / "report", io.BytesIO()
    plotting.save(plotting.lab.FIGURES[name](read_report(models_folder, name)), drawn, "svg")
    assert drawn.getvalue().decode() == (folder / f"{name}.svg").read_text(encoding="utf-8")
    assert (folder / f"{name}.zh.svg").is_file()


def test_every_experiment_has_a_figure() -> None:
    assert set(plotting.lab.FIGURES) == set(EXPERIMENTS)
