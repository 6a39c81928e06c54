"""The model cards: README of each model folder, made from its ``training.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seqviz.text_languages import LanguagePair

_WHAT = {
    "rnn": "A plain tanh RNN translator: the decoder sees one fixed vector of the source.",
    "lstm": "An LSTM translator: the decoder sees one fixed vector of the source.",
    "lstm-attention": "An LSTM translator with additive (Bahdanau) attention over the source.",
    "transformer": "A small Transformer translator (Marian classes of Transformers, unchanged).",
    "lstm-mean": "An LSTM translator whose context is the plain mean of the source states.",
    "lstm-blind": "The LSTM decoder alone, without any source: what can be guessed of the French.",
}


def card(training: Mapping[str, Any], about_data: str = "") -> str:
    """The README of a model folder, from what ``training.json`` says.

    Args:
        training: content of ``training.json``.
        about_data: Markdown on source and terms of the training data.
    """
    recipe = training["recipe"]
    languages = LanguagePair.recorded(training)
    bleu = training.get("dev_bleu")
    loss = training.get("dev_loss")
    rows = [
        ("Trainable parameters", f"{training['num_parameters']:,}"),
        (
            "Training budget",
            f"{training['target_tokens']:,} target tokens, {training['steps']:,} steps",
        ),
        (
            "Time",
            f"{training['seconds'] / 60:,.0f} minutes of wall-clock time on {training['hardware']}",
        ),
        ("Development loss", "not measured" if loss is None else f"{loss:.3f} nats a target token"),
        (
            "Development BLEU",
            "not measured"
            if not bleu
            else f"{bleu['score']:.1f} ({bleu['sentences']} sentences, greedy; "
            f"`{bleu['signature'].replace('|', ' ')}`)",
        ),
        (
            "Recipe",
            f"{recipe['batch_tokens']:,} target tokens a step; AdamW {recipe['learning_rate']:g}, Muon "
            f"{recipe['matrix_learning_rate']:g} for matrices; warm-up "
            f"{recipe['warmup_tokens']:,} tokens, linear cool-down over the last "
            f"{recipe['cooldown']:.0%}; seed {recipe['seed']}",
        ),
        ("Versions", ", ".join(f"{k} {v}" for k, v in training["versions"].items())),
    ]
    if "rate_at_end" in training:
        rows.append(("Ended early", f"at {training['rate_at_end']:.0%} of the full learning rate"))
    started = training.get("started_from")
    if started:
        rows.append(("Went on from", f"weights of {started['target_tokens']:,} target tokens"))
    files = "\n".join(
        f"| {d['name']} | {d['pairs']:,} | {d['repeat']} | `{d['sha256'][:16]}…` |"
        for d in training["data"]
    )
    table = "\n".join(f"| {key} | {value} |" for key, value in rows)
    return f"""---
license: apache-2.0
language: [{", ".join(languages.codes)}]
pipeline_tag: translation
---
# {training["model"]}

{_WHAT.get(training["model"], "A translator trained with seqviz.")} Part of seqviz, where four
generations of translators, trained alike on the same data, can be compared side by side. It is small on
purpose and not meant for real translation work.

| | |
| --- | --- |
{table}

| data file | pairs kept | times an epoch | SHA-256 |
| --- | --- | --- | --- |
{files}

Loss curve, cleaning counts and full digests: `training.json`.

{about_data.strip()}
"""
