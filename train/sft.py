"""Supervised fine-tuning on whole sessions, with the loss on the replies only (Shop-R1, section 3, equation 2).

A session stays whole: it is one trunk with every reply as a target, in the context that the reply has at test time.
Early stages may train on the first steps of the sessions only, where copying is learned soonest, later ones on all.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile
from operator import eq

import torch
from torch import Tensor

from replay_sessions.foundation.errors import BadConfig
from train.config import SftConfig
from train.flops import FlopCounter, Work, packed_work
from train.loop import Optimizer
from train.policy import Policy
from train.ranks import SINGLE_PROCESS, Ranks, same_passes
from train.sampler import SessionPlan, SessionSteps, own_share, split_batches
from train.session_tree import PackedTrees, SessionTree, pack
from train.tokens import ReplySpan, SessionTokens

LoggedStep = tuple[SessionTokens, ReplySpan]


class SftTrainer:
    """Trains `policy` on the logged replies of `trunks`; each of the `ranks` takes its share of every batch."""

    def __init__(
        self,
        policy: Policy,
        trunks: Sequence[SessionTokens],
        config: SftConfig,
        *,
        seed: int,
        ranks: Ranks = SINGLE_PROCESS,
    ) -> None:
        trunks = config.select(trunks)
        if not trunks:
            raise BadConfig(
                "no step to fine-tune on: the store's train split is empty, or no prompt shows its target "
                f"(sft.hidden_targets = {config.hidden_targets})."
            )
        self.policy, self._config, self._ranks = policy.train(), config.in_steps(trunks), ranks
        size, tokens = config.sessions_per_batch, config.tokens_per_batch
        self._plan = SessionPlan(trunks, size, tokens, f"{seed} sft", ranks.share)
        self.total_steps, self.max_batch_tokens = self._config.total_steps, config.max_batch_tokens
        self.optimizer = Optimizer(policy.model, config.optimizer, self.total_steps, ranks)
        self._flops = FlopCounter(policy.model)

    def step(self, step: int) -> dict[str, float]:
        """Takes one optimizer step, which depends on the weights and `step` only; returns its metrics."""
        batch = self._plan.batch(step, self._config.replies_at(step))
        packs = list(sft_packs(batch, self.max_batch_tokens))
        steps = iter([(trunk, reply) for trunk, replies in batch for reply in replies])
        total = self._ranks.all_reduce_sum(sum(map(self.units, packs)))
        metrics = {"loss": 0.0, "tokens": 0.0, "flops": 0.0}
        losses = []  # stay on the device until the end, because reading one waits for its computation
        with same_passes(self._ranks, len(packs), self.policy):
            for packed in packs:
                log_probs, work = self.log_probs(packed.to(self.policy.device), steps)
                # Divided by the units of all ranks and packs, so that summed gradients are those of the batch.
                loss = -self.scaled(log_probs, packed).sum() / total
                loss.backward()
                losses.append(loss.detach())
                metrics["tokens"] += packed.input_ids.numel()
                metrics["flops"] += 3.0 * self._flops.forward(work)
        metrics["loss"] = sum(torch.stack(losses).tolist()) if losses else 0.0
        return {**self._ranks.sum_metrics(metrics), **self.optimizer.step(step)}

    @torch.no_grad()
    def compute_nll(self, trunks: Sequence[SessionTokens]) -> float:
        """Returns the mean negative log-likelihood of the logged replies of `trunks`, in nats per reply."""
        batch = own_share([(trunk, trunk.replies) for trunk in trunks if trunk.replies], self._ranks.share)
        packs = list(sft_packs(batch, self.max_batch_tokens))
        steps = iter([(trunk, reply) for trunk, replies in batch for reply in replies])
        sums = {"nll": 0.0, "replies": float(sum(len(packed.reply_lengths) for packed in packs))}
        with same_passes(self._ranks, len(packs), self.policy):
            for packed in packs:
                sums["nll"] -= float(self.log_probs(packed.to(self.policy.device), steps)[0].sum())
        sums = self._ranks.sum_metrics(sums)
        return sums["nll"] / max(1.0, sums["replies"])

    def units(self, packed: PackedTrees) -> int:
        """Returns the number of a pack's units that the loss is the mean of: reply tokens, or replies."""
        return len(packed.reply_lengths if self._config.average == "replies" else packed.targets)

    def scaled(self, log_probs: Tensor, packed: PackedTrees) -> Tensor:
        """Returns the log-probabilities (N,), if the loss is a mean over replies divided by the replies' lengths."""
        if self._config.average != "replies":
            return log_probs
        lengths = torch.tensor(packed.reply_lengths, device=log_probs.device)
        return log_probs / lengths.repeat_interleave(lengths)

    def log_probs(self, packed: PackedTrees, steps: Iterator[LoggedStep]) -> tuple[Tensor, Work]:
        """Computes the log-probabilities (N,) of a pack's reply tokens, and the work of a forward pass.

        Args:
            packed: The pack.
            steps: The steps of the pack's replies, then those of later packs.
        """
        return self.policy.log_probs(packed), packed_work([packed])


def sft_packs(batch: Sequence[SessionSteps], max_tokens: int) -> Iterator[PackedTrees]:
    """Packs a batch for passes of at most `max_tokens` tokens, but at least one session each."""
    trees = [tree for _, session in groupby(batch, key=_session_id) for tree in _build_trees([*session])]

    def cost(_: Sequence[SessionTree], tree: SessionTree) -> tuple[int]:
        return (len(tree.trunk) + sum(len(reply) for replies in tree.replies for reply in replies),)

    return map(pack, split_batches(trees, cost, max_tokens))


def _session_id(steps: SessionSteps) -> str:
    return steps[0].session_id


def _build_trees(session: Sequence[SessionSteps]) -> list[SessionTree]:
    """Builds a tree for each trunk of a session, or a single one if all prompts begin as the last one does.

    The prompts of `latest_step` do: they share the instructions and the actions before them.
    """
    if len(session) == 1 or any(len(replies) > 1 for _, replies in session):
        return [_build_tree(*steps) for steps in session]
    prompts = [trunk.tokens[: replies[0].start] for trunk, replies in session]
    forks = [sum(takewhile(bool, map(eq, prompt, prompts[-1]))) for prompt in prompts]
    if forks[0] == 0 or forks != sorted(forks):
        return [_build_tree(*steps) for steps in session]
    branches = [
        [*prompt[fork:], *_target(trunk, replies[0])]
        for prompt, fork, (trunk, replies) in zip(prompts, forks, session, strict=True)
    ]
    own = [len(prompt) - fork for prompt, fork in zip(prompts, forks, strict=True)]
    return [SessionTree(prompts[-1], forks, [[branch] for branch in branches], prompts=own)]


def _build_tree(trunk: SessionTokens, replies: Sequence[ReplySpan]) -> SessionTree:
    """Builds a trunk with its own replies as targets; if any target differs from the history, all are branches."""
    if all(reply.target is None for reply in replies):
        return SessionTree(trunk.tokens[: replies[-1].end], targets=[(reply.start, reply.end) for reply in replies])
    targets = [[_target(trunk, reply)] for reply in replies]
    return SessionTree(trunk.tokens[: replies[-1].start], [reply.start for reply in replies], targets)


def _target(trunk: SessionTokens, reply: ReplySpan) -> Sequence[int]:
    return reply.target or trunk.tokens[reply.start : reply.end]
