"""Batches of a run from where it stands, each process its part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from accelerate import Accelerator

from seqviz.data.batches import Batch, make_batch
from seqviz.data.epochs import WeightedCorpus, plan_batches, plan_epoch
from seqviz.training.recipe import Recipe
from seqviz.training.state import Position


@dataclass(frozen=True)
class Step:
    """One batch, of which each process has its part.

    Attributes:
        chunks: this process's part.
        num_target_tokens: of the whole batch.
        source_words: of each example of the whole batch.
    """

    chunks: list[Batch]
    num_target_tokens: int
    source_words: np.ndarray


def batches(
    sources: Sequence[WeightedCorpus],
    recipe: Recipe,
    position: Position,
    accelerator: Accelerator,
    accumulate: int,
    pad_token_id: int,
    eos_token_id: int,
) -> Iterator[Step]:
    """Batches from `position` on, without end."""
    process, processes = accelerator.process_index, accelerator.num_processes
    passes = [source.passes for source in sources]
    while True:
        epoch = plan_epoch(
            sources,
            seed=recipe.seed,
            epoch=position.epoch,
            join_probability=recipe.join_probability,
        )
        plan = plan_batches(
            epoch, batch_tokens=recipe.batch_tokens, seed=recipe.seed, number=position.epoch
        )
        for number in range(position.batch, len(plan)):
            examples = plan[number]
            mine = examples[process::processes]
            chunks = []
            for part in (mine[i::accumulate] for i in range(accumulate)):
                # A process without a sentence still takes part, with a target that counts nothing.
                rows = part if len(part) else examples[:1]
                pairs = [
                    passes[epoch.corpus[e]][epoch.read[e]].ids(
                        int(epoch.first[e]), int(epoch.count[e])
                    )
                    for e in rows
                ]
                chunk = make_batch(pairs, pad_token_id=pad_token_id, eos_token_id=eos_token_id)
                if not len(part):
                    chunk.labels[:] = -100
                chunks.append(chunk)
            total = int(epoch.target_length[examples].sum())
            yield Step(chunks, total, epoch.source_words[examples])
        position.epoch += 1
        position.batch = 0
