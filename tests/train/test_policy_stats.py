"""Log-probabilities, entropy and self-certainty against their definitions."""

import math

import pytest
import torch

from tests.oracles.self_certainty import DEFINITIONS, softmax
from train import policy as policy_module
from train.policy import policy_stats


@pytest.fixture
def sample() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(0)
    hidden = torch.randn(7, 5, generator=source)
    weight = torch.randn(11, 5, generator=source)
    return hidden, weight, torch.randint(11, (7,), generator=source)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_self_certainty_follows_each_definition_to_float32(definition, sample):
    hidden, weight, targets = sample
    measured = policy_stats(hidden, weight, targets=targets, temperature=0.6, definition=definition).self_certainty
    distributions = [softmax(row) for row in (hidden.double() @ weight.double().T).tolist()]
    expected = [DEFINITIONS[definition]([distribution]) for distribution in distributions]
    assert measured.tolist() == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_log_probabilities_and_entropy_are_those_of_the_tempered_distribution(
    sample,
):
    hidden, weight, targets = sample
    stats = policy_stats(hidden, weight, targets=targets, temperature=0.5)
    for row, target, log_prob, entropy in zip(
        (hidden.double() @ weight.double().T).tolist(), targets.tolist(), stats.log_probs, stats.entropy, strict=True
    ):
        p = softmax([logit / 0.5 for logit in row])
        assert log_prob.item() == pytest.approx(math.log(p[target]), rel=1e-5)
        assert entropy.item() == pytest.approx(-math.fsum(x * math.log(x) for x in p), rel=1e-5)


def test_chunks_change_neither_values_nor_gradients(sample, monkeypatch):
    hidden, weight, targets = sample
    results = []
    for chunk in (1 << 20, 2 * 4 * 11):  # all rows at once; two rows of 11 logits
        leaf, head = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
        monkeypatch.setattr(policy_module, "LOGITS_BYTES", chunk)
        stats = policy_stats(leaf, head, targets=targets, temperature=0.6)
        stats.log_probs.sum().backward()
        results.append((stats.log_probs, stats.self_certainty, leaf.grad, head.grad))
    for whole, chunked in zip(*results, strict=True):
        assert torch.allclose(whole, chunked, atol=1e-6)
