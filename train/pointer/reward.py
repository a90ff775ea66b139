"""Trains a fitted pointer network by the exact gradient of the expected reward (train/objectives/expected_reward.py).

    checkpoint ─► Pointer ─► batches of whole sessions ─► softmax over each page's choices · their rewards ─► AdamW

The numbers are those of [grpo]: batches, learning rate, temperature and β. Dropout is off, so that the gradient is that
of the probabilities that the policy acts by, but for the share that it divides among all choices of a page.
"""

import copy
import math
from itertools import count

import numpy as np
import torch
from torch import Tensor

from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch
from shop_env.reward import RewardConfig
from shop_env.train_view import TrainView
from train.grpo.config import GrpoConfig
from train.grpo.loss import expected_terms
from train.loop import Optimizer
from train.pointer.arrays import Batch, batches
from train.pointer.fit import Pointer, Report, encode_split, is_idle
from train.pointer.network import PointerNetwork


def train_on_reward(
    pointer: Pointer,
    store: TrainView,
    config: GrpoConfig,
    reward: RewardConfig,
    *,
    seed: int,
    inferred: bool = False,
    report: Report = lambda step, steps, metrics: None,
) -> None:
    """Trains a pointer's network in place; the same seed gives the same weights.

    Args:
        pointer: The pointer, which was fitted to the same train split.
        store: The train split.
        config: The numbers.
        reward: The reward.
        seed: The seed of the order of sessions.
        inferred: Whether inferred actions are trained on too.
        report: Called after each step with its number, from 1, the number of steps, and its metrics.

    Raises:
        BadConfig: The numbers ask for batches of single steps or several updates on a batch.
        CheckpointMismatch: The pointer was fitted to another train split.
    """
    if config.steps_per_batch is not None or config.num_iterations > 1:
        raise BadConfig("a pointer takes whole sessions, once each: leave grpo.steps_per_batch and num_iterations out.")
    encoder, complete = encode_split(store, False, inferred, None, reward)
    if (encoder.names, encoder.words) != (pointer.encoder.names, pointer.encoder.words):
        raise CheckpointMismatch("the pointer was fitted to another train split than the one to train it on.")
    encoded = complete.with_choices(~is_idle(complete, pointer.idle_roles))
    sessions = np.flatnonzero(np.diff(encoded.step_ends))
    network, reference = pointer.network.requires_grad_(True), copy.deepcopy(pointer.network).requires_grad_(False)
    per_epoch = math.ceil(len(sessions) / config.sessions_per_batch)
    steps = config.steps or max(1, round((config.epochs or 0) * per_epoch))
    optimizer, draw = Optimizer(network, config.optimizer, steps), np.random.default_rng(seed)
    stream = (batch for _ in count() for batch in batches(encoded, sessions, config.sessions_per_batch, draw))
    for step, batch in zip(range(steps), stream, strict=False):
        metrics = learn(network, reference, batch, config)
        report(step + 1, steps, metrics | optimizer.step(step))
    network.requires_grad_(False)


def learn(network: PointerNetwork, reference: PointerNetwork, batch: Batch, config: GrpoConfig) -> dict[str, float]:
    """Accumulates the gradient of the mean over a batch's steps; returns its metrics."""
    with torch.no_grad():
        before = _log_probs(reference, batch, config.temperature)
    log_probs = _log_probs(network, batch, config.temperature)
    columns = torch.arange(len(batch.choice_steps)) - batch.first_choices[batch.choice_steps]
    is_logged = (columns == batch.chosen[batch.choice_steps]).float()
    terms = expected_terms(log_probs, before, batch.choice_rewards, is_logged)
    terms = {name: term / len(batch.chosen) for name, term in terms.items()}
    loss = config.beta * terms["kl"] - terms["action_reward"]
    loss.backward()
    return {name: term.item() for name, term in (("loss", loss), *terms.items())}


def _log_probs(network: PointerNetwork, batch: Batch, temperature: float) -> Tensor:
    """Computes the log-probability of each choice, (C,)."""
    scores: Tensor = network(batch)
    log_probs = (scores / temperature).log_softmax(dim=1)
    return log_probs[scores > -math.inf]  # row by row, as the choices come
