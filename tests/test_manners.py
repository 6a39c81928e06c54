"""What people who know Transformers expect: masks, padding, Trainer, pieces, precision, positions.

Shapes: `B` batch, `S` source length, `T` target length, `V` vocabulary.
"""

from __future__ import annotations

import warnings

import pytest
import torch
from transformers import (
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
)

from seqviz.architectures import stepper_for
from seqviz.constants import MODEL_NAMES
from seqviz.translating.translator import Translator

each_model = pytest.mark.parametrize("name", MODEL_NAMES)
each_recurrent = pytest.mark.parametrize("name", ("rnn", "lstm", "lstm-attention", "lstm-mean"))


def encoded(tokenizer, pairs):
    """Pairs as the Trainer's examples, ended, unpadded, of lengths that differ much."""
    return [
        {
            "input_ids": tokenizer(source).input_ids,
            "labels": tokenizer(target).input_ids[: 3 + 4 * (i % 5)],
        }
        for i, (source, target) in enumerate(pairs)
    ]


def batch_of(tokenizer, model, pairs):
    return DataCollatorForSeq2Seq(tokenizer, model=model)(encoded(tokenizer, pairs))


def gradients(model):
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


# ---------------------------------------------------------------------------------------------
# The Trainer


class Grab(TrainerCallback):
    """Keeps the gradients of the first optimiser step."""

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        self.found = gradients(model)


