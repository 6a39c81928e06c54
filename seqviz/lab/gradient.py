"""How much of a word still reaches the end state: ‖∂h_T/∂x_t‖ against the distance T - t.

    results = gradient(Settings())            # numbers of the report
    reach(seqviz.load("rnn"), "A sentence.")  # which words of it still reach the end

Before training, one layer of each kind reads random numbers. After training, the four encoders read
real text; a bidirectional encoder has two end states, and each is near to one end of the sentence, so
the two directions are never mixed.

Why a gradient fades: ∂h_T/∂x_t holds a product of T - t matrices. For h_t = tanh(W h_{t-1} + U x_t) they
are diag(1 - h²) W, shorter than 1 where W is orthogonal, since tanh′ < 1 (Bengio et al. 1994; Pascanu et
al. 2013). An LSTM adds to its cell (Hochreiter & Schmidhuber 1997), but adding alone is not enough: with
forget gates (Gers et al. 2000) the cell's own path is the product of the gates, which is why their bias
at the start decides (Jozefowicz et al. 2015). Self-attention reaches every position in one step.

Shapes: `S` source length, `D` width of an embedding or input, `H` width of one direction's state, `I`
width of a layer's input, `W` width of both directions together, `N` rows (combinations of the numbers of
an end state whose gradients are taken), `B` copies of a source in a batch.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seqviz.architectures import MODEL_NAMES
from seqviz.architectures.recurrent import (
    RecurrentEncoder,
    initialize_recurrence,
    recurrence,
)
from seqviz.architectures.transformer import build_transformer, transformer_config
from seqviz.corpus import MAX_SOURCE_PIECES, MAX_SOURCE_WORDS, file_digest
from seqviz.lab.checks import check_heads, check_language, check_whole
from seqviz.tokenizer import segment
from seqviz.translation import Translator, load

ENDS = ("forward", "backward", "vector")
"""End states: of the direction that reads forward (behind the last piece), of the one that reads
backward (at the first piece), and the fixed vector made of both."""

SHARE = 0.01
"""A gradient has faded where it is below this share of what it was."""

FAR = 50
"""Pieces; what lies at least so far from an end is summed up by one number."""

INITIALIZATIONS = ("project", "pytorch")
ROWS_AT_ONCE = 256
LIVE_PROJECTIONS = 24
"""Rows for each end state in `reach`. On a passage of 57 words the share of a word then lay 0.001 to 0.036 from
the exact one in the mean, by model and end state, and 0.13 at most."""


@dataclass(frozen=True)
class Settings:
    """Of the experiment; the defaults are those of the committed report.

    Args:
        width: of inputs and states before training.
        length: T of the random sequences.
        num_seeds: seeds 1, 2, …; each draws inputs and weights.
        forget_biases: of the LSTM's forget gates.
        num_heads: of self-attention.
        input_std: of the random inputs. 1 is about what the shipped models read: the scaled embeddings
            of their texts have a standard deviation of 0.8 to 1.2.
        models: measured after training; names or folders.
        min_words: a passage counts after training if its longest stage has so many words.
    Raises:
        ValueError: a number out of its range, or no model name that can be loaded.
    """

    width: int = 64
    length: int = 100
    num_seeds: int = 20
    forget_biases: tuple[float, ...] = (0.0, 1.0, 3.0)
    num_heads: int = 4
    input_std: float = 1.0
    models: tuple[str, ...] = MODEL_NAMES
    min_words: int = 50

    def __post_init__(self) -> None:
        check_whole(
            self,
            width=(2, 512),
            length=(2, 512),
            num_seeds=(1, 1000),
            num_heads=(1, 64),
            min_words=(1, MAX_SOURCE_WORDS),
        )
        check_heads(self)
        if not self.forget_biases or not all(math.isfinite(b) for b in self.forget_biases):
            raise ValueError(
                f"expected at least one finite forget bias, got {self.forget_biases!r}; try 0, 1, 3"
            )
        if not (math.isfinite(self.input_std) and self.input_std > 0):
            raise ValueError(f"expected input_std above 0, got {self.input_std!r}; try 1")


# ---------------------------------------------------------------------------------------------
# Reverse mode, one layer after the other


@dataclass(frozen=True)
class _Pass:
    """What one recurrent layer did with one sequence, as far as its gradient needs it.

    Attributes:
        states: h_t, (S, H).
        slopes: of a tanh RNN 1 - h_t², (S, H); of an LSTM the derivatives of its four gates' products,
            each times what the gate is multiplied by, (S, 4H).
        keeps: forget gates f_t, (S, H); None for a tanh RNN.
        opens: ∂h_t/∂c_t = o_t (1 - tanh² c_t), (S, H); None for a tanh RNN.
    """

    states: Tensor
    slopes: Tensor
    keeps: Tensor | None = None
    opens: Tensor | None = None


def run_layer(layer: nn.RNNBase, inputs: Tensor) -> _Pass:
    """Run a layer over one sequence from a state of zeros.

    Args:
        layer: one `nn.RNN` with tanh or `nn.LSTM`, batch first, one layer, one direction.
        inputs: (S, I).
    """
    states = layer(inputs.unsqueeze(0))[0].squeeze(0)  # (S, H)
    if not isinstance(layer, nn.LSTM):
        return _Pass(states, 1 - states.square())
    before = torch.cat([torch.zeros_like(states[:1]), states[:-1]])  # h_{t-1}
    input_weight, recurrent_weight, input_bias, recurrent_bias = layer.all_weights[0]
    summed = inputs @ input_weight.T + before @ recurrent_weight.T + input_bias + recurrent_bias
    i, f, g, o = summed.chunk(4, dim=-1)  # PyTorch's order: input, forget, cell, output
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cells = [torch.zeros_like(states[0])]  # c_{t-1}, then c_t
    for t in range(len(states)):
        cells.append(f[t] * cells[-1] + i[t] * g[t])
    earlier, cell = torch.stack(cells[:-1]), torch.stack(cells[1:])  # (S, H)
    shown = cell.tanh()
    slopes = [g * i * (1 - i), earlier * f * (1 - f), i * (1 - g.square()), shown * o * (1 - o)]
    return _Pass(states, torch.cat(slopes, dim=-1), f, o * (1 - shown.square()))


def pull_back(layer: nn.RNNBase, run: _Pass, cotangents: Tensor) -> Tensor:
    """Take gradients with respect to states back to the layer's inputs.

    δ_t is the gradient with respect to what step t sums up before its nonlinearity:

        tanh RNN: δ_t = (u_t + W_hᵀ δ_{t+1}) (1 - h_t²)
        LSTM:     γ_t = γ_{t+1} f_{t+1} + (u_t + W_hᵀ δ_{t+1}) o_t (1 - tanh² c_t), and δ_t by gates

    and the gradient with respect to x_t is W_xᵀ δ_t. Written out, one forward pass serves all rows;
    autograd needs a copy of the sequence for each.

    Args:
        layer, run: as `run_layer` took and gave them.
        cotangents: u_t, (S, N, H).
    Returns:
        (S, N, I).
    """
    kept = (cotangents != 0).any(dim=-1).any(dim=0)  # (N,); rows of zeros stay zeros
    rows = cotangents[:, kept]
    result = cotangents.new_zeros(*cotangents.shape[:2], layer.input_size)
    input_weight, recurrent_weight = layer.all_weights[0][:2]
    state = torch.zeros_like(rows[0])  # (N, H)
    cell = torch.zeros_like(rows[0])
    deltas = rows.new_empty(*rows.shape[:2], len(recurrent_weight))  # (S, N, H or 4H)
    for t in reversed(range(len(rows))):
        state = state + rows[t]
        if run.keeps is None or run.opens is None:
            delta = state * run.slopes[t]
        else:
            cell = cell + state * run.opens[t]
            delta = torch.cat([cell, cell, cell, state], dim=-1) * run.slopes[t]
            cell = cell * run.keeps[t]
        deltas[t] = delta
        state = delta @ recurrent_weight
    result[:, kept] = deltas @ input_weight
    return result


def _recurrent_gradients(encoder: RecurrentEncoder, embedded: Tensor, rows: Tensor) -> Tensor:
    """Gradients of rows @ [last forward state; first backward state] by the embeddings.

    Args:
        encoder: its dropout is none, its source has no padding.
        embedded: scaled embeddings of one source, (S, D).
        rows: (N, W).
    Returns:
        (S, N, D).
    """
    runs = []
    states = embedded
    layers = list(zip(encoder.forward_layers, encoder.backward_layers, strict=True))
    for ahead, behind in layers:
        runs.append((run_layer(ahead, states), run_layer(behind, states.flip(0))))
        states = torch.cat([runs[-1][0].states, runs[-1][1].states.flip(0)], dim=-1)  # (S, W)
    half = states.shape[1] // 2
    found = []
    for some in rows.split(ROWS_AT_ONCE):
        cotangents = embedded.new_zeros(len(embedded), *some.shape)  # (S, N, W)
        cotangents[-1, :, :half] = some[:, :half]
        cotangents[0, :, half:] = some[:, half:]
        for (ahead, behind), (run, back) in zip(reversed(layers), reversed(runs), strict=True):
            cotangents = pull_back(ahead, run, cotangents[..., :half]) + pull_back(
                behind, back, cotangents[..., half:].flip(0)
            ).flip(0)  # (S, N, I)
        found.append(cotangents)
    return torch.cat(found, dim=1)


def _copied_gradients(
    end: Callable[[Tensor], Tensor], inputs: Tensor, rows: Tensor, at_once: int = 64
) -> Tensor:
    """Gradients of rows @ end(inputs) by autograd: a copy of the inputs for each row.

    Args:
        end: takes (B, S, D) to (B, W), each copy by itself.
        inputs: (S, D).
        rows: (N, W).
    Returns:
        (S, N, D).
    """
    copies = min(at_once, len(rows))
    with torch.inference_mode(False), torch.enable_grad():
        # Clones: tensors of a caller's inference mode know no gradients.
        copied = inputs.detach().clone().expand(copies, -1, -1).clone().requires_grad_()
        rows = rows.clone()
        ends = end(copied)  # (B, W)
        found = []
        for some in rows.split(copies):
            weighed = (ends[: len(some)] * some).sum()
            (gradient,) = torch.autograd.grad(weighed, copied, retain_graph=True)
            found.append(gradient[: len(some)])
    return torch.cat(found).transpose(0, 1)


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
            layer.bias_ih_l0[settings.width : 2 * settings.width] += forget_bias
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
        positions = encoder.embed_positions(torch.Size((1, settings.length)))  # (T, D)
        inputs = _inputs(settings, seed)
        layer = encoder.layers[0]
        rows = torch.eye(settings.width)

        def attended(copied: Tensor) -> Tensor:
            return layer.self_attn(copied + positions)[0][:, -1]

        def whole(copied: Tensor) -> Tensor:
            return layer(copied + positions, None)[:, -1]

        first, second = (
            _copied_gradients(end, inputs, rows).square().sum(dim=(1, 2)).sqrt().flip(0).numpy()
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


def at_start(settings: Settings, initialization: str, say: Callable[[str], None]) -> dict[str, Any]:
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


@torch.no_grad()
def end_norms(
    translator: Translator, source_ids: Sequence[int], num_projections: int | None = None
) -> dict[str, np.ndarray]:
    """‖∂e/∂x_t‖_F of each end state e with respect to the embedding x_t of each source token.

    The end states of a recurrent encoder are those of its top layer: h→_S "forward", h←_1 "backward", and
    the fixed vector v = tanh(W [h→_S; h←_1]) "vector", which `lstm-attention` has as well. The
    Transformer has no end state; measured are its memory at the last and at the first position, and no
    vector. What a decoder with attention reads is Σ_t α_t m_t: a source word reaches it through its own
    memory m_t in one step, whatever its distance, so nothing has to travel to the end.

    Args:
        source_ids: without the end token. x_t is the scaled embedding, before positions are added.
        num_projections: None for the exact norm. Else the square is an estimate without bias: with rows
            u_1 … u_N of a random orthogonal matrix (fixed seed), ‖J‖² ≈ (W/N) Σ_n ‖u_n J‖² (Hutchinson
            1990, with orthogonal rows); exact again where N reaches the width of the end state.
    Returns:
        by end of `ENDS`, (S,) with the source's end token last, in the model's precision.
    """
    model = translator.model
    encoder = model.model.encoder
    ids = [*source_ids, translator.tokenizer.eos_token_id]
    embedded = encoder.embed_tokens(torch.tensor(ids, device=translator.device))
    embedded = embedded * encoder.embed_scale  # (S, D)
    if not isinstance(encoder, RecurrentEncoder):
        return _memory_norms(encoder, embedded, num_projections)
    half = model.config.width // 2
    weight = encoder.to_vector.weight  # (V, W)
    mask = torch.ones(1, len(ids), dtype=torch.long, device=embedded.device)
    vector = encoder(inputs_embeds=embedded[None], attention_mask=mask).vector[0]
    weight = weight * (1 - vector.square()).unsqueeze(1)  # ∂v/∂[h→_S; h←_1], (V, W)
    if num_projections is None:
        every = torch.eye(2 * half, dtype=embedded.dtype, device=embedded.device)
        gradients = _recurrent_gradients(encoder, embedded, every)  # (S, W, D)
        blocks = [gradients[:, :half], gradients[:, half:], None]
        squares = [block.square().sum(dim=(1, 2)) for block in blocks if block is not None]
        squares.append(torch.stack([(weight @ one).square().sum() for one in gradients]))
    else:
        each = projections(half, num_projections).to(embedded)  # (N, H)
        onto = projections(len(weight), num_projections).to(embedded) @ weight  # (N, W)
        rows = torch.cat([torch.block_diag(each, each), onto])  # (3 N, W)
        gradients = _recurrent_gradients(encoder, embedded, rows)
        parts = gradients.split([len(each), len(each), len(onto)], dim=1)
        squares = [part.square().sum(dim=(1, 2)) for part in parts]
    return {
        end: square.sqrt().double().cpu().numpy() for end, square in zip(ENDS, squares, strict=True)
    }


def _memory_norms(
    encoder: Any, embedded: Tensor, num_projections: int | None
) -> dict[str, np.ndarray]:
    width = embedded.shape[1]
    each = projections(width, num_projections or width).to(embedded)  # (N, W)
    mask = torch.ones(1, len(embedded), dtype=torch.long, device=embedded.device)

    def both(copied: Tensor) -> Tensor:
        memory = encoder(
            inputs_embeds=copied, attention_mask=mask.expand(len(copied), -1)
        ).last_hidden_state
        return torch.cat([memory[:, -1], memory[:, 0]], dim=-1)  # (B, 2 W)

    rows = torch.block_diag(each, each)  # (2 N, 2 W)
    gradients = _copied_gradients(both, embedded, rows)
    parts = gradients.split(len(each), dim=1)
    return {
        end: part.square().sum(dim=(1, 2)).sqrt().double().cpu().numpy()
        for end, part in zip(ENDS, parts, strict=False)
    }


def projections(size: int, number: int, seed: int = 0) -> Tensor:
    """Rows of a random orthogonal matrix, so scaled that E ‖U J‖² = ‖J‖²: (min(number, size), size).

    All `size` of them are the unit vectors.
    """
    if number >= size:
        return torch.eye(size, dtype=torch.float64)
    draw = torch.Generator().manual_seed(seed)
    random = torch.randn(size, number, generator=draw, dtype=torch.float64)
    return torch.linalg.qr(random).Q.T * math.sqrt(size / number)


def measured_texts(min_words: int) -> list[dict[str, str]]:
    """The longest stage of every hand-written passage with so many words: ``id`` and ``english``.

    Raises:
        ValueError: no passage is so long.
    """
    passages = json.loads(_TEXTS.read_text(encoding="utf-8"))["passages"]
    found = [{"id": p["id"], "english": p["stages"][-1]["english"]} for p in passages]
    longest = max(len(text["english"].split()) for text in found)
    found = [text for text in found if len(text["english"].split()) >= min_words]
    if not found:
        raise ValueError(
            f"expected min_words of at most {longest}, the longest passage, got {min_words}"
        )
    return found


_TEXTS = Path(__file__).resolve().parents[1] / "texts.json"


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
        norms = end_norms(translator, _checked(translator, text).ids, num_projections)
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


def _checked(translator: Translator, text: str) -> Any:
    """Pieces and words of a text that is read at once.

    Raises:
        TypeError: not text.
        ValueError: an empty text, or one over the caps.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected text, got {type(text).__name__}")
    cut = segment(translator.tokenizer, text)
    if not cut.ids:
        raise ValueError(
            "expected a text with at least one word, got an empty one; type a sentence"
        )
    if len(cut.words) > MAX_SOURCE_WORDS or len(cut.ids) > MAX_SOURCE_PIECES:
        raise ValueError(
            f"expected at most {MAX_SOURCE_WORDS} words and {MAX_SOURCE_PIECES} pieces, which a model "
            f"reads at once, got {len(cut.words)} and {len(cut.ids)}; shorten the text"
        )
    return cut


