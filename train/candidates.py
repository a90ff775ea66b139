"""The actions that a page offers as tokens, for restricted policies, which choose among them.

    page ─► its elements' actions ─► a trie of their replies ─► the tokens that may follow at each place of a reply
                                                            ─► softmax over these tokens alone

A restricted policy (train/objectives/candidate_likelihood.py) draws each token of an action from those with which some
reply of the trie goes on. The probability of an action is the product along its path, and those of a page's actions sum
to 1. It is not π(a) / Σ π(b) over whole replies, because the share of the vocabulary's softmax that falls on allowed
tokens differs between places.

Two parts of a reply are free, that is drawn from the whole vocabulary, because no list holds them: the rationale with
the token that ends it, if the prompt asks for rationales, and a typed text with all that follows it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from replay_sessions.elements import find_elements
from replay_sessions.schema import Action, Click, Scroll, Terminate, TypeAndSubmit
from replay_sessions.store import SessionStore
from shop_env.observation import ContextConfig, ObservedSession
from shop_env.prompts import PromptConfig
from shop_env.replies import format_reply
from train.memory import LOGITS_BYTES
from train.policy import at_least_float32, log_probabilities
from train.session_tree import to_device
from train.tokens import ReplySpan, reply_tokens

CACHED_PAGES = 1024  # pages of a shop repeat
_RATIONALE = re.compile(r'\{"rationale": "([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)

Allowed = list[int] | None
"""The tokens that may follow; None stands for the whole vocabulary."""


class TokenTrie:
    """Lists of tokens as a tree, which holds common beginnings once.

    Attributes:
        children: For each node, the nodes that follow by token; node 0 is the root.
        parents, tokens: The node before each node, and its own token; -1 for the root.
    """

    def __init__(self) -> None:
        self.children: list[dict[int, int]] = [{}]
        self.parents, self.tokens = [-1], [-1]

    def add(self, tokens: Iterable[int]) -> list[int]:
        """Adds a list, and returns its nodes from the root on."""
        nodes = [0]
        for token in tokens:
            children = self.children[nodes[-1]]
            if token not in children:
                children[token] = len(self.children)
                self.children.append({})
                self.parents.append(nodes[-1])
                self.tokens.append(token)
            nodes.append(children[token])
        return nodes


class ReplyTrie(TokenTrie):
    """The replies with a page's candidates, up to their texts and without rationales, as a tree of tokens.

    Args:
        tokenizer: The tokenizer.
        actions: The candidates.
        rationales: Whether the policy writes rationales.

    Attributes:
        before_text: The nodes behind which a text is free.
        behind_rationale: The nodes with the token that ends the rationale, by the text up to them; empty without
            rationales.
        actions: The action of each last node; texts are empty.
    """

    def __init__(self, tokenizer: Any, actions: Iterable[Action], *, rationales: bool) -> None:
        super().__init__()
        self.tokenizer, self.rationales = tokenizer, rationales
        self.before_text: set[int] = set()
        self.behind_rationale: dict[str, int] = {}
        self.actions: dict[int, Action] = {}
        for action in dict.fromkeys(map(_without_text, actions)):
            variants = [action, _without_text(action, "a")]  # they differ from the first token of the text on
            replies = reply_tokens(tokenizer, [format_reply("", variant) for variant in variants])
            path = [token for token, _ in takewhile(lambda pair: pair[0] == pair[1], zip(*replies, strict=False))]
            *_, node = self.add(path)
            self.actions[node] = action
            if len(path) < len(replies[0]):
                self.before_text.add(node)
            if rationales:
                end = count_rationale_tokens(tokenizer, replies[0])
                self.behind_rationale[tokenizer.decode(path[:end])] = self.add(path[:end])[-1]

    def allowed(self, reply: Sequence[int]) -> list[Allowed]:
        """Returns the tokens that may stand at each place of a reply, which may have a rationale and a text.

        From a token on that no reply of the trie has, all are free.
        """
        free = count_rationale_tokens(self.tokenizer, reply) if self.rationales else 0
        guide = Guide(self, reply[:free])
        allowed: list[Allowed] = [None] * free
        for token in reply[free:]:
            tokens = guide.allowed
            allowed.append(tokens if tokens is None or token in tokens else None)
            guide.append(token)
        return allowed

    def fork(self, reply: Sequence[int]) -> tuple[int, int]:
        """Returns the number of a reply's tokens before the first at which actions may part, and the node there.

        If the tokens of its rationale end otherwise than those of an empty one, they are those of an empty one.
        """
        count = count_rationale_tokens(self.tokenizer, reply)
        node = Guide(self, reply[:count]).node if self.rationales else None
        if node is None:
            return 0, 0
        before = self.parents[node]  # in some tokenizers the token that ends the rationale names the type of action
        return (count - 1, before) if len(self.children[before]) > 1 else (count, node)

    def path(self, root: int, leaf: int) -> list[tuple[int, int]] | None:
        """Returns (node, token behind it) from a node to one of `actions`; None if there is no path."""
        path = []
        while leaf != root:
            if leaf == 0:
                return None
            path.append((self.parents[leaf], self.tokens[leaf]))
            leaf = self.parents[leaf]
        return path[::-1]

    def find_text(self, root: int, reply: Sequence[int]) -> tuple[int | None, int]:
        """Returns the node before a text in the rest of a reply, and the number of tokens up to it; or None."""
        node: int | None = root
        for count, token in enumerate(reply, 1):
            node = None if node is None else self.children[node].get(token)
            if node in self.before_text:
                return node, count
        return None, 0


class Guide:
    """The place of a reply in a trie, token by token.

    Args:
        trie: The trie of the page.
        written: The tokens of the reply so far: none, or at least its rationale.

    Attributes:
        node: The node of the trie; None in a rationale and in a text.
    """

    def __init__(self, trie: ReplyTrie, written: Sequence[int] = ()) -> None:
        self._trie, self._written = trie, list(written)
        self.node: int | None = None if trie.rationales else 0
        self._is_free = trie.rationales
        self._enter()

    @property
    def allowed(self) -> Allowed:
        """The tokens that may follow; all do behind the end of a reply."""
        tokens = [] if self.node is None else list(self._trie.children[self.node])
        return tokens or None

    def append(self, token: int) -> None:
        """Goes on to the next token; behind a text, and behind a token that is not allowed, all is free."""
        if self.node is not None:
            self.node = self._trie.children[self.node].get(token)
            if self.node in self._trie.before_text:
                self.node = None
        elif self._is_free:
            self._written.append(token)
            self._enter()

    def _enter(self) -> None:
        """Enters the trie where the rationale has ended."""
        if self._is_free and self._written:
            text: str = self._trie.tokenizer.decode(self._written)
            if rationale := _RATIONALE.match(text):
                start, end = rationale.span(1)
                self.node, self._is_free = self._trie.behind_rationale.get(text[:start] + text[end:]), False


def count_rationale_tokens(tokenizer: Any, reply: Sequence[int]) -> int:
    """Returns the number of a reply's first tokens up to the one that ends its rationale."""

    def ends(count: int) -> bool:
        return _RATIONALE.match(tokenizer.decode(reply[:count])) is not None

    return min(len(reply), bisect_left(range(len(reply)), True, key=ends))


