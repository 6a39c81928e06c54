"""The training loss beside PyTorch's own, and the names of its state."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from seqviz.architectures import MODEL_NAMES
from seqviz.training import loss


@pytest.mark.parametrize("chunk", [3, 512])
def test_loss_and_gradients_are_those_of_cross_entropy(monkeypatch, chunk):
    monkeypatch.setattr(loss, "_CHUNK", chunk)
    hidden = torch.randn(2, 5, 7, dtype=torch.float32, requires_grad=True)
    table = torch.randn(11, 7, requires_grad=True)
    bias = torch.randn(1, 11)
    labels = torch.tensor([[3, 0, 10, -100, -100], [1, 1, 9, 4, -100]])
    got = loss.linear_cross_entropy(hidden, table, bias, labels)
    expected = functional.cross_entropy(
        (hidden @ table.t() + bias).flatten(0, 1),
        labels.flatten(),
        ignore_index=-100,
        reduction="sum",
    )
    assert got.item() == pytest.approx(expected.item(), rel=1e-6)
    wanted = torch.autograd.grad(3 * expected, (hidden, table))
    for gradient, right in zip(torch.autograd.grad(3 * got, (hidden, table)), wanted, strict=True):
        torch.testing.assert_close(gradient, right, rtol=1e-5, atol=1e-6)


def test_in_bf16_the_loss_stays_near(monkeypatch):
    hidden, table = torch.randn(40, 16), torch.randn(30, 16)
    labels = torch.arange(40) % 30
    exact = loss.linear_cross_entropy(hidden, table, torch.zeros(1, 30), labels)
    with torch.autocast("cpu", torch.bfloat16):
        rough = loss.linear_cross_entropy(hidden, table, torch.zeros(1, 30), labels)
    assert rough.dtype == torch.float32
    assert rough.item() != exact.item()
    assert rough.item() == pytest.approx(exact.item(), rel=5e-3)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_state_has_the_models_own_names(name, tiny_model):
    model = tiny_model(name)
    assert loss.SequenceLoss(model).state_dict().keys() == model.state_dict().keys()
