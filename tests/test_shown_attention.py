"""What the page shows is what the model did: shipped weights, against decoding one token at a time."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

import seqviz
from seqviz.translating.result import Translation
from seqviz.translating.translator import Translator

SENTENCES = (
    "The committee did not discuss the old proposal because nobody had read it.",
    "We are late.",
)


@pytest.fixture(scope="module")
def translators() -> dict[str, Translator]:
    return {name: seqviz.load(name) for name in ("lstm-attention", "transformer")}


@pytest.fixture(scope="module")
def in_double_precision(translators) -> dict[str, Translator]:
    return {
        name: Translator(copy.deepcopy(one.model).double(), one.tokenizer, name=name)
        for name, one in translators.items()
    }


@torch.no_grad()
def one_token_at_a_time(
    translator: Translator, found: Translation
) -> tuple[np.ndarray, list[float]]:
    """Cross-attention (L, H, T, S) and log-probabilities (T,) of a hypothesis, by cached single steps."""
    model, eos = translator.model, translator.tokenizer.eos_token_id
    source = translator.tokenizer(found.source, add_special_tokens=False).input_ids
    input_ids = torch.tensor([[*source, eos]])
    mask = torch.ones_like(input_ids)
    encoded = model.get_encoder()(input_ids=input_ids, attention_mask=mask)
    steps, log_probs = [], []
    cache = None
    if translator.name == "transformer":
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    token = model.config.decoder_start_token_id
    for chosen in found.target_ids:
        out = model(
            attention_mask=mask,
            encoder_outputs=encoded,
            decoder_input_ids=torch.tensor([[token]]),
            use_cache=True,
            output_attentions=True,
            cache=cache,
        )
        cache = out.cache
        steps.append(torch.stack([layer[0, :, 0] for layer in out.cross_attentions]))  # (L, H, S)
        log_probs.append(out.logits[0, -1].log_softmax(-1)[chosen].item())
        token = chosen
    return torch.stack(steps, dim=2).numpy(), log_probs


@pytest.mark.parametrize("num_beams", [1, 4])
@pytest.mark.parametrize("name", ["lstm-attention", "transformer"])
@pytest.mark.parametrize("sentence", SENTENCES)
def test_attention_is_that_of_the_hypothesis(
    translators, in_double_precision, name, num_beams, sentence
):
    found = translators[name].translate(sentence, num_beams)
    shown = found.attention("cross")
    exact = in_double_precision[name]
    weights, log_probs = one_token_at_a_time(exact, found)
    assert len(shown.target_tokens) != len(shown.source_tokens)
    # In single precision up to its rounding, in double precision to many digits.
    np.testing.assert_allclose(shown.weights, weights, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.token_log_probs, log_probs, rtol=0, atol=1e-4)
    source = exact.tokenizer(sentence, add_special_tokens=False).input_ids
    np.testing.assert_allclose(
        exact.attend(source, found.target_ids)["cross"], weights, rtol=0, atol=1e-6
    )
    np.testing.assert_allclose(shown.weights.sum(axis=-1), 1, atol=1e-5)


MANY_MAPS = """
import gc, io, os, sys
from pathlib import Path
import seqviz
from seqviz import plotting
from seqviz.drawing import heatmap

def resident_megabytes():
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

def draw(number, figure):
    map_ = maps[number % len(maps)]
    heatmap.standalone(map_, 0, 0)
    if figure:
        plotting.save(plotting.attention(map_), io.BytesIO(), "png")

maps = [
    translator.translate(sentence).attention().words()
    for translator in map(seqviz.load, ("lstm-attention", "transformer"))
    for sentence in sys.argv[1:]
]
for number in range(50):
    draw(number, figure=True)
gc.collect()
before = resident_megabytes()
for number in range(500):
    draw(number, figure=number % 10 == 0)
gc.collect()
print(resident_megabytes() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory from /proc (Linux)")
def test_memory_stays_flat_over_many_maps():
    """500 maps, as HTML and some as figures, leave nothing behind once all caches are warm.

    In a process of its own: what other tests left in the heap says nothing about this.
    """
    grown = subprocess.run(
        [sys.executable, "-c", MANY_MAPS, *SENTENCES],
        cwd=Path(seqviz.__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    ).stdout
    assert float(grown) < 20