@pytest.mark.parametrize("accumulation", [1, 2, 4])
@each_model
def test_accumulated_gradient_is_that_of_one_large_batch(
    tiny_model, tiny_tokenizer, sentence_pairs, tmp_path, name, accumulation
):
    pairs = sentence_pairs[:8]
    # In double precision: sharp random weights of a tanh RNN multiply rounding by a thousand.
    model = tiny_model(name).double().train()
    model(**batch_of(tiny_tokenizer, model, pairs)).loss.backward()
    expected = gradients(model)
    model.zero_grad()
    grab = Grab()
    arguments = Seq2SeqTrainingArguments(
        output_dir=str(tmp_path),
        per_device_train_batch_size=8 // accumulation,
        gradient_accumulation_steps=accumulation,
        max_steps=1,
        max_grad_norm=0,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    Seq2SeqTrainer(
        model=model,
        args=arguments,
        train_dataset=encoded(tiny_tokenizer, pairs),
        data_collator=DataCollatorForSeq2Seq(tiny_tokenizer, model=model),
        callbacks=[grab],
    ).train()
    assert set(grab.found) == set(expected)
    for key, gradient in expected.items():
        torch.testing.assert_close(grab.found[key], gradient, atol=1e-5, rtol=1e-5)


@each_model
def test_a_part_of_a_batch_gives_its_share(tiny_model, tiny_tokenizer, sentence_pairs, name):
    model = tiny_model(name)
    batch = batch_of(tiny_tokenizer, model, sentence_pairs[:6])
    whole = model(**batch).loss
    real = (batch["labels"] != -100).sum()
    parts = [
        model(**{k: v[rows] for k, v in batch.items()}, num_items_in_batch=real).loss
        for rows in (slice(0, 2), slice(2, 6))
    ]
    assert sum(parts).item() == pytest.approx(whole.item(), rel=1e-5)


# ---------------------------------------------------------------------------------------------
# Masks and padding


@each_model
def test_a_mask_may_be_left_out(tiny_model, tiny_tokenizer, sentence_pairs, name):
    model = tiny_model(name)
    batch = batch_of(tiny_tokenizer, model, sentence_pairs[:5])
    labels = batch.pop("labels")
    del batch["decoder_input_ids"]
    with torch.no_grad():
        expected = model(**batch, labels=labels).logits
        got = model(input_ids=batch["input_ids"], labels=labels).logits
    torch.testing.assert_close(got, expected)
    for beams in (1, 3):
        written = model.generate(**batch, num_beams=beams, max_new_tokens=12)
        ids = batch["input_ids"]
        assert torch.equal(model.generate(ids, num_beams=beams, max_new_tokens=12), written)
        assert torch.equal(
            model.generate(input_ids=ids, num_beams=beams, max_new_tokens=12), written
        )


@each_model
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_padding_before_the_text_is_refused(tiny_model, tiny_tokenizer, sentence_pairs, name, mode):
    model = getattr(tiny_model(name), mode)()
    batch = batch_of(tiny_tokenizer, model, sentence_pairs[:4])
    batch.pop("decoder_input_ids")
    left = {k: batch[k].flip(1) for k in ("input_ids", "attention_mask")}
    message = "expected padding at the end of the {}, .*; pad right"
    with pytest.raises(ValueError, match=message.format("source")):
        model(**left, labels=batch["labels"])
    with pytest.raises(ValueError, match=message.format("source")):
        model.generate(**left, max_new_tokens=3)
    with pytest.raises(ValueError, match=message.format("labels")):
        model(**{**batch, "labels": batch["labels"].flip(1)})
    start = torch.full((4, 3), model.config.decoder_start_token_id)
    before = torch.tensor([[0, 1, 1]] * 4)
    batch.pop("labels")
    with pytest.raises(ValueError, match=message.format("target")):
        model(**batch, decoder_input_ids=start, decoder_attention_mask=before)


@each_model
def test_a_source_without_a_token_is_refused(tiny_model, name):
    model = tiny_model(name).train()
    ids = torch.tensor([[5, 6, 0], [7, 8, 0]])
    mask = torch.tensor([[1, 1, 1], [0, 0, 0]])
    with pytest.raises(ValueError, match="expected at least one real token in every source"):
        model(input_ids=ids, attention_mask=mask, labels=ids)


@each_model
def test_target_embeddings_in_place_of_ids(tiny_model, tiny_tokenizer, sentence_pairs, name):
    model = tiny_model(name)
    batch = batch_of(tiny_tokenizer, model, sentence_pairs[:3])
    batch.pop("labels")
    targets = batch["decoder_input_ids"]
    embedded = model.get_input_embeddings()(targets) * model.get_decoder().embed_scale
    with torch.no_grad():
        expected = model(**batch).logits
        batch.pop("decoder_input_ids")
        got = model(**batch, decoder_inputs_embeds=embedded).logits
    torch.testing.assert_close(got, expected)


# ---------------------------------------------------------------------------------------------
# More pieces and fewer


@each_model
@pytest.mark.parametrize("tied", [True, False])
def test_more_pieces_and_fewer(tiny_model, tiny_tokenizer, sentence_pairs, tmp_path, name, tied):
    model = tiny_model(name, tie_word_embeddings=tied)
    size = model.config.vocab_size
    batch = batch_of(tiny_tokenizer, model, sentence_pairs[:4])
    own = model.lm_head.weight is not model.get_input_embeddings().weight
    assert own is not tied
    for part in (model.get_encoder(), model.get_decoder()):
        assert part.embed_tokens.weight is model.get_input_embeddings().weight
    with torch.no_grad():
        before = model(**batch)
        model.resize_token_embeddings(size + 5)
        bigger = model(**batch)
        assert bigger.logits.shape[-1] == size + 5 == model.config.vocab_size
        torch.testing.assert_close(bigger.logits[..., :size], before.logits)
        bigger.logits.sum()
        model.save_pretrained(tmp_path)
        again = type(model).from_pretrained(tmp_path)
        torch.testing.assert_close(again(**batch).logits, bigger.logits)
        assert again.generate(batch["input_ids"], max_new_tokens=5).shape[0] == 4
        model.resize_token_embeddings(size)
        after = model(**batch)
        torch.testing.assert_close(after.logits, before.logits)
        assert after.loss.item() == pytest.approx(before.loss.item(), rel=1e-6)
        model.resize_token_embeddings(pad_to_multiple_of=64)
        rounded = model(**batch).logits
        assert rounded.shape[-1] == 320
        torch.testing.assert_close(rounded[..., :size], before.logits)
    with pytest.raises(ValueError, match=f"expected at least {size} pieces, .*got {size - 1}"):
        model.resize_token_embeddings(size - 1)


# ---------------------------------------------------------------------------------------------
# Gradient checkpointing, precision


@each_model
@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing(tiny_model, tiny_tokenizer, sentence_pairs, name, reentrant):
    model = tiny_model(name).train()
    batch = batch_of(tiny_tokenizer, model, sentence_pairs[:4])
    model(**batch).loss.backward()
    expected = gradients(model)
    model.zero_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x) or x, lambda x: x):
        loss = model(**batch, use_cache=False).loss
    loss.backward()
    for key, gradient in expected.items():
        torch.testing.assert_close(gradients(model)[key], gradient)
    kept = sum(t.numel() for t in saved)
    saved.clear()
    model.gradient_checkpointing_disable()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x) or x, lambda x: x):
        model(**batch, use_cache=False)
    assert kept < sum(t.numel() for t in saved)