# ---------------------------------------------------------------------------------------------
# A visitor's sentence


@dataclass(frozen=True)
class Reach:
    """How strongly each source word still acts on the end states of one model.

    The norm of a word is that of ∂e/∂(all its pieces' embeddings): √Σ over its pieces of ‖∂e/∂x_t‖_F².

    Attributes:
        model: name of the model.
        words: of the source, W of them; the end token is none of them.
        forward: norms at h→_S, the end state of the direction that reads forward, (W,). For the
            Transformer, which has none: its memory at the last position, the end token's.
        backward: norms at h←_1; for the Transformer its memory at the first position, (W,).
        vector: norms at the fixed vector, (W,); None for the Transformer.
        end_token: the end token's norms in the order of `ENDS`, as many as there are.
        num_projections: rows that each norm was estimated from; None for exact norms.
    """

    model: str
    words: tuple[str, ...]
    forward: np.ndarray = field(repr=False)
    backward: np.ndarray = field(repr=False)
    vector: np.ndarray | None = field(repr=False)
    end_token: tuple[float, ...] = field(repr=False)
    num_projections: int | None = None

    def shares(self, end: str) -> np.ndarray:
        """Norms at one end state divided by that of the strongest word: 0–1, (W,).

        Raises:
            ValueError: an unknown end state, or "vector" of a model without one.
        """
        ends = [name for name in ENDS if getattr(self, name) is not None]
        if end not in ends:
            raise ValueError(f"expected end to be one of {', '.join(ends)}, got {end!r}")
        norms = getattr(self, end)
        largest = norms.max()
        return norms / largest if largest > 0 else norms


