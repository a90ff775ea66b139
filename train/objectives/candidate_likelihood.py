"""SFT of a restricted policy: the cross-entropy over the actions that a page offers (train/candidates.py).

The loss of a step is −log p(reply), branch by branch of the trie: at each token of the logged action the cross-entropy
over the tokens with which some action of the page goes on, and nothing where a single one does. Rationales and typed
texts are taught by their plain likelihood. The other branches are no inputs, so a pass reads the trunk as in SFT.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from typing import Any

from torch import Tensor

from train.candidates import Choices, StepCandidates, restricted_log_probs
from train.flops import Work, packed_work
from train.session_tree import PackedTrees
from train.sft import LoggedStep, SftTrainer


class CandidateLikelihood(SftTrainer):
    """Maximizes the likelihood of the logged replies among those with the actions of their pages.

    Args:
        candidates: The candidates of the store's steps.
        arguments: Those of SftTrainer.
    """

    def __init__(self, *arguments: Any, candidates: StepCandidates, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._candidates = candidates

    def units(self, packed: PackedTrees) -> int:
        """Returns the number of replies: the loss is the mean negative log-likelihood of a step."""
        return len(packed.reply_lengths)

    def scaled(self, log_probs: Tensor, packed: PackedTrees) -> Tensor:
        """Returns the log-probabilities (N,) as they are."""
        return log_probs

    def log_probs(self, packed: PackedTrees, steps: Iterator[LoggedStep]) -> tuple[Tensor, Work]:
        """Computes the log-probabilities (N,) of reply tokens among those that may stand in their places."""
        allowed = [
            self._candidates.trie(trunk.session_id, reply).allowed(
                reply.target or trunk.tokens[reply.start : reply.end]
            )
            for trunk, reply in islice(steps, len(packed.reply_lengths))
        ]
        choices = Choices.of([*chain(*allowed)], packed.targets.device)
        log_probs = self.policy.forward_packed(packed, partial(restricted_log_probs, choices=choices))
        # The logits of allowed tokens are too few to count.
        return log_probs, packed_work([packed])._replace(targets=len(choices.free))
