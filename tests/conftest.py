"""What tests share: a tokenizer and four models made on the spot, the shipped weights, a browser.

Nothing here or in any test reads a file outside the repository.
"""

from __future__ import annotations

import os

# Before any import of Gradio or the Hub's client, which read these once.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from seqviz import architectures, tokenizer

REPOSITORY = Path(__file__).resolve().parents[1]
TINY_VOCABULARY = 300
TINY_WIDTHS: dict[str, Any] = {"d_model": 32, "width": 48, "vector_size": 24, "attention_size": 16}
TINY_TRANSFORMER: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
}

# A busy machine is no reason to fail; CI draws the same examples every time.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")

torch.set_num_threads(1)  # tiny models gain nothing from more, and lose much on a busy machine


# ---------------------------------------------------------------------------------------------
# A browser


def _require_browser() -> bool:
    return os.environ.get("SEQVIZ_REQUIRE_BROWSER", "") not in ("", "0")


def _find_chromium() -> str | None:
    chosen = os.environ.get("SEQVIZ_CHROMIUM")
    names = [chosen] if chosen else ["chromium", "chromium-browser", "google-chrome", "chrome"]
    return next((path for name in names if (path := shutil.which(name))), None)


def _missing_browser() -> str | None:
    """Why browser tests cannot run, or None when they can."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError as error:
        return f"no Playwright ({error}); pip install -r tests/requirements.txt"
    if _find_chromium() is None:
        return "no Chromium found; install it (Debian: chromium) or name it in SEQVIZ_CHROMIUM"
    return None


def pytest_configure(config: pytest.Config) -> None:
    if _require_browser() and (reason := _missing_browser()):
        raise pytest.UsageError(f"SEQVIZ_REQUIRE_BROWSER is set, but there is {reason}")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two processes for the whole suite, where there are two cores; none for files that were named."""
    whole = config.args_source is not pytest.Config.ArgsSource.ARGS
    return 2 if whole and (os.cpu_count() or 1) > 1 else 0


SERVED_THE_SAME = {
    "test_browser.py",
    "test_browser_attention.py",
    "test_browser_lab.py",
    "test_browser_links.py",
    "test_browser_queue.py",
}


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each file in one process; those that are served the same page in the same one."""
    from xdist.scheduler import LoadFileScheduling

    class Files(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "the page" if Path(file).name in SERVED_THE_SAME else file

    return Files(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """Where a browser is required, a skipped browser test is a failed one; a failed one tells what it saw."""
    report = yield
    if report.failed and call.when == "call":
        for visit in getattr(getattr(item, "funcargs", {}).get("visit"), "visits", ()):
            report.sections.append(("on the page", visit.seen()))
    if report.skipped and _require_browser() and item.get_closest_marker("browser"):
        report.outcome = "failed"
        report.longrepr = (
            f"SEQVIZ_REQUIRE_BROWSER is set, but the test was skipped: {report.longrepr}"
        )
    return report


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium executable; the test is skipped where there is none."""
    if reason := _missing_browser():
        pytest.skip(reason)
    path = _find_chromium()
    assert path is not None
    return path


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """A headless Chromium, one for a test file."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shipped_page(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the page with the shipped weights, or other ones that `SEQVIZ_TEST_MODELS` names.

    It is served by ``python app.py`` from another folder, once for all files of `SERVED_THE_SAME`.
    """
    from browsing import serve

    other = os.environ.get("SEQVIZ_TEST_MODELS")
    folder = Path(other) if other else REPOSITORY / "models"
    names = architectures.MODEL_NAMES
    if missing := [n for n in names if not (folder / n / "model.safetensors").is_file()]:
        pytest.skip(f"no weights of {', '.join(missing)} in {folder}")
    with serve(tmp_path_factory.mktemp("elsewhere"), folder if other else None) as found:
        yield found


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Any]:
    """Factory of visits to `address`, which a test file serves; at the end of the test nothing may have gone wrong on any."""
    from browsing import Visit

    visits: list[Visit] = []

    def make(path: str = "", **options) -> Visit:
        visits.append(Visit(browser, address, path, **options))
        return visits[-1]

    make.visits = visits  # for the report of a failure
    yield make
    faults = [fault for one in visits for fault in one.faults]
    for one in visits:
        one.context.close()
    assert not faults


# ---------------------------------------------------------------------------------------------
# What the repository ships


@pytest.fixture(scope="session")
def models_folder() -> Path:
    """The shipped tokenizer, weights and reports: ``models/``. Read only."""
    folder = REPOSITORY / "models"
    assert (folder / "tokenizer" / "tokenizer.json").is_file(), f"no shipped tokenizer in {folder}"
    return folder


# ---------------------------------------------------------------------------------------------
# Tiny tokenizer and models


