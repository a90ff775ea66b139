"""The outcomes of steps, and their probabilities under a restricted policy (train/candidates.py) in one pass.

    trie of a page ─► branches up to the last nodes at which actions part ─► packed behind the session's trunk
                   ─► a softmax at each of these nodes ─► sums along paths ─► the log-probability of each outcome

An outcome is an action of the page. Typing into an input is one for all texts; if the shopper typed into it, it is two:
the logged text, and all other texts. The outcomes of a step are all that can happen, so their probabilities sum to 1.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from replay_sessions.schema import Action
from shop_env.reward.matching import exact_match
from train.candidates import Allowed, Choices, ReplyTrie, choice_log_probs
from train.policy import at_least_float32, log_probabilities
from train.session_tree import PackedTrees, SessionTree, pack, to_device
from train.tokens import ReplySpan, SessionTokens

WHOLE, LOGGED_TEXT, OTHER_TEXTS = range(3)


class StepOutcomes:
    """The outcomes of a step behind the rationale of its logged reply.

    Args:
        trie: The trie of the page and the logged action.
        logged: The logged action.
        reply: The tokens of the logged reply.
        reward: Computes the reward of an action.

    Attributes:
        branches: The tokens of each branch behind the prompt.
        allowed: For each token of all branches, the tokens among which actions part there; None if it belongs to the
            logged text; else empty.
        actions: The action of each outcome; other texts have an empty one.
        kinds: For each outcome, WHOLE, LOGGED_TEXT or OTHER_TEXTS.
        rewards: The reward of each outcome.
        is_logged: For each outcome, whether it is the logged action.
        paths: For each outcome, (the index of a token of all branches, the token that stands there) where actions part.
    """

    def __init__(
        self, trie: ReplyTrie, logged: Action, reply: Sequence[int], reward: Callable[[Action], float]
    ) -> None:
        self.branches: list[list[int]] = []
        self.allowed: list[Allowed] = []
        self.actions: list[Action] = []
        self.kinds: list[int] = []
        self.paths: list[list[tuple[int, int]]] = []
        self._trie, self._places = trie, dict[int, int]()  # of the nodes where actions part
        self._start, root = trie.fork(reply)
        prefix = list(reply[: self._start])
        paths = {leaf: path for leaf in trie.actions if (path := trie.path(root, leaf)) is not None}
        typed, text = trie.find_text(root, reply[self._start :])
        if typed is not None:
            self._add(list(reply), paths[typed], self._start + text)
        lasts = {
            leaf: max((index for index, (node, _) in enumerate(path) if self._parts(node)), default=0)
            for leaf, path in paths.items()
        }
        for leaf in sorted(paths, key=lasts.__getitem__, reverse=True):  # so that a branch holds all that it can
            path = paths[leaf][: lasts[leaf] + 1]
            if not self.branches or (self._parts(path[-1][0]) and path[-1][0] not in self._places):
                self._add([*prefix, *(token for _, token in path)], path)
        for leaf, path in paths.items():
            partings = [(self._places[node], token) for node, token in path if self._parts(node)]
            for kind in (LOGGED_TEXT, OTHER_TEXTS) if leaf == typed else (WHOLE,):
                self.actions.append(logged if kind == LOGGED_TEXT else trie.actions[leaf])
                self.kinds.append(kind)
                self.paths.append(partings)
        self.rewards = [reward(action) for action in self.actions]
        self.is_logged = [exact_match(action, logged) for action in self.actions]

    def _parts(self, node: int) -> bool:
        return len(self._trie.children[node]) > 1

    def _add(self, tokens: list[int], path: Iterable[tuple[int, int]], text: int | None = None) -> None:
        """Adds a branch, of which the tokens from index `text` on are a text."""
        allowed: list[Allowed] = [[] if text is None or index < text else None for index in range(len(tokens))]
        for index, (node, _) in enumerate(path, self._start):
            if self._parts(node) and node not in self._places:
                self._places[node] = len(self.allowed) + index
                allowed[index] = list(self._trie.children[node])
        self.branches.append(tokens)
        self.allowed += allowed


SessionOutcomes = tuple[SessionTokens, Sequence[tuple[ReplySpan, StepOutcomes]]]
"""A trunk, and its steps with their outcomes."""


@dataclass(frozen=True)
class OutcomePack:
    """The outcomes of the steps of one forward pass, O in all.

    Attributes:
        packed: The trunks and branches.
        choices: The places of all branches' tokens.
        path_outcomes, path_choices: For each token at which an outcome parts from others, the outcome, and the index of
            the token in the flattened table of `choice_log_probs`.
        texts: For each token of a logged text, the number of the text.
        cases: For each outcome, 0 if it has no text, 1 + t for logged text t, 1 + T + t for other texts, T in all.
        rewards, is_logged: (O,).
    """

    packed: PackedTrees
    choices: Choices
    path_outcomes: Tensor
    path_choices: Tensor
    texts: Tensor
    cases: Tensor
    rewards: Tensor
    is_logged: Tensor

    @classmethod
    def of(cls, sessions: Sequence[SessionOutcomes]) -> "OutcomePack":
        """Packs the steps of some sessions."""
        steps = [step for _, of_session in sessions for _, step in of_session]
        packed = pack(
            [
                SessionTree(
                    trunk.tokens[: of_session[-1][0].start],
                    [reply.start for reply, _ in of_session],
                    [step.branches for _, step in of_session],
                )
                for trunk, of_session in sessions
            ]
        )
        allowed = [tokens for step in steps for tokens in step.allowed]
        choices = Choices.of(allowed, "cpu")
        rows = {place: row for row, place in enumerate(choices.restricted.tolist())}
        paths, texts, cases = list[tuple[int, int]](), list[int](), list[int]()
        most, first, typed = choices.tokens.shape[1], 0, sum(LOGGED_TEXT in step.kinds for step in steps)
        for step in steps:
            for path, kind in zip(step.paths, step.kinds, strict=True):
                for index, token in path:
                    columns = step.allowed[index] or []
                    paths.append((len(cases), rows[first + index] * most + columns.index(token)))
                number = texts[-1] + 1 if texts else 0
                cases.append((0, 1 + number, 1 + typed + number)[kind])
            texts += [texts[-1] + 1 if texts else 0] * step.allowed.count(None)
            first += len(step.allowed)
        path_outcomes, path_choices = torch.tensor(paths, dtype=torch.long).view(-1, 2).T
        return cls(
            packed=packed,
            choices=choices,
            path_outcomes=path_outcomes,
            path_choices=path_choices,
            texts=torch.tensor(texts, dtype=torch.long),
            cases=torch.tensor(cases),
            rewards=torch.tensor([reward for step in steps for reward in step.rewards]),
            is_logged=torch.tensor([float(is_logged) for step in steps for is_logged in step.is_logged]),
        )

    def to(self, device: torch.device | str) -> "OutcomePack":
        """Returns a copy on another device."""
        tensors = {name: to_device(value, device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        choices = Choices(*(to_device(tensor, device) for tensor in self.choices))
        return replace(self, packed=self.packed.to(device), choices=choices, **tensors)


def outcome_log_probs(
    hidden: Tensor, output_weight: Tensor, *, targets: Tensor, outcomes: OutcomePack, temperature: float
) -> Tensor:
    """Computes the log-probabilities of all outcomes, (O,).

    Args:
        hidden: The states that predict the branches' tokens, (N, H).
        output_weight: (V, H).
        targets: The branches' tokens, (N,).
        outcomes: The pack.
        temperature: Divides the logits.
    """
    free, restricted = outcomes.choices.free, outcomes.choices.restricted
    # Of the states, so that pages with a single action have a backward pass too.
    log_probs = 0 * hidden.sum().to(at_least_float32(hidden.dtype)).expand(len(outcomes.rewards))
    texts = log_probs.new_zeros(int(outcomes.texts[-1]) + 1 if len(free) else 0)
    if len(restricted):
        table = choice_log_probs(hidden, output_weight, choices=outcomes.choices, temperature=temperature)
        # `index_select`, as in train/policy.py: the gradients of actions that share a place are summed in order.
        parts = table.flatten().index_select(0, outcomes.path_choices)
        log_probs = log_probs.index_add(0, outcomes.path_outcomes, parts)
    if len(free):
        of_tokens = log_probabilities(
            hidden.index_select(0, free), output_weight, targets=targets[free], temperature=temperature
        )
        texts = texts.index_add(0, outcomes.texts, of_tokens.to(texts.dtype))
        certain = -torch.finfo(texts.dtype).eps  # so that the log of the others' probability is finite
        others = torch.log(-torch.expm1(texts.clamp(max=certain)))
        log_probs = log_probs + torch.cat([texts.new_zeros(1), texts, others]).index_select(0, outcomes.cases)
    return log_probs
