"""How much of a word still reaches the end state: ‖∂h_T/∂x_t‖ against the distance T - t.

    results = EXPERIMENT.measure(Settings())  # numbers of the report
    reach(seqviz.load("rnn"), "A sentence.")  # which words of it still reach the end: `seqviz.looking.reach`

Before training, one layer of each kind reads random numbers. After training, the four encoders read
real text; a bidirectional encoder has two end states, and each is near to one end of the sentence, so
the two directions are never mixed.

Why a gradient fades: ∂h_T/∂x_t holds a product of T - t matrices. For h_t = tanh(W h_{t-1} + U x_t) they
are diag(1 - h²) W, shorter than 1 where W is orthogonal, since tanh′ < 1 (Bengio et al. 1994; Pascanu et
al. 2013). An LSTM adds to its cell (Hochreiter & Schmidhuber 1997), but adding alone is not enough: with
forget gates (Gers et al. 2000) the cell's own path is the product of the gates, which is why their bias
at the start decides (Jozefowicz et al. 2015). Self-attention reaches every position in one step.

Shapes: `T` length of a random sequence, `D` width of an input, `B` copies of it in a batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqviz import handwritten
from seqviz.architectures.recurrent import initialize_recurrence, recurrence
from seqviz.architectures.transformer import build_transformer, transformer_config
from seqviz.files import file_digest
from seqviz.lab.experiment import Experiment, Say
from seqviz.lab.settings import Gradient as Settings
from seqviz.language import Language
from seqviz.looking.reach import (
    ENDS,
    Reach,
    copied_gradients,
    end_norms,
    pull_back,
    reach,
    read_at_once,
    run_layer,
)
from seqviz.translating.loading import load
from seqviz.translating.translator import Translator

__all__ = ["EXPERIMENT", "Reach", "Settings", "gradient", "reach", "sentence"]

SHARE = 0.01
"""A gradient has faded where it is below this share of what it was."""

FAR = 50
"""Pieces; what lies at least so far from an end is summed up by one number."""

INITIALIZATIONS = ("project", "pytorch")


# ---------------------------------------------------------------------------------------------
# Before training


@contextmanager
def _fresh(seed: int) -> Iterator[None]:
    """Weights made inside are float64 and drawn from `seed`.

    Both are settings of the whole process, put back behind; no other thread may make weights meanwhile.
    """
    dtype = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


def fresh_norms(
    settings: Settings,
    cell: str,
    seed: int,
    forget_bias: float = 0.0,
    initialization: str = "project",
) -> tuple[np.ndarray, np.ndarray | None]:
    """‖∂h_T/∂x_t‖_F of one fresh recurrent layer on x_t ~ N(0, input_std²), exact, in float64.

    Args:
        settings: width, length and input_std are read.
        cell: "rnn" or "lstm".
        seed: of inputs and weights.
        forget_bias: added to the LSTM's forget gates.
        initialization: "project" takes `initialize_recurrence`: orthogonal recurrent weights, Glorot's
            input weights, biases 0. "pytorch" takes PyTorch's own: uniform within ±1/√width.
    Returns:
        norms by distance T - t = 0, 1, …, (T,); and for an LSTM the path through the cell alone,
        ‖diag(f_T ⊙ … ⊙ f_{t+1})‖_F / √width, (T,).
    Raises:
        ValueError: an unknown initialisation.
    """
    if initialization not in INITIALIZATIONS:
        raise ValueError(
            f"expected initialization to be one of {', '.join(INITIALIZATIONS)}, "
            f"got {initialization!r}"
        )
    with _fresh(seed), torch.no_grad():
        layer = recurrence(cell, settings.width, settings.width)
        if initialization == "project":
            initialize_recurrence(layer, forget_bias)
        elif cell == "lstm":
            layer.get_parameter("bias_ih_l0")[settings.width : 2 * settings.width] += forget_bias
        run = run_layer(layer, _inputs(settings, seed))
        cotangents = torch.zeros(settings.length, settings.width, settings.width)
        cotangents[-1] = torch.eye(settings.width)
        norms = pull_back(layer, run, cotangents).square().sum(dim=(1, 2)).sqrt()
        gates = None
        if run.keeps is not None:
            # At distance 0 no gate lies between: a product of none is 1.
            later = torch.cat([run.keeps[1:], torch.ones_like(run.keeps[:1])]).flip(0)
            gates = later.cumprod(dim=0).square().mean(dim=1).sqrt().numpy()
        return norms.flip(0).numpy(), gates


def fresh_attention_norms(settings: Settings, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """‖∂y_T/∂x_t‖_F of one fresh encoder layer of the Transformer, exact, in float64.

    The layer is the library's, initialised as this project's Transformer is (normal, 0.02), with
    sinusoidal positions added to its inputs. Distance enters through those alone.

    Returns:
        by distance T - t = 0, 1, …, each (T,): of the self-attention itself, y_T = Σ_t α_Tt V x_t, without
        the residual path; and of the whole layer, whose residual path gives x_T a way of its own, which
        no other position has: that is why it drops at distance 1, and stays there.
    """
    with _fresh(seed):
        config = transformer_config(
            8,
            d_model=settings.width,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=settings.num_heads,
            decoder_attention_heads=settings.num_heads,
            encoder_ffn_dim=4 * settings.width,
            decoder_ffn_dim=4 * settings.width,
        )
        encoder = build_transformer(config).eval().model.encoder
        positions = encoder.get_submodule("embed_positions")(
            torch.Size((1, settings.length))
        )  # (T, D)
        inputs = _inputs(settings, seed)
        layer = encoder.layers[0]
        rows = torch.eye(settings.width)

        def attended(copied: Tensor) -> Tensor:
            return layer.get_submodule("self_attn")(copied + positions)[0][:, -1]

        def whole(copied: Tensor) -> Tensor:
            return layer(copied + positions, None)[:, -1]

        first, second = (
            copied_gradients(end, inputs, rows).square().sum(dim=(1, 2)).sqrt().flip(0).numpy()
            for end in (attended, whole)
        )
        return first, second


def _inputs(settings: Settings, seed: int) -> Tensor:
    """The random sequence of a seed, the same for every kind of layer, (T, D)."""
    draw = torch.Generator().manual_seed(seed)
    shape = (settings.length, settings.width)
    return settings.input_std * torch.randn(shape, generator=draw, dtype=torch.float64)


def lstm_key(forget_bias: float) -> str:
    """Name of an LSTM's curve in the report."""
    return f"lstm-forget-{forget_bias:g}"


