"""Everything that speaks of the shipped weights, in one table, and what brings it up to date.

`ARTEFACTS` says of each report of ``models/report/`` which command makes it, what it depends on, how it is
made anew, which figures are drawn from it and what the docs say of it. `bring_up_to_date` walks the table
(``seqviz report``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from seqviz import coverage, handwritten, trials
from seqviz.drawing import figures
from seqviz.drawing.figures.kept import drawable
from seqviz.files import file_digest, write_text
from seqviz.lab import experiment
from seqviz.looking import alignment_report as alignment
from seqviz.looking.faithfulness import deletion_report
from seqviz.measuring import bits, looks, markdown, names, pages, readme, seeds
from seqviz.measuring.card import card
from seqviz.measuring.evaluate import by_length
from seqviz.measuring.everyday import CHOOSER, everyday_report
from seqviz.measuring.length import check
from seqviz.report import Report, Trainings, read_training, weights_of
from seqviz.shipped import models_folder
from seqviz.translating.loading import load

Draw = Callable[..., Any]
"""Content of a report, and the language of its words → figure."""
Reports = dict[str, Report]


@dataclass(frozen=True)
class Site:
    """Where the reports are, and what they are to speak of.

    Attributes:
        models: folder of the model folders, with ``report/`` in it.
        trainings: ``training.json`` of the models.
        say: takes a line on what is done or out of date.
        work: folder that remembers translations.
        data: test set for what needs one; None where it is not at hand.
    """

    models: Path
    trainings: Trainings
    say: Callable[[str], None]
    work: Path
    data: Path | None = None

    def file(self, name: str) -> Path:
        """Where a report or figure is kept."""
        return self.models / "report" / name

    @property
    def is_shipped(self) -> bool:
        """Whether these are the models that `seqviz.load` finds by name."""
        return bool(self.trainings) and self.models.resolve() == models_folder().resolve()


@dataclass(frozen=True)
class Artefact:
    """One report, how it is made and what it fills.

    Attributes:
        name: of the file in ``models/report/``.
        command: that makes it.
        of: what it depends on: "weights", "corpus", "texts", "lexicon", "machine" (its speed), or "chance" (seeds).
        anew: makes it, or says None where that cannot be done here; None where `command` alone can, in hours.
        wanted: whether it belongs there even if nobody has measured it yet.
        always: made anew at every call: it takes a moment, and nothing tells that it is out of date.
        data: keys of its ``data`` that must have these values.
        otherwise: what is said where it is out of date and not made anew; ``{why}`` and ``{command}`` in it.
        figures: drawn from it, by the file's name.
        block: what the docs say of it beside all the reports, see `blocks`.
    """

    name: str
    command: str
    of: tuple[str, ...]
    anew: Callable[[Site], Report | None] | None = None
    wanted: bool = False
    always: bool = False
    data: Callable[[], Mapping[str, Any]] = dict
    otherwise: str = ""
    figures: Callable[[Site, Report], Mapping[str, Draw]] = lambda site, report: {}
    block: Callable[[Report, Reports, Trainings], str] | None = None

    def stale(self, report: Report, trainings: Trainings) -> str | None:
        """Why it does not speak of what is at hand, in words; None if it does."""
        return report.stale(trainings if "weights" in self.of else {}, self.data())

    def current(self, site: Site) -> Report | None:
        """The report, made anew if it is out of date and that can be done here."""
        found = Report.read(site.file(f"{self.name}.json"))
        why = self.stale(found, site.trainings) if found else "there is none"
        needed = self.wanted if found is None else why is not None
        if not (needed or self.always):
            return found
        if self.anew and (made := self.anew(site)):
            made.write(site.file(f"{self.name}.json"))
            if "corpus" in self.of:  # which takes an hour
                site.say(f"{site.file(f'{self.name}.json')} written")
            return made
        if self.otherwise:
            site.say(self.otherwise.format(why=why, command=found and found.command))
        return found


# ---------------------------------------------------------------------------------------------
# How each is made


def _length(site: Site) -> Report | None:
    if site.data is None or not site.trainings:
        return None
    prediction = site.file("prediction.json")
    models = {name: site.models / name for name in site.trainings}
    found = prediction if prediction.is_file() else None
    return by_length(site.data, models, site.work, site.say, prediction=found)


def _looks(site: Site) -> Report | None:
    """The looks that are known, and that of a length report which is of earlier weights."""
    known = Report.read(site.file("looks.json"))
    length = Report.read(site.file("length.json"))
    if length and looks.look(length) and length.stale(site.trainings):
        return looks.looks_report([length], known)
    return known


def _length_figures(site: Site, report: Report) -> dict[str, Draw]:
    check(report.content(), str(site.file("length.json")))
    same = partial(figures.length_curve, curve="same-content")
    found: dict[str, Draw] = {"length": figures.length_curves, "same-content": same}
    if report.results["positions"]["loss"].get("natural"):
        found["where-it-breaks"] = figures.where_it_breaks
    if report.results.get("references"):
        drawn = {"kept": ("bleu_kept", figures.kept), "circles": ("repeated", figures.circles)}
        found |= {
            name: draw
            for name, (measure, draw) in drawn.items()
            if drawable(report.results, measure)
        }
    return found


def _coverage(site: Site) -> Report:
    """How far "not found" can be trusted, on the hand-aligned pairs."""
    pairs = alignment.aligned_pairs()
    halves = {"chosen_on": pairs[0::2], "reported": pairs[1::2]}
    lexicon = coverage.Lexicon.load()
    found = {half: coverage.evaluate(lexicon, rows) for half, rows in halves.items()}
    digest = file_digest(models_folder() / "lexicon.json")
    data = {"name": handwritten.NAME, "pairs": len(pairs), "lexicon_sha256": digest}
    return Report.now("seqviz report", data, found, dated=False)


def _attention(site: Site) -> Report | None:
    """Which head is closest to the hand-made alignments, and how close all that links words is.

    The public pairs are part of it where they are at hand.
    """
    return attention_report(site.models, site.trainings) if site.trainings else None


def attention_report(models: Path, trainings: Trainings, public: Path | None = None) -> Report:
    """What links words: error rates against alignments, and what it costs to delete the word ranked first.

    Args:
        models: folder of the model folders.
        trainings: ``training.json`` of the models.
        public: JSON file of pairs that other people aligned, as `looking.alignment.head_error_rates` has them.
    """
    pairs = alignment.aligned_pairs()
    others = alignment.read_pairs(public) if public else []
    translators = {name: load(models / name) for name in trainings}
    data = {
        "name": handwritten.NAME,
        **_aligned(),
        "pairs": len(pairs),
        "sure_links": sum(len(pair["sure"]) for pair in pairs),
        "possible_links": sum(len(pair["possible"]) for pair in pairs),
        "chosen_on": len(pairs[0::2]),
        "reported": len(pairs[1::2]),
    }
    if public:
        data |= {
            "public": public.name,
            "public_sha256": file_digest(public),
            "public_pairs": len(others),
        }
    found = alignment.alignment_report(translators, pairs, public=others)
    choice = {name: alignment.HeadChoice(**chosen) for name, chosen in found["choice"].items()}
    found["deletion"] = deletion_report(translators, pairs[1::2], choice)
    command = "seqviz alignment" + (f" --public {public.name}" if public else "")
    return Report.now(command, data, found, weights_of(trainings))


def _aligned() -> dict[str, str]:
    return {"aligned_sha256": alignment.pairs_digest(alignment.aligned_pairs())}


def _everyday(site: Site) -> Report | None:
    """None without the model that chooses the text."""
    return everyday_report(site.models, site.trainings) if CHOOSER in site.trainings else None


def _gradient(site: Site) -> Report | None:
    if not site.is_shipped:
        return None
    asked = experiment.find("gradient")
    return asked.report(asked.settings(models=tuple(site.trainings)), site.say)


def _training_cost(site: Site) -> Report | None:
    if not site.is_shipped:
        return None
    asked = experiment.find("training_cost")
    return asked.report(asked.settings(), site.say)


def _lab_figure(name: str) -> Callable[[Site, Report], Mapping[str, Draw]]:
    return lambda site, report: {name: figures.lab.FIGURES[name]}


# ---------------------------------------------------------------------------------------------
# The table

ARTEFACTS = (
    Artefact(  # before the length report, which takes the place of an earlier one
        name="looks",
        command=looks.COMMAND,
        of=("corpus",),
        anew=_looks,
        always=True,
        block=lambda report, reports, _: looks.block(report, reports.get("length")),
    ),
    Artefact(
        name="length",
        command="seqviz evaluate",
        of=("weights", "corpus", "lexicon"),
        anew=_length,
        wanted=True,
        otherwise="note: length.json is out of date ({why}); give --data to measure it anew",
        figures=_length_figures,
        block=lambda report, reports, _: markdown.length(report, reports.get("seeds")),
    ),
    Artefact(
        name="chains",
        command="seqviz chains",
        of=("weights", "corpus", "lexicon"),
        otherwise="note: chains.json is out of date ({why}); run {command}",
        figures=lambda site, report: {"chains": figures.chains},
        block=lambda report, *_: markdown.chains(report),
    ),
    Artefact(
        name="bits",
        command="seqviz bits",
        of=("corpus", "chance"),
        figures=lambda site, report: {"bits": figures.bits},
        block=lambda report, *_: bits.block(report),
    ),
    Artefact(
        name="everyday",
        command="seqviz report",
        of=("weights", "texts", "lexicon"),
        anew=_everyday,
        wanted=True,
        data=handwritten.everyday_digest,
    ),
    Artefact(
        name="coverage",
        command="seqviz report",
        of=("texts", "lexicon"),
        anew=_coverage,
        always=True,
        block=lambda report, *_: markdown.coverage(report),
    ),
    Artefact(
        name="quality",
        command="seqviz quality",
        of=("weights", "corpus", "texts"),
        otherwise="note: quality.json is out of date; run {command}",
        block=lambda report, _, trainings: markdown.quality(report, trainings),
    ),
    Artefact(
        name="attention",
        command="seqviz alignment",
        of=("weights", "texts"),
        anew=_attention,
        wanted=True,
        data=_aligned,
        block=lambda report, *_: markdown.alignment(report),
    ),
    Artefact(
        name="recipe",
        command="seqviz trials recipe",
        of=("corpus", "chance"),
        block=lambda report, _, trainings: trials.recipe_table(report.content(), trainings),
    ),
    Artefact(
        name="mechanism",
        command="seqviz trials mechanism",
        of=("corpus", "chance"),
        block=lambda report, *_: trials.mechanism_table(report.content()),
    ),
    Artefact(
        name="seeds",
        command="seqviz seeds",
        of=("corpus", "chance"),
        block=lambda report, *_: seeds.block(report),
    ),
    # The lab; the docs say all of it in one block, see `markdown.lab`.
    Artefact(
        name="gradient",
        command="seqviz lab gradient",
        of=("weights", "texts", "chance"),
        anew=_gradient,
        figures=_lab_figure("gradient"),
    ),
    Artefact("recall", "seqviz lab recall", ("chance",), figures=_lab_figure("recall")),
    Artefact("capacity", "seqviz lab capacity", ("chance",), figures=_lab_figure("capacity")),
    Artefact("cost", "seqviz lab cost", ("machine",), figures=_lab_figure("cost")),
    Artefact(
        name="training_cost",
        command="seqviz lab training-cost",
        of=("weights", "machine"),
        anew=_training_cost,
        figures=_lab_figure("training_cost"),
    ),
    Artefact(
        "extrapolation",
        "seqviz lab extrapolation",
        ("chance",),
        figures=_lab_figure("extrapolation"),
    ),
)
"""In the order of the docs."""


# ---------------------------------------------------------------------------------------------
# The walk


def bring_up_to_date(
    models: Path,
    readme_file: Path,
    work: Path,
    say: Callable[[str], None],
    data: Path | None = None,
) -> None:
    """Reports, figures, README, docs and cards of the weights in a folder.

    Args:
        models, work, say, data: see `Site`.
        readme_file: the README, which is filled in with its other languages and the docs beside it.
    Raises:
        ValueError: a damaged report, a README without markers, or markers that are not in pairs.
    """
    site = Site(models, read_training(models), say, work, data)
    reports: Reports = {}
    for artefact in ARTEFACTS:
        if report := artefact.current(site):
            reports[artefact.name] = report
    for artefact in ARTEFACTS:
        if report := reports.get(artefact.name):
            for name, draw in artefact.figures(site, report).items():
                _save(site, name, draw, report.content())
    if all(training.get("losses", {}).get("train") for training in site.trainings.values()):
        _save(site, "losses", figures.loss_curves, site.trainings)
    written = pages.pages(readme_file)
    for page in written:
        text = page.read_text(encoding="utf-8")
        where = page.relative_to(readme_file.parent).as_posix()
        if page == readme_file and not pages.blocks_in(text, where):
            raise ValueError(
                f"expected <!-- results:begin --> and <!-- results:end --> in {page}; restore them"
            )
        found = blocks(reports, site.trainings, pages.language_of(page))
        write_text(page, pages.fill(text, found, where))
    about = models / "DATA.md"
    about_data = about.read_text(encoding="utf-8") if about.is_file() else ""
    for name, training in site.trainings.items():
        write_text(models / name / "README.md", card(training, about_data))
    say(f"{', '.join(map(str, written))} and {len(site.trainings)} cards written")


def _save(site: Site, name: str, draw: Draw, content: Any) -> None:
    for language, ending in (("en", ""), ("zh", ".zh")):
        figures.save(draw(content, language=language), site.file(f"{name}{ending}.svg"))


def blocks(reports: Reports, trainings: Trainings, language: str = "en") -> dict[str, str]:
    """Markdown of what was measured on the shipped weights, by the names of the pages' markers."""
    found = dict.fromkeys(("alike", "results"), markdown.NOT_MEASURED)
    found |= readme.blocks(reports, trainings, language)
    if language != "en":
        return found
    named = [artefact for artefact in ARTEFACTS if artefact.block]
    found |= dict.fromkeys(("training", *(a.name for a in named)), markdown.NOT_MEASURED)
    if trainings:
        found["training"] = markdown.training(trainings)
        for artefact in named:
            if artefact.block and (report := reports.get(artefact.name)):
                said = [artefact.block(report, reports, trainings)]
                if why := artefact.stale(report, trainings):
                    said.append(f"This measurement is not of the weights shipped now: {why}.")
                found[artefact.name] = "\n\n".join(said)
    return found | markdown.lab(reports, trainings) | {"names": names.index()}