def reach(
    translator: Translator, text: str, num_projections: int | None = LIVE_PROJECTIONS
) -> Reach:
    """Which words of a sentence still reach the end states of a model's encoder.

    Args:
        translator: any of the models.
        text: English, read at once.
        num_projections: rows each norm is estimated from (see `end_norms`); None for exact norms, which
            take some times as long.
    Raises:
        TypeError: not text.
        ValueError: an empty text, one over the caps of what is read at once, or projections below 1.
    """
    if num_projections is not None and (
        not isinstance(num_projections, int)
        or isinstance(num_projections, bool)
        or num_projections < 1
    ):
        raise ValueError(
            f"expected num_projections to be a whole number from 1, or None, got {num_projections!r}"
        )
    cut = _checked(translator, text)
    norms = end_norms(translator, cut.ids, num_projections)
    places = np.array(cut.word_of_piece)
    by_word = {
        end: np.sqrt(np.bincount(places, values[:-1] ** 2, minlength=len(cut.words)))
        for end, values in norms.items()
    }
    return Reach(
        model=translator.name,
        words=cut.words,
        forward=by_word["forward"],
        backward=by_word["backward"],
        vector=by_word.get("vector"),
        end_token=tuple(float(values[-1]) for values in norms.values()),
        num_projections=num_projections,
    )


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