def at_start(settings: Settings, initialization: str, say: Say) -> dict[str, Any]:
    """Curves by kind of layer before training: see `curve`, plus ``forget_gates`` for an LSTM.

    With "project" also ``self-attention`` and ``transformer-layer``: see `fresh_attention_norms`.
    """
    seeds = range(1, settings.num_seeds + 1)
    kinds = [("rnn", "rnn", 0.0)]
    kinds += [(lstm_key(bias), "lstm", bias) for bias in settings.forget_biases]
    curves: dict[str, Any] = {}
    for key, cell, bias in kinds:
        say(f"at the start, {initialization}: {key}")
        found = [fresh_norms(settings, cell, seed, bias, initialization) for seed in seeds]
        curves[key] = curve(np.stack([norms for norms, _ in found]), (10, 90))
        gates = [path for _, path in found if path is not None]
        if gates:
            curves[key]["forget_gates"] = _plain(np.median(np.stack(gates), axis=0))
    if initialization == "project":
        say("at the start: self-attention")
        both = [fresh_attention_norms(settings, seed) for seed in seeds]
        for number, key in enumerate(("self-attention", "transformer-layer")):
            curves[key] = curve(np.stack([pair[number] for pair in both]), (10, 90))
    return curves


def curve(
    norms: np.ndarray, percentiles: tuple[float, float], relative_to: np.ndarray | None = None
) -> dict[str, Any]:
    """Norms of many runs by distance, summed up.

    Args:
        norms: (runs, distances).
        percentiles: of the band, 0–100.
        relative_to: what each run is divided by, (runs,); None takes its norm at distance 0.
    Returns:
        ``median``, ``low`` and ``high`` of the relative norms, and ``absolute``, the median norm; lists
        by distance from 0.
    """
    divisors = norms[:, 0] if relative_to is None else relative_to
    relative = norms / divisors[:, np.newaxis]
    low, high = np.percentile(relative, percentiles, axis=0)
    return {
        "n": len(norms),
        "median": _plain(np.median(relative, axis=0)),
        "low": _plain(low),
        "high": _plain(high),
        "absolute": _plain(np.median(norms, axis=0)),
    }


