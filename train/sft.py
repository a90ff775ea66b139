"""Supervised fine-tuning on whole sessions, with the loss on the replies only (Shop-R1, section 3, equation 2).

Each session stays whole: one trunk, every reply in it a target, each under the context that it has at test time.
Stages may begin with the first steps of the sessions, where copying is learnt soonest, and end with all of them.
"""

from collections.abc import Iterator, Sequence

from replay_sessions.errors import BadConfig
from train.config import SftConfig
from train.loop import Optimizer
from train.policy import Policy
from train.policy_stats import log_probabilities
from train.ranks import ALONE, Ranks
from train.sampler import SessionPlan, SessionSteps
from train.session_tree import PackedTrees, SessionTree, pack, pack_trunks
from train.sharding import idle_pass, passes_behind
from train.tokens import ReplySpan, SessionTokens

__all__ = ["SftTrainer", "sft_packs"]


class SftTrainer:
    """Trains `policy` on the logged replies of `trunks`, each of the `ranks` on its share of every batch."""

    def __init__(
        self,
        policy: Policy,
        trunks: Sequence[SessionTokens],
        config: SftConfig,
        *,
        seed: int,
        ranks: Ranks = ALONE,
    ) -> None:
        if not trunks:
            raise BadConfig("no training session to fine-tune on: is the store's train split empty?")
        self._policy, self._config, self._ranks = policy.train(), config.in_steps(trunks), ranks
        size, tokens = config.sessions_per_batch, config.tokens_per_batch
        self._plan = SessionPlan(trunks, size, tokens, f"{seed} sft", rank=ranks.rank, ranks=ranks.count)
        self.total_steps = self._config.total_steps
        self.optimizer = Optimizer(policy.model, config.optimizer, self.total_steps, ranks)

    def step(self, step: int) -> dict[str, float]:
        """One optimiser step; returns its figures. Depends on the weights and `step` only."""
        wanted = self._config.replies_at(step)
        batch = [(trunk, replies[:wanted]) for trunk, replies in self._plan.batch(step)]
        reply_tokens = self._ranks.total(sum(_taught_tokens(reply) for _, replies in batch for reply in replies))
        figures = {"loss": 0.0, "tokens": 0.0}
        passes = list(_passes(batch, self._config.max_batch_tokens))
        behind = passes_behind(self._policy, self._ranks, len(passes))
        for packed in map(_pack, passes):
            packed = packed.to(self._policy.device)
            for piece in self._policy.pieces(packed, log_probabilities):
                loss = -piece.found.sum() / reply_tokens
                loss.backward()
                figures["loss"] += loss.item()
            figures["tokens"] += packed.input_ids.numel()
        for _ in range(behind):
            idle_pass(self._policy)
        return {**self._ranks.sums(figures), **self.optimizer.step(step)}


def sft_packs(batch: Sequence[SessionSteps], max_tokens: int) -> Iterator[PackedTrees]:
    """A batch as it goes through the model: passes of at most `max_tokens` (at least one session each)."""
    return map(_pack, _passes(batch, max_tokens))


def _taught_tokens(reply: ReplySpan) -> int:
    return reply.end - reply.start if reply.target is None else len(reply.target)


def _passes(batch: Sequence[SessionSteps], max_tokens: int) -> Iterator[list[SessionSteps]]:
    part: list[SessionSteps] = []
    tokens = 0
    for trunk, replies in batch:
        length = replies[-1].end + sum(len(reply.target or ()) for reply in replies)
        if part and tokens + length > max_tokens:
            yield part
            part, tokens = [], 0
        part.append((trunk, replies))
        tokens += length
    if part:
        yield part


def _pack(part: Sequence[SessionSteps]) -> PackedTrees:
    """Trunks whose own replies are the targets; where a reply is taught otherwise than shown, it is a branch."""
    if all(reply.target is None for _, replies in part for reply in replies):
        return pack_trunks([(t.tokens[: rs[-1].end], [(reply.start, reply.end) for reply in rs]) for t, rs in part])
    trees = []
    for trunk, replies in part:
        taught = [[reply.target or trunk.tokens[reply.start : reply.end]] for reply in replies]
        trees.append(SessionTree(trunk.tokens[: replies[-1].start], [reply.start for reply in replies], taught))
    return pack(trees)
