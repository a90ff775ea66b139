"""Fits a pointer network to the train split of a store.

    TrainView ─► Encoder ─► batches of whole sessions ─► cross-entropy over each page's choices ─► AdamW

A tenth of the users is held out; the epoch with their lowest negative log-likelihood (NLL) is taken. Roles that many
pages offer and nobody takes, such as menu links whose clicks a log does not hold, are not scored. A share of every
distribution, chosen on the held-out users, is divided evenly among all choices of the page.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from replay_sessions.schema import Action
from shop_env.choices.facts import OfferReader
from shop_env.observation import Observation
from shop_env.reward import RewardConfig
from shop_env.train_view import TrainView, held_out_users
from train.pointer.arrays import Batch, Encoded, Ints, batch_of, batches, ranges
from train.pointer.encoding import Encoder
from train.pointer.network import PointerNetwork, Sizes

MIN_EPOCHS, MAX_EPOCHS = 12, 60
UPDATES = 800  # aimed at: small stores take more epochs
BATCHES, MIN_BATCH, MAX_BATCH = 64, 8, 128  # batches of an epoch that are aimed at, sessions of a batch
LEARNING_RATE, WEIGHT_DECAY, MAX_NORM = 3e-3, 0.01, 1.0
OFFERED_OFTEN = 100  # a role that so many steps offered and nobody took is not scored
OTHER_SHARES = (1e-2, 1e-4, 3e-4, 1e-3, 3e-3, 3e-2)  # the first if no user is held out
Floats = NDArray[np.float64]
Report = Callable[[int, int, dict[str, float]], None]


class Pointer:
    """A fitted pointer network with its encoder.

    Attributes:
        idle_roles: The numbers of the roles that are not scored.
        other_share: The share of every distribution that is divided evenly among all choices of the page.
        best_epoch: The epoch, from 1, after which the network's weights were taken; 0 if it was not trained.
    """

    def __init__(
        self, encoder: Encoder, network: PointerNetwork, idle_roles: Ints, other_share: float, best_epoch: int = 0
    ) -> None:
        self.encoder, self.network, self.best_epoch = encoder, network, best_epoch
        self.idle_roles, self.other_share = idle_roles, other_share

    def weigh(self, observations: Sequence[Observation]) -> Iterator[tuple[list[Action], Floats]]:
        """Yields the choices of each page and their probabilities, (choices,), summing to 1."""
        pages = [self.encoder.reader.read(observation) for observation in observations]
        encoded = self.encoder.encode(observations, pages)
        is_scored = ~is_idle(encoded, self.idle_roles)
        shares = _shares(self.network, batch_of(encoded.with_choices(is_scored), np.arange(len(pages))))
        for page, row, flags in zip(pages, shares, np.split(is_scored, encoded.choice_ends[1:-1]), strict=True):
            page_shares = np.full(len(flags), 1 / len(flags))
            if flags.any():
                page_shares *= self.other_share
                page_shares[flags] += (1 - self.other_share) * row[: flags.sum()]
            yield page.actions, page_shares


def fit_pointer(
    store: TrainView,
    *,
    seed: int,
    first_action: bool = False,
    inferred: bool = False,
    max_steps: int | None = None,
    report: Report = lambda epoch, epochs, metrics: None,
) -> Pointer:
    """Fits a pointer network to the steps that `TrainView.learnt` selects; the same seed gives the same network.

    Args:
        report: Called after each epoch with its number, from 1, the number of epochs, and its metrics.
    """
    encoder, complete = _encode(store, first_action, inferred, max_steps)
    is_held_out = np.isin(complete.users, held_out_users(complete.users))
    by_length = np.argsort(np.diff(complete.past_ends), kind="stable")  # so that batches have little padding
    fitted, held_out = by_length[~is_held_out[by_length]], by_length[is_held_out[by_length]]
    idle_roles = _find_idle_roles(complete, fitted)
    encoded = complete.with_choices(~is_idle(complete, idle_roles))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network, best_epoch = PointerNetwork(Sizes.of(encoder)), 0
        if (encoded.chosen >= 0).any():
            best_epoch = _train(network, encoded, fitted, held_out, np.random.default_rng(seed), report)
    network.eval().requires_grad_(False)
    other_share = _choose_other_share(network, encoded, complete, held_out)
    return Pointer(encoder, network, idle_roles, other_share, best_epoch)


def encode_split(
    store: TrainView,
    first_action: bool,
    inferred: bool,
    max_steps: int | None = None,
    reward: RewardConfig | None = None,
) -> tuple[Encoder, Encoded]:
    """Reads and encodes the steps of a store's train split, with the rewards of choices if there is one."""
    encoder = Encoder(OfferReader(store, first_action=first_action, inferred=inferred, max_steps=max_steps))
    return encoder, encoder.encode_train(store, reward)