def _plain(numbers: np.ndarray) -> list[float]:
    return [float(f"{number:.12g}") for number in numbers]


def faded_at(medians: Sequence[float], share: float = SHARE) -> int | None:
    """First distance at which a curve is below `share`; None if it never is."""
    return next((distance for distance, value in enumerate(medians) if value < share), None)


# ---------------------------------------------------------------------------------------------
# After training


def measured_texts(min_words: int) -> list[dict[str, str]]:
    """The longest stage of every hand-written passage with so many words: ``id`` and ``english``.

    Raises:
        ValueError: no passage is so long.
    """
    passages = handwritten.texts("passages")
    found = [{"id": p["id"], "english": p["stages"][-1]["english"]} for p in passages]
    longest = max(len(text["english"].split()) for text in found)
    found = [text for text in found if len(text["english"].split()) >= min_words]
    if not found:
        raise ValueError(
            f"expected min_words of at most {longest}, the longest passage, got {min_words}"
        )
    return found


def trained(
    translator: Translator, texts: Sequence[str], num_projections: int | None = None
) -> dict[str, Any]:
    """Curves of one trained encoder over texts, by end state.

    Each text's norms are divided by the largest of them. Distance counts pieces, the end token
    included: from the last one for "forward", from the first one for "backward", from the nearer of the
    two for "vector". Distances that not every text reaches are left out.

    Args:
        translator: its precision is that of the result.
        texts: English, each within the caps of what is read at once.
        num_projections: as for `end_norms`.
    Returns:
        by end of `ENDS` what `curve` gives, with quartiles; and for "forward" and "backward" ``far``: the
        relative norms of all tokens at least `FAR` pieces away, ``median, low, high`` (quartiles) and
        ``n``, or None where there are none.
    """
    by_end: dict[str, list[np.ndarray]] = {}
    for text in texts:
        norms = end_norms(translator, read_at_once(translator, text).ids, num_projections)
        for end, values in norms.items():
            by_end.setdefault(end, []).append(values)
    found: dict[str, Any] = {}
    for end, rows in by_end.items():
        ordered = [_by_distance(values, end) for values in rows]
        shortest = min(map(len, ordered))
        largest = np.array([values.max() for values in rows])
        found[end] = curve(np.stack([v[:shortest] for v in ordered]), (25, 75), largest)
        if end != "vector":
            far = np.concatenate([v[FAR:] / top for v, top in zip(ordered, largest, strict=True)])
            found[end]["far"] = None
            if far.size:
                low, middle, high = _plain(np.percentile(far, (25, 50, 75)))
                found[end]["far"] = {"n": far.size, "median": middle, "low": low, "high": high}
    return found


def _by_distance(values: np.ndarray, end: str) -> np.ndarray:
    if end == "backward":
        return values
    if end == "forward":
        return values[::-1]
    half = (
        len(values) // 2
    )  # the nearer end: two tokens at each distance, root of their mean square
    near, far = values[:half], values[::-1][:half]
    return np.sqrt((near**2 + far**2) / 2)


# ---------------------------------------------------------------------------------------------
# The whole experiment


SMALL_INPUTS = 0.32
"""Standard deviation of this project's scaled embeddings before training: 0.02 √256."""

LEGEND = {
    "median, low, high": "norm relative to that at distance 0 (at_start; low and high: 10th and 90th "
    "percentile of the seeds) or to the text's largest (trained; quartiles of the texts); lists by "
    "distance 0, 1, 2, …",
    "absolute": "median Frobenius norm",
    "forget_gates": "path through the LSTM's cell alone: root mean square over its numbers of the product "
    "of the forget gates on the way, median of the seeds",
    "at_start": "project: this project's initialisation; small_inputs: the same, with the small inputs of "
    "an untrained model; pytorch: PyTorch's own initialisation",
    "self-attention": "the attention sub-layer alone; distance acts through sinusoidal positions only",
    "transformer-layer": "the whole encoder layer: its residual path gives distance 0 a way of its own",
    "trained": "forward, backward: end states of the top encoder layer in each direction, distance in "
    "pieces from the last and the first one; vector: the fixed vector, distance from the nearer end; of the "
    "transformer the memory at the last and the first position. A decoder with attention reads each "
    "piece's own memory, so nothing has to travel this way for it",
    "far": "all pieces at least far_from pieces away, median and quartiles",
    "faded_at": "first distance at which the median is below share; null: none",
}


