"""Training steps of Joey NMT for benchmarks/training.py, which starts this with another Python.

Joey NMT wants an old protobuf, so it lives in an environment of its own and this file imports nothing of
the project. It answers each line of JSON with one: first the settings of a model with what was built,
then batches of ids with the time that a step took.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.config import parse_train_args
from joeynmt.model import build_model
from joeynmt.training import TrainManager
from joeynmt.vocabulary import Vocabulary
from torch.utils.flop_counter import FlopCounterMode

UNK, PAD, BOS, EOS = range(4)
FIRST_PIECE = 4
"""Joey NMT's special tokens come first in its vocabulary."""


def vocabulary(size: int) -> Vocabulary:
    """One of this many entries, special tokens among them."""
    special = SimpleNamespace(
        unk_token="<unk>",
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        sep_token=None,
        unk_id=UNK,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        sep_id=None,
        lang_tags=[],
    )
    return Vocabulary([f"piece {number}" for number in range(FIRST_PIECE, size)], special)


def model_settings(config: dict[str, Any]) -> dict[str, Any]:
    """The part ``model`` of a Joey NMT configuration that comes nearest to one of the project's.

    Args:
        config: of the project's model, as its config.json has it.
    """
    width = config["d_model"]
    embeddings = {"embedding_dim": width, "scale": True}
    if config["model_type"] == "marian":
        sides = {
            side: {
                "type": "transformer",
                "num_layers": config[f"{side}_layers"],
                "num_heads": config[f"{side}_attention_heads"],
                "hidden_size": width,
                "ff_size": config[f"{side}_ffn_dim"],
                "layer_norm": "post",
                "activation": config["activation_function"],
                "dropout": 0.0,
                "embeddings": embeddings,
            }
            for side in ("encoder", "decoder")
        }
        return {**sides, "tied_embeddings": True, "tied_softmax": True}
    recurrent = {
        "type": "recurrent",
        "rnn_type": config["cell"],
        "num_layers": config["num_layers"],
        "dropout": 0.0,
        "embeddings": embeddings,
    }
    return {
        "encoder": {**recurrent, "hidden_size": config["width"] // 2, "bidirectional": True},
        "decoder": {
            **recurrent,
            "hidden_size": config["width"],
            "attention": "bahdanau",
            "init_hidden": "bridge",
            "input_feeding": False,
        },
        "tied_embeddings": True,
        "tied_softmax": config["width"] == width,
    }


def batch_of(source: list[list[int]], target: list[list[int]]) -> Batch:
    """What Joey NMT's loader makes of ids: padded, source and target ended, the target begun."""

    def padded(sentences: list[list[int]], begun: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        rows = [[*begun, *sentence, EOS] for sentence in sentences]
        lengths = [len(row) for row in rows]
        full = [row + [PAD] * (max(lengths) - len(row)) for row in rows]
        return torch.tensor(full), torch.tensor(lengths)

    source_ids, source_length = padded(source, [])
    target_ids, _ = padded(target, [BOS])
    return Batch(
        src=source_ids,
        src_length=source_length,
        src_prompt_mask=None,
        trg=target_ids,
        trg_prompt_mask=None,
        indices=torch.arange(len(source)),
        device=torch.device("cpu"),
        pad_index=PAD,
        eos_index=EOS,
    )


def own_pieces(sentences: list[list[int]], vocab_size: int) -> list[list[int]]:
    """The project's ids, from 2 on, moved behind Joey NMT's special tokens; the ids are random anyway."""
    number = vocab_size - FIRST_PIECE
    return [[FIRST_PIECE + (piece - 2) % number for piece in sentence] for sentence in sentences]


class Steps:
    """Joey NMT's model, optimiser and training step.

    Args:
        asked: config of the project's model, recipe, precision (fp32 or bf16).
        folder: where Joey NMT may write.
    """

    def __init__(self, asked: dict[str, Any], folder: Path) -> None:
        recipe, self.vocab_size = asked["recipe"], asked["config"]["vocab_size"]
        torch.manual_seed(recipe["seed"])
        words = vocabulary(self.vocab_size)
        self.model = build_model(model_settings(asked["config"]), words, words)
        self.model.loss_function = ("crossentropy", 0.0)
        self.manager = TrainManager(
            rank=0,
            model=self.model,
            model_dir=folder,
            device=torch.device("cpu"),
            autocast={
                "device_type": "cpu",
                "enabled": asked["precision"] == "bf16",
                "dtype": torch.bfloat16,
            },
            train_args=parse_train_args(
                {
                    "optimizer": "adamw",
                    "adam_betas": [0.9, 0.98],
                    "learning_rate": recipe["learning_rate"],
                    "scheduling": "decaying",  # after each epoch, so here never; it wants one
                    "clip_grad_norm": recipe["clip_norm"],
                    "normalization": "tokens",
                    "batch_type": "token",
                    "batch_size": recipe["batch_tokens"],
                }
            ),
        )
        self.model.train()
        self.model.zero_grad()

    def about(self) -> dict[str, Any]:
        return {
            "num_parameters": sum(p.numel() for p in self.model.parameters() if p.requires_grad),
            "versions": {
                "python": platform.python_version(),
                "joeynmt": version("joeynmt"),
                "torch": torch.__version__,
            },
            "num_threads": torch.get_num_threads(),
        }

    def step(self, source: list[list[int]], target: list[list[int]]) -> dict[str, Any]:
        """One step, as Joey NMT's loop takes it."""
        source, target = (own_pieces(side, self.vocab_size) for side in (source, target))
        begin = time.perf_counter()
        batch = batch_of(source, target)
        loss, _ = self.manager._train_step(batch)
        self.manager.clip_grad_fun(parameters=self.model.parameters())
        self.manager.optimizer.step()
        self.model.zero_grad()
        return {
            "seconds": time.perf_counter() - begin,
            "loss": loss,
            "target_tokens": int(batch.ntokens),
        }

    def operations(self, source: list[list[int]], target: list[list[int]]) -> dict[str, Any]:
        """Operations of matrix products in a forward and a backward pass, as PyTorch counts them."""
        source, target = (own_pieces(side, self.vocab_size) for side in (source, target))
        # The fused LSTM of a CPU would not be counted.
        with torch.backends.mkldnn.flags(enabled=False), FlopCounterMode(display=False) as counter:
            self.manager._train_step(batch_of(source, target))
        self.model.zero_grad()
        return {"operations": counter.get_total_flops()}


def main() -> None:
    # What Joey NMT prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    asked = json.loads(sys.stdin.readline())
    torch.set_num_threads(asked["num_threads"])
    with tempfile.TemporaryDirectory() as folder:
        steps = Steps(asked, Path(folder))
        print(json.dumps(steps.about()), file=answers, flush=True)
        for line in sys.stdin:
            job = json.loads(line)
            do = {"step": steps.step, "operations": steps.operations}[job.pop("do")]
            print(json.dumps(do(**job)), file=answers, flush=True)


if __name__ == "__main__":
    main()
