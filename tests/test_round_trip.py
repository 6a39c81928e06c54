"""Folders that others wrote are loaded, and ours are read again."""

from __future__ import annotations

import json
import re

import pytest
import torch
from conftest import REPOSITORY
from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments

import seqviz
from seqviz.constants import MODEL_NAMES

each_model = pytest.mark.parametrize("name", MODEL_NAMES)
TEXT = "Nobody painted the green boat."


@each_model
def test_saved_and_loaded(tiny_model, tiny_tokenizer, tmp_path, name):
    record = {"model": name, "dev_loss": 3.0, "target_tokens": 7, "weights_sha256": "of before"}
    translator = seqviz.Translator(tiny_model(name), tiny_tokenizer, name=name, training=record)
    translator.save_pretrained(tmp_path)
    again = seqviz.load(tmp_path)
    assert again.name == name and again.notes == ()
    got, expected = again.translate(TEXT), translator.translate(TEXT)
    assert got.text == expected.text and got.score == pytest.approx(expected.score, rel=1e-5)
    assert again.training["target_tokens"] == 7
    assert len(again.training["weights_sha256"]) == 64
    record = json.loads((tmp_path / "training.json").read_text(encoding="utf-8"))
    record["dev_loss"] = 9.0
    (tmp_path / "training.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(seqviz.ModelError, match="untrained or diverged"):
        seqviz.load(tmp_path)


@pytest.mark.parametrize("name", ["lstm-attention", "transformer"])
def test_what_a_trainer_wrote(tiny_model, tiny_tokenizer, sentence_pairs, tmp_path, name):
    model = tiny_model(name)
    examples = [
        {"input_ids": tiny_tokenizer(en).input_ids, "labels": tiny_tokenizer(fr).input_ids}
        for en, fr in sentence_pairs[:4]
    ]
    arguments = Seq2SeqTrainingArguments(
        output_dir=str(tmp_path), max_steps=1, use_cpu=True, report_to=[], disable_tqdm=True
    )
    Seq2SeqTrainer(
        model=model,
        args=arguments,
        train_dataset=examples,
        data_collator=DataCollatorForSeq2Seq(tiny_tokenizer, model=model),
        processing_class=tiny_tokenizer,
    ).train()
    folder = tmp_path / "checkpoint-1"
    translator = seqviz.load(folder)
    (note,) = translator.notes
    assert note.startswith("no training.json in")
    assert translator.name == "checkpoint-1"
    with torch.no_grad():
        batch = DataCollatorForSeq2Seq(tiny_tokenizer, model=model)(examples)
        torch.testing.assert_close(
            translator.model(**batch).logits, model.eval()(**batch).logits, atol=1e-4, rtol=1e-4
        )
    (folder / "tokenizer.json").unlink()
    with pytest.raises(seqviz.ModelError, match=r"expected tokenizer\.json .*processing_class"):
        seqviz.load(folder)


def test_fine_tuning_as_the_docs_show_it(tmp_path, monkeypatch):
    """The example runs as printed; the loss of its pairs falls; what it saved is loaded."""
    page = REPOSITORY / "docs" / "fine-tuning.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(code, names)
    assert sum(map(sum, names["translator"].losses(names["pairs"]))) < 0.8 * names["before"]
    text = "The kettle is cold."
    assert seqviz.load("my-kettle").translate(text).text == names["translator"].translate(text).text
    assert seqviz.load("my-model/checkpoint-10").notes