_encode = lru_cache(maxsize=1)(encode_split)  # for networks of several seeds: reading takes as long as fitting


def is_idle(encoded: Encoded, idle_roles: Ints) -> NDArray[np.bool_]:
    """Returns which choices have an idle role, (choices,)."""
    return np.isin(encoded.choice_categories[:, 0], idle_roles)


def _find_idle_roles(encoded: Encoded, sessions: Ints) -> Ints:
    """Returns the roles that many steps of the sessions offer and none takes."""
    is_fitted = np.zeros(len(encoded.users), dtype=bool)
    is_fitted[sessions] = True
    steps = np.repeat(is_fitted, np.diff(encoded.step_ends))
    roles = encoded.choice_categories[:, 0]
    step_of = np.repeat(np.arange(len(steps)), np.diff(encoded.choice_ends))
    count = int(roles.max(initial=0)) + 1
    offers = np.unique((step_of * count + roles)[steps[step_of]]) % count
    is_taken = steps & (encoded.chosen >= 0)
    taken = np.bincount(roles[(encoded.choice_ends[:-1] + encoded.chosen)[is_taken]], minlength=count)
    never_taken = (np.bincount(offers, minlength=count) >= OFFERED_OFTEN) & (taken == 0)
    never_taken[0] = False  # unknown roles
    return np.flatnonzero(never_taken)


def _train(
    network: PointerNetwork,
    encoded: Encoded,
    fitted: Ints,
    held_out: Ints,
    draw: np.random.Generator,
    report: Report,
) -> int:
    """Trains the network; leaves it at the epoch with the lowest NLL on the held-out sessions and returns the epoch."""
    size = min(MAX_BATCH, max(MIN_BATCH, len(fitted) // BATCHES))
    updates = math.ceil(len(fitted) / size)
    epochs = min(MAX_EPOCHS, max(MIN_EPOCHS, math.ceil(UPDATES / updates)))
    optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=epochs * updates + 1, pct_start=0.1
    )
    best, best_epoch, best_state = math.inf, 0, network.state_dict()
    for epoch in range(epochs):
        network.train()
        losses = []
        for batch in batches(encoded, fitted, size, draw):
            is_taken = batch.chosen >= 0
            if is_taken.any():
                loss = cross_entropy(network(batch)[is_taken], batch.chosen[is_taken])
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), MAX_NORM)
                optimizer.step()
                losses.append(loss.item())
            schedule.step()
        network.eval()
        nll = _held_out_nll(network, encoded, held_out)
        held_out_nll = {} if math.isnan(nll) else {"held_out_nll": nll}
        report(epoch + 1, epochs, {"loss": sum(losses) / max(1, len(losses)), **held_out_nll})
        if not nll >= best:  # NaN without held-out users: the last epoch
            best, best_epoch = nll, epoch + 1
            best_state = {name: value.clone() for name, value in network.state_dict().items()}
    network.load_state_dict(best_state)
    return best_epoch


def _taken_shares(network: PointerNetwork, encoded: Encoded, sessions: Ints) -> Floats:
    """Computes the probability of the choice that was taken at each step, 0 if it is not scored."""
    shares = [np.zeros(0)]
    for batch in batches(encoded, sessions, MAX_BATCH, None):
        taken = _shares(network, batch)[np.arange(len(batch.chosen)), np.maximum(batch.chosen.numpy(), 0)]
        shares.append(np.where(batch.chosen.numpy() >= 0, taken, 0))
    return np.concatenate(shares)


def _held_out_nll(network: PointerNetwork, encoded: Encoded, sessions: Ints) -> float:
    shares = _taken_shares(network, encoded, sessions)
    return -float(np.log(shares[shares > 0]).mean()) if (shares > 0).any() else math.nan


@torch.no_grad()
def _shares(network: PointerNetwork, batch: Batch) -> Floats:
    scores: Tensor = network(batch)
    shares: Floats = scores.double().softmax(dim=1).numpy()
    return shares


def _choose_other_share(network: PointerNetwork, encoded: Encoded, complete: Encoded, sessions: Ints) -> float:
    """Returns the share for all choices of the page that gives the held-out sessions the lowest NLL."""
    steps = ranges(complete.step_ends, sessions)
    even, is_on_page = 1 / np.diff(complete.choice_ends)[steps], complete.chosen[steps] >= 0
    taken = _taken_shares(network, encoded, sessions)
    return min(OTHER_SHARES, key=lambda share: -np.log(((1 - share) * taken + share * even)[is_on_page]).sum())