@each_model
def test_autocast_around_forward_and_translate(tiny_model, tiny_tokenizer, sentence_pairs, name):
    model = tiny_model(name)
    translator = Translator(model, tiny_tokenizer, name=name)
    text = sentence_pairs[0][0]
    plain = [translator.translate(text, beams, attention=True) for beams in (1, 3)]
    batch = batch_of(tiny_tokenizer, model, sentence_pairs[:3])
    with torch.no_grad():
        expected = model(**batch).logits
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = [translator.translate(text, beams, attention=True) for beams in (1, 3)]
        steps = translator.candidates(plain[0], 2)
        losses = translator.losses(sentence_pairs[:2])
        logits = model(**batch).logits
    assert [(t.text, t.score) for t in inside] == [(t.text, t.score) for t in plain]
    assert steps == translator.candidates(plain[0], 2)
    for got, wanted in zip(losses, translator.losses(sentence_pairs[:2]), strict=True):
        assert got.tolist() == wanted.tolist()
    assert ((logits.float() - expected).norm() / expected.norm()).item() < 0.1
    model.train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(**batch).loss
    loss.backward()
    assert all(torch.isfinite(g).all() for g in gradients(model).values())


# ---------------------------------------------------------------------------------------------
# The Transformer's own


@pytest.mark.parametrize("heads", [(1, 4), (4, 2)])
def test_unequal_numbers_of_heads(tiny_model, tiny_tokenizer, sentence_pairs, heads):
    encoder, decoder = heads
    model = tiny_model(
        "transformer", encoder_attention_heads=encoder, decoder_attention_heads=decoder
    )
    model.set_attn_implementation("eager")
    translator = Translator(model, tiny_tokenizer)
    text = sentence_pairs[1][0]
    found = translator.translate(text)
    written = model.generate(
        **tiny_tokenizer(text, return_tensors="pt"),
        max_new_tokens=len(found.target_ids),
        bad_words_ids=[[tiny_tokenizer.unk_token_id]],
    )
    assert tuple(written[0, 1:].tolist()) == found.target_ids
    assert found.attention("encoder").weights.shape[1] == encoder
    assert found.attention("cross").weights.shape[1] == decoder
    again = translator.attend(tiny_tokenizer(text).input_ids[:-1], found.target_ids)
    for kind, weights in again.items():
        torch.testing.assert_close(
            torch.tensor(found.attention(kind).weights), torch.tensor(weights), atol=1e-5, rtol=1e-4
        )


def test_the_end_of_the_position_table(tiny_model, tiny_tokenizer):
    model = tiny_model("transformer", max_position_embeddings=16)
    message = r"expected at most 16 pieces \(max_position_embeddings\), got {}; cut the text"
    long, short = torch.full((1, 17), 5), torch.full((1, 16), 5)
    with torch.no_grad():
        assert model(input_ids=short, labels=short).logits.shape[1] == 16
    with pytest.raises(ValueError, match=message.format(17)):
        model(input_ids=long, labels=short)
    with pytest.raises(ValueError, match=message.format(17)):
        model(input_ids=short, labels=long)
    with pytest.raises(ValueError, match=message.format(17)):
        model.generate(long)
    with pytest.raises(ValueError, match=message.format(17)):
        model.generate(short, min_new_tokens=20, max_new_tokens=20)
    with pytest.raises(ValueError, match=message.format(17)):
        stepper_for(model).start(long, torch.ones_like(long), 3)
    with pytest.raises(ValueError, match=message.format(40)):
        stepper_for(model).start(short, torch.ones_like(short), 40)