def _without_text(action: Action, text: str = "") -> Action:
    """Returns the action with another text, and without what a reply does not say."""
    match action:
        case TypeAndSubmit():
            return msgspec.structs.replace(action, text=text)
        case Click():
            return Click(name=action.name)
        case _:
            return action


class CandidateTries:
    """Builds the tries of pages.

    Args:
        tokenizer: The tokenizer.
        prompt: The form of prompts, with the store's words for typing and scrolling.
    """

    def __init__(self, tokenizer: Any, prompt: PromptConfig) -> None:
        self._tokenizer, self._prompt = tokenizer, prompt
        self._list_actions = lru_cache(CACHED_PAGES)(self._actions)
        self._build_trie = lru_cache(CACHED_PAGES)(self._build)

    def of_page(self, page: str, *others: Action) -> ReplyTrie:
        """Returns the trie of the actions on all elements of a page, and of `others`."""
        return self._build_trie(tuple(dict.fromkeys([*self._list_actions(page), *map(_without_text, others)])))

    def _actions(self, page: str) -> list[Action]:
        submitted = self._prompt.typing != "input"
        return [
            Terminate(),
            *(
                Click(name=element.name)
                if element.accepts == "click"
                else TypeAndSubmit(name=element.name, text="", submitted=submitted)
                for element in find_elements(page)
            ),
            *([Scroll()] if self._prompt.scrolls else []),
        ]

    def _build(self, actions: tuple[Action, ...]) -> ReplyTrie:
        return ReplyTrie(self._tokenizer, actions, rationales=self._prompt.rationales)


