"""How a model is taught: begin with `seqviz.training.loop`.

    from seqviz.training import Recipe, train

    train("lstm", sources, tokenizer, "runs/lstm", "models/lstm", recipe=Recipe(), tokens=30_000_000)

Rooms: `loop` (one step after the other), `run` (where it stands, when it saves and ends), `recipe` (rates and
optimisers), `loss`, `batches`, `state` (what is saved), `model_folder` (what is made), `processes`, `signals`.
"""

from seqviz.training.errors import DivergedError, SaveError, TrainingError
from seqviz.training.loop import Result, train
from seqviz.training.loss import mean_loss, summed_loss
from seqviz.training.model_folder import save_model
from seqviz.training.processes import PRECISIONS, bf16_pays
from seqviz.training.recipe import Recipe, optimizers, rate_factor
from seqviz.training.state import Position

__all__ = [
    "PRECISIONS",
    "DivergedError",
    "Position",
    "Recipe",
    "Result",
    "SaveError",
    "TrainingError",
    "bf16_pays",
    "mean_loss",
    "optimizers",
    "rate_factor",
    "save_model",
    "summed_loss",
    "train",
]