def gradient(
    settings: Settings | None = None, say: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Run the experiment.

    Same settings, weights and versions give the same numbers, to 1e-9 relative: all is float64 from seeds.

    Args:
        settings: None for those of the committed report.
        say: takes a line whenever a part begins.
    Returns:
        ``legend``, ``models`` (digests of the weights), ``texts``, ``at_start``, ``trained``, ``faded_at``,
        ``says`` (the sentence, by language).
    Raises:
        ValueError: no passage of so many words, or a model that cannot be loaded.
    """
    settings = settings or Settings()
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
    results: dict[str, Any] = {
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
    results["says"] = {language: sentence(results, language) for language in _SENTENCES}
    return results


def report(
    settings: Settings, say: Callable[[str], None], command: str = "seqviz lab gradient"
) -> dict[str, Any]:
    """`gradient` as the content of a report file."""
    from seqviz.lab import document

    results = gradient(settings, say)
    data = {"name": _TEXTS.name, "sha256": file_digest(_TEXTS), "texts": results.pop("texts")}
    return document(command, data, {**asdict(settings), "first_seed": 1}, results)


_SENTENCES: dict[str, dict[str, str]] = {
    "en": {
        "start": "Before training, the gradient falls below {share} % of its size at distance 0 {list}.",
        "faded": "after {distance} steps in the {name}",
        "kept": "not within {last} steps in the {name}",
        "flat": "Through self-attention it stays between {low} and {high} of that at distance 0, however far "
        "the word is.",
        "trained": "After training, pieces at least {far} away from the end state keep, in the median, {list} of "
        "the strongest piece’s gradient (reading forward / backward).",
        "far": "{forward} / {backward} ({name})",
        "rnn": "tanh RNN",
        "lstm": "LSTM with forget bias {bias}",
        "joint": ", ",
    },
    "zh": {
        "start": "训练之前，梯度降到距离 0 处的 {share}% 以下：{list}。",
        "faded": "{name} 在 {distance} 步之后",
        "kept": "{name} 在 {last} 步之内没有",
        "flat": "自注意力的梯度无论词有多远，都保持在距离 0 处的 {low} 到 {high} 之间。",
        "trained": "训练之后，离终点状态至少 {far} 个词元的那些词元，其梯度与最强词元之比的中位数（正向 / 反向）为：{list}。",
        "far": "{name} {forward} / {backward}",
        "rnn": "tanh RNN",
        "lstm": "遗忘偏置为 {bias} 的 LSTM",
        "joint": "，",
    },
}


def sentence(results: Mapping[str, Any], language: str = "en") -> str:
    """What the numbers say, in words.

    Args:
        results: of `gradient`, or a report.
        language: "en" or "zh".
    Raises:
        ValueError: an unknown language.
    """
    check_language(language, _SENTENCES)
    words = _SENTENCES[language]
    curves = results["at_start"]["project"]
    parts = []
    for key, found in curves.items():
        if key != "rnn" and not key.startswith("lstm-forget-"):
            continue
        bias = key.removeprefix("lstm-forget-")
        name = words["rnn"] if key == "rnn" else words["lstm"].format(bias=bias)
        distance = faded_at(found["median"], results["share"])
        said = words["kept" if distance is None else "faded"]
        parts.append(said.format(distance=distance, last=len(found["median"]) - 1, name=name))
    flat = curves["self-attention"]["median"]
    sentences = [
        words["start"].format(share=f"{100 * results['share']:g}", list=words["joint"].join(parts)),
        words["flat"].format(low=_percent(min(flat)), high=_percent(max(flat))),
    ]
    far = [
        words["far"].format(
            name=name, **{end: _percent(ends[end]["far"]["median"]) for end in ENDS[:2]}
        )
        for name, ends in results["trained"].items()
        if all(ends[end]["far"] for end in ENDS[:2])
    ]
    if far:
        shown = words["joint"].join(far)
        sentences.append(words["trained"].format(far=results["far_from"], list=shown))
    said = " ".join(sentences)
    # Chinese sets no space before a percent sign, nor between sentences.
    return said if language == "en" else said.replace(" %", "%").replace("。 ", "。")


def _percent(share: float) -> str:
    """Two digits that count, without an exponent: 0.0123 → "1.2 %"."""
    if not share > 0:
        return "0 %"
    digits = max(0, 1 - math.floor(math.log10(100 * share)))
    return f"{100 * share:.{digits}f} %"