class StepCandidates:
    """Reads the candidates of a store's steps.

    Args:
        store: The store.
        tries: Builds the tries.
        context: The context that the policy sees.
    """

    def __init__(self, store: SessionStore, tries: CandidateTries, context: ContextConfig) -> None:
        self._store, self._tries = store, tries
        # The elements of a page do not depend on personas and marks, but the part of it within a budget does.
        marks = context.marks and context.budget is not None
        self._context = msgspec.structs.replace(context, persona="none", marks=marks)
        self._observe = lru_cache(8)(self._read)

    def _read(self, session_id: str) -> ObservedSession:
        return ObservedSession(self._store.session(session_id), self._context, None)

    def trie(self, session_id: str, reply: ReplySpan) -> ReplyTrie:
        """Returns the trie of a step's page, with the logged action if no element of the page has it."""
        page = self._observe(session_id).at(reply.step_index)["page"]
        return self._tries.of_page(page, reply.action)


class Choices(NamedTuple):
    """The places of N tokens by what may stand there; at the others a single token may.

    Attributes:
        free: The places at which any token may, (F,).
        restricted: The places at which some tokens may, (K,).
        tokens: These tokens, (K, most), filled up with -1.
    """

    free: Tensor
    restricted: Tensor
    tokens: Tensor

    @classmethod
    def of(cls, allowed: Sequence[Allowed], device: torch.device | str) -> "Choices":
        """Sorts the places."""
        lists = {place: tokens for place, tokens in enumerate(allowed) if tokens is not None and len(tokens) > 1}
        most = max(map(len, lists.values()), default=1)
        padded = [tokens + [-1] * (most - len(tokens)) for tokens in lists.values()]
        free = [place for place, tokens in enumerate(allowed) if tokens is None]
        free_places, restricted, tokens = (
            to_device(torch.tensor(column, dtype=torch.long), device) for column in (free, list(lists), padded)
        )
        return cls(free_places, restricted, tokens.view(-1, most))


def restricted_log_probs(
    hidden: Tensor, output_weight: Tensor, *, targets: Tensor, choices: Choices, temperature: float = 1.0
) -> Tensor:
    """Computes the log-probabilities (N,) of tokens by softmaxes over those that may stand at their places.

    Args:
        hidden: The states that predict the tokens, (N, H).
        output_weight: (V, H).
        targets: The tokens, (N,), each among those that may stand there.
        choices: The N places.
        temperature: Divides the logits.
    """
    # Of the states, so that a pack without choices has a backward pass too, which other processes may wait for.
    log_probs = 0 * hidden[:, 0].to(at_least_float32(hidden.dtype))
    if len(choices.free):
        free = hidden.index_select(0, choices.free), output_weight
        of_free = log_probabilities(*free, targets=targets[choices.free], temperature=temperature)
        log_probs = log_probs.index_copy(0, choices.free, of_free.to(log_probs.dtype))
    if len(choices.restricted):
        of_tokens = choice_log_probs(hidden, output_weight, choices=choices, temperature=temperature)
        columns = (choices.tokens == targets[choices.restricted][:, None]).int().argmax(dim=1)
        log_probs = log_probs.index_copy(0, choices.restricted, of_tokens.gather(1, columns[:, None])[:, 0])
    return log_probs


def choice_log_probs(hidden: Tensor, output_weight: Tensor, *, choices: Choices, temperature: float) -> Tensor:
    """Computes the log-probabilities (K, most) of all tokens that may stand at the restricted places."""
    rows = max(1, LOGITS_BYTES // (4 * choices.tokens.shape[1] * hidden.shape[1]))
    function = partial(_choice_log_probs, temperature=temperature)
    if torch.is_grad_enabled() and len(choices.restricted) > rows:
        function = partial(checkpoint, function, use_reentrant=False)  # gathers the weights again, if they are many
    parts = zip(choices.restricted.split(rows), choices.tokens.split(rows), strict=True)
    return torch.cat([function(hidden.index_select(0, places), output_weight, tokens) for places, tokens in parts])


def _choice_log_probs(states: Tensor, output_weight: Tensor, tokens: Tensor, *, temperature: float) -> Tensor:
    weights = output_weight.index_select(0, tokens.clamp(min=0).flatten()).view(*tokens.shape, -1)
    logits = torch.bmm(weights, states[:, :, None]).squeeze(2)
    logits = logits.to(at_least_float32(logits.dtype)) / temperature
    return logits.masked_fill(tokens < 0, -torch.inf).log_softmax(dim=1)
