"""Where tools of this kind broke, by public reports, and what ours does: one test for each case, named after it.

Cases that a longer test elsewhere already holds have none here.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from sacrebleu.metrics import BLEU

import seqviz
from seqviz import plotting, scores, tokenizer
from seqviz.constants import MAX_SOURCE_PIECES
from seqviz.maps import AttentionMap
from seqviz.measuring.plan import BUCKETS
from seqviz.pieces import Pieces
from seqviz.translating.inputs import output_limit
from seqviz.translating.numbers import differences
from seqviz.translating.output import oddities
from seqviz.translating.translator import Translator

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def shipped() -> dict[str, Translator]:
    return {name: seqviz.load(name) for name in seqviz.MODEL_NAMES}


@pytest.fixture(scope="module")
def tiny(tiny_model, tiny_tokenizer) -> dict[str, Translator]:
    return {
        name: Translator(tiny_model(name), tiny_tokenizer, name=name) for name in seqviz.MODEL_NAMES
    }


def map_of(weights, source: tuple[str, ...], target: tuple[str, ...]) -> AttentionMap:
    weights = np.asarray(weights, dtype=np.float32)[None, None]
    return AttentionMap(
        kind="cross",
        model="transformer",
        weights=weights,
        source_pieces=Pieces.of_words(source),
        target_pieces=Pieces.of_words(target),
        hidden_mass=np.zeros(weights.shape[:3], dtype=np.float32),
    )


# ---------------------------------------------------------------------------------------------
# Attention pictures


def test_a_repeated_word_keeps_its_rows_and_columns():
    words = ("the", "cat", "saw", "the", "dog")
    figure = plotting.attention(map_of(np.eye(5), words, words))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(words)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(words)
    assert axes.images[0].get_array().shape == (5, 5)


def test_labels_and_ticks_are_set_together_and_a_mismatch_is_an_error():
    with pytest.raises(ValueError, match="expected weights"):
        map_of(np.ones((2, 3)), ("a", "b"), ("x", "y"))
    axes = plotting.attention(map_of(np.ones((2, 3)) / 3, ("a", "b", "c"), ("x", "y"))).axes[0]
    assert list(axes.get_xticks()) == [0, 1, 2] and list(axes.get_yticks()) == [0, 1]


def test_source_and_target_of_unequal_length_are_not_swapped():
    weights = [[0.7, 0.2, 0.1], [0.0, 0.1, 0.9]]
    axes = plotting.attention(map_of(weights, ("one", "two", "three"), ("un", "deux"))).axes[0]
    np.testing.assert_allclose(axes.images[0].get_array(), weights, atol=1e-6)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["one", "two", "three"]


def test_a_model_left_in_training_mode_is_the_loaders_job(shipped):
    for translator in shipped.values():
        assert not any(module.training for module in translator.model.modules())
    weights = shipped["transformer"].translate("The boat is green.").attentions["cross"]
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)


def test_hiding_columns_renormalises_nothing(shipped):
    shown = shipped["lstm-attention"].translate("The boat is green.").attention("cross")
    words, pieces = shown.words(), shown
    assert (words.weights.sum(-1) < 1).any()
    np.testing.assert_allclose(words.weights.sum(-1) + words.hidden_mass, 1.0, atol=1e-5)
    ends = [i for i, word in enumerate(pieces.source_pieces.word_of_piece) if word < 0]
    assert words.hidden_mass.mean() == pytest.approx(
        pieces.weights[:, :, [w >= 0 for w in pieces.target_pieces.word_of_piece]][..., ends]
        .sum(-1)
        .mean(),
        abs=0.2,
    )


def test_the_mass_of_the_end_token_is_hidden_and_stated(shipped):
    words = shipped["lstm-attention"].translate("The boat is green.").attention("cross").words()
    assert "</s>" not in words.source_tokens and "</s>" not in words.target_tokens
    percent = f"{100 * float(words.hidden().mean()):.1f}"
    figure = plotting.attention(words)
    said = " ".join(text.get_text() for text in figure.findobj(lambda a: hasattr(a, "get_text")))
    assert f"{percent} % of the weight lies on special tokens, not shown" in said


def test_comparable_panels_share_one_even_scale():
    flat = map_of(np.full((2, 2), 0.5), ("a", "b"), ("x", "y"))
    sharp = map_of(np.eye(2), ("a", "b"), ("x", "y"))
    figure = plotting.attention_side_by_side([(flat, 0, 0), (sharp, None, None)])
    limits = {image.get_clim() for axes in figure.axes for image in axes.images}
    assert limits == {(0.0, 1.0)}


def test_many_figures_leave_nothing_behind():
    """No pyplot, which would keep every figure of a server."""

    def kept() -> list[int]:
        pyplot = sys.modules.get("matplotlib.pyplot")
        return pyplot.get_fignums() if pyplot else []

    before = kept()
    for _ in range(25):
        plotting.attention(map_of(np.eye(2), ("a", "b"), ("x", "y")))
    assert kept() == before


# ---------------------------------------------------------------------------------------------
# Translation


@pytest.mark.parametrize("text", [" ", "-", "…", "a", "?", "1", "\u00a0", "Ok"])
@pytest.mark.parametrize("name", seqviz.MODEL_NAMES)
def test_next_to_nothing_gets_a_short_answer(shipped, name, text):
    found = shipped[name].translate(text)
    assert len(found.target_tokens) <= output_limit(len(found.source_tokens)) <= 20
    words = found.target_words
    again = any(a == b == c for a, b, c in zip(words, words[1:], words[2:]))
    assert not again or "repetition" in {note.kind for note in found.notes}


@pytest.mark.parametrize("name", seqviz.MODEL_NAMES)
def test_an_empty_line_inside_a_batch_shifts_nothing(shipped, name):
    texts = ["The boat is green.", "", "Where is my book?", "   ", "It is late."]
    found = shipped[name].translate(texts)
    assert [one.source for one in found] == texts
    assert [one.text for one in found] == [shipped[name].translate(text).text for text in texts]
    assert found[1].text == found[3].text == ""


@pytest.mark.parametrize("name", ["lstm-attention", "transformer"])
def test_a_beam_shows_its_own_hypothesis_rows(shipped, name):
    """The weights are those of a teacher-forced pass over exactly the shown tokens."""
    translator = shipped[name]
    found = translator.translate("The committee has adopted a report on this question.", 5)
    ids = translator.tokenizer(found.source, return_tensors="pt")
    start = translator.model.config.decoder_start_token_id
    before = torch.tensor([[start, *found.target_ids[:-1]]])
    translator.model.set_attn_implementation("eager")
    with torch.inference_mode():
        output = translator.model(
            input_ids=ids.input_ids,
            attention_mask=ids.attention_mask,
            decoder_input_ids=before,
            output_attentions=True,
        )
    expected = np.stack([layer[0].numpy() for layer in output.cross_attentions])
    np.testing.assert_allclose(found.attentions["cross"], expected, atol=1e-4)


def test_more_beams_than_there_are_and_none_at_all(tiny):
    for wrong in (0, -1, 500):
        with pytest.raises(ValueError, match="expected num_beams from 1 to 32"):
            tiny["lstm"].translate("The boat.", wrong)
    assert tiny["lstm"].translate("The boat.", 32).target_tokens


def test_longer_than_the_table_of_positions(shipped):
    sentence = (
        "The committee has adopted a report on this question and nobody was there to read it. "
    )
    found = shipped["transformer"].translate(sentence * 60)
    assert "split" in {note.kind for note in found.notes} and len(found.parts) > 1
    assert all(part.target_tokens for part in found.parts)


@pytest.mark.parametrize("name", seqviz.MODEL_NAMES)
def test_of_two_sentences_none_is_dropped(shipped, name):
    found = shipped[name].translate("The boat is green. Where is my book?")
    assert found.source_words == tuple("The boat is green. Where is my book?".split())
    assert not found.parts


HUGE = ("a", "bridge", "A", "é", "1", "12.", "a-", "a@", "www.", "我", "(")


@pytest.mark.parametrize("letters", HUGE)
def test_one_huge_word_costs_linear_work(tiny, letters):
    """Eight times the letters cost far from 64 times the work of reading them and looking for odd things.

    Counted is the CPU time of this thread alone, one length against the other: no machine is too slow.
    """
    translator = tiny["lstm"]

    def work(length: int) -> float:
        word = (letters * length)[:length]
        tries = []
        for _ in range(3):
            before = time.thread_time()
            translator._plan_of(word)
            oddities(word, word[: length // 2], [word], translator.languages, None)
            oddities(word[:100], word, [word], translator.languages, None)
            tries.append(time.thread_time() - before)
        return min(tries)

    work(1_000)
    assert work(64_000) < 24 * work(8_000)


@pytest.mark.parametrize("letters", ["bridge", "1", "9."])
def test_one_huge_word_is_translated(tiny, letters):
    found = tiny["rnn"].translate(letters * 30_000)
    assert {"truncated", "numbers"} >= {note.kind for note in found.notes} - {"repetition", "limit"}
    assert found.source_words and len(found.source_tokens) <= MAX_SOURCE_PIECES + 1


def test_numbers_too_long_for_words_are_compared():
    long = "5" * 9_000
    found = differences(f"{long} boats", "1 bateau", "en", "fr")
    assert found.missing == (long,) and found.invented == ("1",)
    assert differences(f"{long} boats", f"{long} bateaux", "en", "fr") == ((), ())
    assert differences("1500000 boats", "un million et demi", "en", "fr") == ((), ())
    assert differences("call 06 12 34 56 78", "0612345678", "en", "fr") == ((), ())
    moved = differences("see a.b+c@d.eu x@y.fr", "voir x@y.fr", "en", "fr")
    assert moved == (("a.b+c@d.eu",), ())


# ---------------------------------------------------------------------------------------------
# Scores and length


def test_bleu_is_that_of_text_and_of_the_corpus():
    hypotheses = ["le chat est assis sur le tapis", "un chien"]
    references = ["le chat est couché sur le tapis", "un chien dort dans la rue"]
    expected = BLEU().corpus_score(hypotheses, [references]).score
    assert scores.corpus_bleu(hypotheses, references)["score"] == pytest.approx(expected, abs=0.01)
    each = [BLEU().sentence_score(h, [r]).score for h, r in zip(hypotheses, references)]
    assert abs(expected - sum(each) / 2) > 1  # the mean of sentence scores is another number


def test_references_are_not_nested_the_wrong_way():
    references = ["le chat est assis sur le tapis", "le chien dort dans la petite rue"]
    assert scores.corpus_bleu(references, references)["score"] == pytest.approx(100.0)
    wrong = [references[0], "rien de tout cela ne va ici"]
    assert scores.corpus_bleu(wrong, references)["score"] < 70  # the second one counts as well


def test_every_length_lies_in_one_bucket():
    for words in range(1, 101):
        assert sum(low <= words <= high for low, high in BUCKETS) == 1, words


# ---------------------------------------------------------------------------------------------
# Text


@pytest.mark.parametrize("odd", ["\u00ad", "\u200b", "\u2060", "\ufeff"])
def test_invisible_characters_are_as_if_absent(shipped, odd):
    plain = "The committee is here."
    typed = plain.replace("committee", f"commit{odd}tee")
    assert tokenizer.normalize(typed) == plain
    assert shipped["lstm"].translate(typed).text == shipped["lstm"].translate(plain).text


@pytest.mark.parametrize("name", seqviz.MODEL_NAMES)
def test_a_default_generation_call_translates(models_folder, shipped, name):
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    model = AutoModelForSeq2SeqLM.from_pretrained(models_folder / name).float()
    tokenizer_ = AutoTokenizer.from_pretrained(models_folder / name)
    text = "We cannot accept this proposal, because it would weaken our common agricultural policy."
    inputs = tokenizer_([text], return_tensors="pt")
    inputs.pop("token_type_ids", None)
    output = model.generate(**inputs)
    (said,) = tokenizer_.batch_decode(output, skip_special_tokens=True)
    assert len(said.split()) > 4
    assert "<pad>" not in said and "</s>" not in said


# ---------------------------------------------------------------------------------------------
# Pages, packages, command line


def test_a_port_already_taken_is_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        found = subprocess.run(
            [sys.executable, "-m", "seqviz", "app", "--port", port],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    assert found.returncode == 1
    assert found.stderr.startswith("seqviz: ") and port in found.stderr
    assert "Traceback" not in found.stderr


def test_ctrl_c_leaves_no_child():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env={**os.environ, "GRADIO_SERVER_PORT": str(port)},
        start_new_session=True,
        # A shell that starts this in the background lets its children ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stderr is not None
    assert "Ctrl-C stops it" in started.stderr.readline()
    os.killpg(started.pid, signal.SIGINT)
    started.wait()
    with pytest.raises(ProcessLookupError):  # at last nothing of its group is there
        for _ in range(3000):
            os.killpg(started.pid, 0)
            time.sleep(0.1)
    with socket.socket() as again:
        again.bind(("127.0.0.1", port))


def test_a_piece_that_starts_no_word():
    """Pieces of an output need not begin with the mark of a word."""
    found = Pieces.of(["ab", "\u2581c", "d"])
    assert found.words == ("ab", "cd") and found.word_of_piece == (0, 1, 1)


def test_a_reader_that_has_gone_is_no_traceback():
    lines = "The boat is green.\n" * 3
    command = f"{sys.executable} -m seqviz translate --model rnn | head -n 1"
    found = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=ROOT,
        input=lines,
        capture_output=True,
        text=True,
    )
    assert found.stdout.count("\n") == 1 and "Traceback" not in found.stderr


def test_without_a_home_a_cache_or_a_terminal(tmp_path):
    """Nothing is written where the home cannot be, and no progress bar is drawn."""
    found = subprocess.run(
        [sys.executable, "-m", "seqviz", "translate", "--model", "rnn", "--json", "The boat."],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0 and json.loads(found.stdout) and found.stderr == ""
    assert not list(tmp_path.iterdir())


def test_a_closed_standard_input_is_one_line():
    command = f"{sys.executable} -m seqviz translate --model rnn <&-"
    found = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 2 and found.stdout == ""
    assert found.stderr.count("\n") == 1 and "standard input, got none" in found.stderr