_PEOPLE = [
    ("The teacher", "Le professeur"),
    ("My neighbour", "Mon voisin"),
    ("The old sailor", "Le vieux marin"),
    ("Our president", "Notre président"),
    ("A young girl", "Une jeune fille"),
    ("The committee", "Le comité"),
    ("Nobody", "Personne"),
    ("Her brother", "Son frère"),
]
_ACTIONS = [
    ("is looking at", "regarde"),
    ("has forgotten", "a oublié"),
    ("wants to buy", "veut acheter"),
    ("will describe", "décrira"),
    ("never liked", "détestait"),
    ("painted", "a peint"),
    ("is waiting for", "attend"),
]
_THINGS = [
    ("the green boat", "le bateau vert"),
    ("a large map of Europe", "une grande carte de l'Europe"),
    ("those 12 letters", "ces 12 lettres"),
    ("the bridge", "le pont"),
    ("an apple", "une pomme"),
    ("the first proposal", "la première proposition"),
    ("this question", "cette question"),
    ("the broken window", "la fenêtre cassée"),
    ("my father's garden", "le jardin de mon père"),
]
_ENDINGS = [
    (".", "."),
    (" today.", " aujourd'hui."),
    (" in the morning, before work.", " le matin, avant le travail."),
    ("?", " ?"),
    (", because it was late!", ", parce qu'il était tard !"),
    (" without any reason; it happens.", " sans aucune raison ; cela arrive."),
]


def template_pairs(number: int, seed: int = 0) -> list[tuple[str, str]]:
    """`number` different made-up sentence pairs, English and French (at most 3,024)."""
    draw = random.Random(seed)
    pairs: dict[str, str] = {}
    while len(pairs) < number:
        parts = [draw.choice(kind) for kind in (_PEOPLE, _ACTIONS, _THINGS, _ENDINGS)]
        (who, qui), (does, fait), (what, quoi), (end, fin) = parts
        pairs[f"{who} {does} {what}{end}"] = f"{qui} {fait} {quoi}{fin}"
    return list(pairs.items())


@pytest.fixture(scope="session")
def sentence_pairs() -> list[tuple[str, str]]:
    """150 made-up (English, French) pairs, the text that `tiny_tokenizer` is trained on."""
    return template_pairs(150)


@pytest.fixture(scope="session")
def tiny_tokenizer_folder(
    tmp_path_factory: pytest.TempPathFactory, sentence_pairs: list[tuple[str, str]]
) -> Path:
    """Folder of a tokenizer with 300 pieces, trained in this test run. Read only."""
    folder = tmp_path_factory.mktemp("tiny") / "tokenizer"
    sentences = [sentence for pair in sentence_pairs for sentence in pair]
    tokenizer.train(sentences, folder, vocabulary_size=TINY_VOCABULARY)
    return folder


@pytest.fixture(scope="session")
def tiny_tokenizer(tiny_tokenizer_folder: Path) -> PreTrainedTokenizerFast:
    """A tokenizer with 300 pieces, trained in this test run."""
    return tokenizer.load(tiny_tokenizer_folder)


@torch.no_grad()
def _redraw(model: PreTrainedModel, seed: int) -> None:
    """Draw all trainable weights anew, wide enough that every part changes the output.

    Fresh weights are kind to training: biases zero, scores nearly flat. A transposed matrix or a
    forgotten bias would not show. The padding row and the padding logit stay as they are. The
    numbers below were tried: sources get different hypotheses of different lengths.
    """
    draw = torch.Generator().manual_seed(seed)
    recurrent = model.config.model_type == architectures.RecurrentConfig.model_type
    embedding_std, gain = (0.45, 2.5) if recurrent else (0.25, 0.7)
    embedding = model.get_input_embeddings().weight
    padding_row = embedding[model.config.pad_token_id].clone()
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:  # the Transformer's fixed positions
            continue
        noise = torch.randn(parameter.shape, generator=draw)
        if parameter is embedding:
            parameter.copy_(embedding_std * noise)
        elif parameter.dim() > 1:
            # Sharp attention: scores of a flat one would hide a wrong mask.
            sharp = not recurrent and ("q_proj" in name or "k_proj" in name)
            parameter.copy_((3.0 if sharp else gain) * noise / parameter.shape[1] ** 0.5)
        elif "norm" in name and name.endswith("weight"):
            # Of either sign: else the tied output table only repeats the last input token.
            sign = torch.where(torch.rand(parameter.shape, generator=draw) < 0.5, -1.0, 1.0)
            parameter.copy_(sign * (1.0 + 0.2 * noise))
        else:
            parameter.add_(0.2 * noise)
    embedding[model.config.pad_token_id] = padding_row
    # Let some hypotheses end before the length limit.
    bias: torch.Tensor = model.final_logits_bias  # type: ignore[assignment]
    bias[0, model.config.eos_token_id] += 2.0


@pytest.fixture(scope="session")
def tiny_model(tiny_tokenizer: PreTrainedTokenizerFast) -> Callable[..., PreTrainedModel]:
    """Factory ``tiny_model(name, seed=0, **overrides)`` of small models with random weights.

    `overrides` replace settings of the config, e.g. ``num_layers=1``. Each call makes a new model,
    in evaluation mode, in fp32 on the CPU, with the vocabulary of `tiny_tokenizer`; equal arguments
    give equal weights. The global random state is left as it was.
    """

    def make(name: str, seed: int = 0, **overrides: Any) -> PreTrainedModel:
        settings = TINY_TRANSFORMER if name == "transformer" else TINY_WIDTHS
        with torch.random.fork_rng(devices=[]):
            model = architectures.build(
                name, vocab_size=len(tiny_tokenizer), seed=seed, **{**settings, **overrides}
            )
        _redraw(model, seed)
        return model.eval()

    return make


@pytest.fixture(autouse=True)
def _same_random_state() -> Iterator[None]:
    """Every test starts from the same global random state, whatever ran before it."""
    torch.manual_seed(0)
    random.seed(0)
    yield
