"""The recipe of a run: step size, learning rates and their course, optimisers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Recipe:
    """How a model is trained; the same for all models but for the learning rates.

    Args:
        batch_tokens: target tokens of one step, over all processes.
        learning_rate: of AdamW, for the embedding table, biases and norms.
        matrix_learning_rate: of Muon (Jordan et al. 2024), for all other matrices; 0 leaves them to
            AdamW as well.
        warmup_tokens: target tokens until the full rate.
        cooldown: share of the token budget over which the rate falls linearly to 0, at the end.
        clip_norm: largest gradient norm.
        weight_decay: decoupled, of the matrices.
        join_probability: share of examples that are several consecutive sentences.
        seed: of weights and data order.
    """

    batch_tokens: int = 3_000
    learning_rate: float = 1e-3
    matrix_learning_rate: float = 0.012
    warmup_tokens: int = 150_000
    cooldown: float = 0.2
    clip_norm: float = 1.0
    weight_decay: float = 0.0
    join_probability: float = 0.15
    seed: int = 1


def rate_factor(tokens: int, recipe: Recipe, budget: int, warmup_from: int = 0) -> float:
    """Factor on the learning rate after `tokens` target tokens: warm-up, 1, linear cool-down.

    Args:
        budget: target tokens of the finished model; 0 means no end, so no cool-down.
        warmup_from: tokens at which the warm-up began (not 0 where training goes on from weights).
    Returns:
        a factor above 0 and at most 1.
    """
    since = tokens - warmup_from + recipe.batch_tokens
    factor = min(1.0, since / recipe.warmup_tokens) if recipe.warmup_tokens else 1.0
    if budget:
        left = (budget - tokens) / max(1.0, recipe.cooldown * budget)
        factor = min(factor, max(left, 1e-3))
    return factor


def optimizers(model: nn.Module, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """AdamW for tables, biases and norms, Muon for all other matrices.

    Muon orthogonalises its steps, which only makes sense for matrices between hidden states.
    """
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        is_matrix = (
            parameter.ndim == 2 and min(parameter.shape) > 1 and id(parameter) not in embeddings
        )
        (matrices if is_matrix and recipe.matrix_learning_rate else others).append(parameter)
    made: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(
            others, lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True
        )
    ]
    if matrices:
        made.append(
            torch.optim.Muon(
                matrices, lr=recipe.matrix_learning_rate, weight_decay=recipe.weight_decay
            )
        )
    return made