def gradient(settings: Settings, say: Say) -> dict[str, Any]:
    """Run the experiment.

    Same settings, weights and versions give the same numbers, to 1e-9 relative: all is float64 from seeds.

    Returns:
        ``legend``, ``models`` (digests of the weights), ``texts``, ``at_start``, ``trained``, ``faded_at``.
    Raises:
        ValueError: no passage of so many words, or a model that cannot be loaded.
    """
    texts = measured_texts(settings.min_words)
    translators = {}
    for name in settings.models:
        translator = load(name)
        if translator.name in translators:
            raise ValueError(f"expected models of different names, got {translator.name!r} twice")
        translator.model.double()
        translators[translator.name] = translator
    small = replace(settings, input_std=SMALL_INPUTS)
    starts = {
        "project": at_start(settings, "project", say),
        "small_inputs": at_start(small, "project", say),
        "pytorch": at_start(settings, "pytorch", say),
    }
    after = {}
    for name, translator in translators.items():
        say(f"after training: {name}, {len(texts)} texts")
        after[name] = trained(translator, [text["english"] for text in texts])
    return {
        "legend": LEGEND,
        "models": {
            name: {"weights_sha256": translator.training.get("weights_sha256")}
            for name, translator in translators.items()
        },
        "share": SHARE,
        "far_from": FAR,
        "texts": [{"id": text["id"], "words": len(text["english"].split())} for text in texts],
        "at_start": starts,
        "trained": after,
        "faded_at": {
            kind: {key: faded_at(found["median"]) for key, found in curves.items()}
            for kind, curves in starts.items()
        },
    }


def _data(settings: Settings, results: dict[str, Any]) -> dict[str, Any]:
    file = handwritten.FILE
    return {"name": file.name, "sha256": file_digest(file), "texts": results.pop("texts")}


def sentence(results: Mapping[str, Any], language: str = "en") -> str:
    """What the numbers say, in words.

    Args:
        results: of `gradient`, or a report.
        language: "en" or "zh".
    Raises:
        ValueError: an unknown language.
    """
    words = Language.of(language).within("lab.gradient")
    curves = results["at_start"]["project"]
    parts = []
    for key, found in curves.items():
        if key != "rnn" and not key.startswith("lstm-forget-"):
            continue
        bias = key.removeprefix("lstm-forget-")
        name = words.say("rnn") if key == "rnn" else words.say("lstm", bias=bias)
        distance, last = faded_at(found["median"], results["share"]), len(found["median"]) - 1
        faded = "kept" if distance is None else "faded"
        parts.append(words.say(faded, distance=distance, last=last, name=name))
    flat = curves["self-attention"]["median"]
    said = [
        words.say("start", share=f"{100 * results['share']:g}", list=words.join(parts, "list")),
        words.say("flat", low=_percent(min(flat), language), high=_percent(max(flat), language)),
    ]
    far = [
        words.say(
            "far",
            name=name,
            **{end: _percent(ends[end]["far"]["median"], language) for end in ENDS[:2]},
        )
        for name, ends in results["trained"].items()
        if all(ends[end]["far"] for end in ENDS[:2])
    ]
    if far:
        shown = words.join(far, "list")
        said.append(words.say("trained", far=results["far_from"], list=shown))
    return words.join(said)


def _percent(share: float, language: str) -> str:
    """Two digits that count, without an exponent: 0.0123 → "1.2 %"."""
    digits = max(0, 1 - math.floor(math.log10(100 * share))) if share > 0 else 0
    return Language.of(language).say("language.percent", number=f"{100 * share:.{digits}f}")


EXPERIMENT = Experiment("gradient", Settings, gradient, sentence, _data, given={"first_seed": 1})
