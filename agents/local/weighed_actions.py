"""Computes a policy's probabilities of a page's candidate actions.

    prompts ─► draws of the policy ─► rationales and their actions ─► candidates
            ─► one packed pass for each page: every candidate after every rationale ─► WeighedActions
            ─► probabilities (smoothed, for the likelihood metrics), or a reply with the most probable action

policy_agent.py uses this, and its docstring explains the formulas.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from replay_sessions.elements import find_elements
from replay_sessions.schema import Action
from shop_env.candidates import MAX_CANDIDATES, candidate_actions
from shop_env.observation import Observation
from shop_env.prompts import PromptConfig
from shop_env.replies import Extraction, Reply, format_reply, parse_reply
from train.candidates import Allowed, Choices, ReplyTrie, TokenTrie, restricted_log_probs
from train.chat_template import stop_token
from train.config import SamplingConfig
from train.policy import Policy
from train.rollouts.engine import generate
from train.rollouts.sampling import draw_uniforms
from train.sampler import split_batches
from train.session_tree import SessionTree, pack
from train.tokens import decode_replies, reply_tokens

# The prompt, rationales, candidates, and for a restricted policy the replies that it chooses among.
PageToWeigh = tuple[Sequence[int], Collection[str], Sequence[Action], ReplyTrie | None]
PASS_TOKENS = 4096  # the most tokens of a pass, unless a single page has more
_DEFAULT_PROMPT = PromptConfig()
NO_RATIONALE = 0.95  # the least probability of all replies without a rationale from which on none is drawn


@dataclass(frozen=True)
class WeighedActions:
    """A page's candidate actions, and their shares after each drawn rationale.

    Attributes:
        counts: The number of draws of each rationale; {"": 0} if no draw is readable.
        shares: Each candidate's share after each rationale, (rationales, candidates); rows sum to 1.
        total: The probability of all replies with the first rationale and a candidate; other replies have the rest.
    """

    candidates: list[Action]
    counts: dict[str, int]
    shares: Tensor
    total: float = 1.0

    def probabilities(self, draws: int) -> dict[Action, float]:
        """Computes the smoothed probability of each candidate (policy_agent.py).

        Args:
            draws: The number of draws K, malformed ones included.
        """
        for_none = 1 + draws - sum(self.counts.values())
        votes = self._votes(list(self.counts.values())) + for_none / len(self.candidates)
        return dict(zip(self.candidates, (votes / (draws + 1)).tolist(), strict=True))

    def reply(self) -> str:
        """Returns the most probable action, without smoothing, after the rationale that gives it the largest share."""
        counts = list(self.counts.values()) if any(self.counts.values()) else [1]
        action = int(self._votes(counts).numpy().argmax())  # of equal ones the first
        rationale = list(self.counts)[int(self.shares[:, action].numpy().argmax())]
        return format_reply(rationale, self.candidates[action])

    def _votes(self, counts: Sequence[int]) -> Tensor:
        return torch.tensor(counts, dtype=torch.float64) @ self.shares


def _offered(observation: Observation, prompt: PromptConfig) -> list[Action]:
    """Lists the page's candidates with the prompt's words for typing and scrolling."""
    submitted, scrolls = prompt.typing != "input", bool(prompt.scrolls)
    return candidate_actions(observation, submitted=submitted, scrolls=scrolls)


def weigh_without_draws(
    policy: Policy,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    observations: Sequence[Observation],
    rationales: int,
    prompt: PromptConfig,
    tries: Sequence[ReplyTrie] = (),
) -> dict[int, WeighedActions]:
    """Computes the shares on the pages that need no draws, by the page's index in `observations`.

    With `rationales`, a page needs none if its candidates are all possible actions and the policy writes an empty
    rationale; without, if the greedy reply is one of the candidates, so that it proposes no other.

    Args:
        rationales: The number of draws that the empty rationale counts as; 0 does not check that the policy writes it.
        prompt: The prompt's config, whose words for typing and scrolling the candidates have.
        tries: For each page, the replies that a restricted policy chooses among; empty for other policies.
    """
    candidates_by_index = {}
    for index, observation in enumerate(observations):
        candidates = _offered(observation, prompt)
        accepts_text = any(element.accepts == "type" for element in find_elements(observation["page"]))
        # A policy that reads rationales writes them, so a pass to check that is not worth its time.
        writes = any(past["rationale"] for past in observation["history"])
        if not rationales or (len(candidates) < MAX_CANDIDATES and not accepts_text and not writes):
            candidates_by_index[index] = candidates
    pages = [
        (prompts[index], ("",), candidates, tries[index] if tries else None)
        for index, candidates in candidates_by_index.items()
    ]
    return {
        index: WeighedActions(candidates, {"": rationales or 1}, shares, empty)
        for (index, candidates), (shares, (empty,), is_complete) in zip(
            candidates_by_index.items(), compute_shares(policy, tokenizer, pages), strict=True
        )
        if (empty >= NO_RATIONALE if rationales else is_complete)
    }


def weigh_actions(
    policy: Policy,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    observations: Sequence[Observation],
    uniforms: Tensor,
    prompt: PromptConfig = _DEFAULT_PROMPT,
    tries: Sequence[ReplyTrie] = (),
) -> list[WeighedActions]:
    """Computes the shares of each page's candidates after rationales that the policy draws.

    Args:
        prompts: The tokens of each observation's prompt.
        uniforms: The random numbers that draw the rationales, (pages, draws, max_new_tokens), as from
            train.rollouts.sampling.draw_uniforms. More draws take more time and lower the variance; 0 draws mean an
            empty rationale.
        prompt: The prompt's config, whose words for typing and scrolling the candidates have.
        tries: As in weigh_without_draws.
    """
    _, rationales, max_new_tokens = uniforms.shape
    sampling = SamplingConfig(
        temperature=1.0 if rationales else 0.0,
        max_new_tokens=max_new_tokens,
        end_token=stop_token(tokenizer),
        num_generations=rationales or 1,
    )
    page_inputs = []
    replies_of_prompts = generate(policy, prompts, sampling, uniforms=uniforms if rationales else None, tries=tries)
    for observation, drawn in zip(observations, replies_of_prompts, strict=True):
        extraction: Extraction = "strict_scroll" if prompt.scrolls else "strict_input"
        replies = [
            parse_reply(text, extraction) for text in decode_replies(tokenizer, [reply.tokens for reply in drawn])
        ]
        readable = [reply for reply in replies if isinstance(reply, Reply)]
        offered = _offered(observation, prompt)
        candidates = list(dict.fromkeys([*offered, *(reply.action for reply in readable)]))
        counts = Counter(reply.rationale for reply in readable) or {"": 0}
        if not rationales:
            counts = {"": 1}
        page_inputs.append((candidates, counts))
    pages = [
        (tokens, counts, candidates, tries[index] if tries else None)
        for index, (tokens, (candidates, counts)) in enumerate(zip(prompts, page_inputs, strict=True))
    ]
    computed = compute_shares(policy, tokenizer, pages)
    return [
        WeighedActions(*page, shares, totals[0])
        for page, (shares, totals, _) in zip(page_inputs, computed, strict=True)
    ]


@torch.no_grad()
def compute_shares(
    policy: Policy, tokenizer: Any, pages: Iterable[PageToWeigh]
) -> Iterator[tuple[Tensor, list[float], bool]]:
    """Yields for each page the candidates' shares, the total probabilities, and whether the greedy reply is listed.

    Shares are (rationales, candidates), and rows sum to 1. The probability of a rationale sums over its replies with
    the candidates. A greedy reply is listed if it is one of these replies. Common beginnings of replies are computed
    once, and so are the pages of a session if its steps come in order.
    """
    runs = _runs(_Trie(tokenizer, page) for page in pages)
    for batch in split_batches(runs, lambda _, run: (_count_tokens(run),), PASS_TOKENS):
        trees = [
            SessionTree(
                run[-1].prompt,
                [len(trie.prompt) for trie in run],
                [trie.branches for trie in run],
                paths=[trie.paths for trie in run],
            )
            for run in batch
        ]
        packed = pack(trees)
        for span, run in zip(packed.spans, batch, strict=True):
            for group, trie in zip(span.groups, run, strict=True):
                packed.position_ids[0, group.start : group.end] += trie.paths.sum(dim=1) - 1
                parents = trie.parents + group.start
                fork = span.start + len(trie.prompt) - 1
                packed.predicted_from[group.targets] = parents.where(trie.parents >= 0, fork)
        tries = [trie for run in batch for trie in run]
        packed = packed.to(policy.device)
        if tries[0].allowed:
            choices = Choices.of([allowed for trie in tries for allowed in trie.allowed], policy.device)
            log_probs = policy.forward_packed(packed, partial(restricted_log_probs, choices=choices))
        else:
            log_probs = policy.log_probs(packed)
        log_probs = log_probs.double().cpu()
        for node_log_probs, trie in zip(log_probs.split([len(trie.parents) for trie in tries]), tries, strict=True):
            table = (trie.paths[trie.ends].double() @ node_log_probs).view(trie.rationales, -1)
            yield table.softmax(dim=1), table.logsumexp(dim=1).exp().tolist(), trie.holds_greedy(node_log_probs.exp())


def _runs(tries: Iterable["_Trie"]) -> Iterator[list["_Trie"]]:
    """Groups successive tries in which each prompt begins with the prompt before."""
    run: list[_Trie] = []
    for trie in tries:
        if run and trie.prompt[: len(run[-1].prompt)] != run[-1].prompt:
            yield run
            run = []
        run.append(trie)
    if run:
        yield run


def _count_tokens(run: Sequence["_Trie"]) -> int:
    return len(run[-1].prompt) + sum(len(trie.parents) for trie in run)


class _Trie:
    """All replies to a page as a tree of tokens, which holds common beginnings once.

    Attributes:
        branches: The token of each of the n nodes, as a reply of one token; a node comes after its parent.
        parents: The parent of each node, (n,); -1 for the nodes after the prompt.
        paths: For each node, True at the nodes from the root to it, (n, n).
        ends: The last node of each reply, rationale by rationale.
        allowed: For each node, the tokens that may stand there; empty if the policy is not restricted.
    """

    def __init__(self, tokenizer: Any, page: PageToWeigh) -> None:
        self.prompt, rationales, candidates, restriction = page
        self.rationales = len(rationales)
        self._trie = trie = TokenTrie()
        self.ends: list[int] = []
        self.allowed: list[Allowed] = []
        for reply in reply_tokens(
            tokenizer, [format_reply(text, action) for text in rationales for action in candidates]
        ):
            self.ends.append(trie.add(reply)[-1] - 1)
            if restriction is not None:
                new = len(trie.tokens) - 1 - len(self.allowed)  # the last ones of the reply
                self.allowed += restriction.allowed(reply)[len(reply) - new :]
        _, *tokens = trie.tokens
        self.branches = [[token] for token in tokens]
        self.parents = torch.tensor(trie.parents[1:]) - 1  # without the root
        paths = np.eye(len(tokens), dtype=bool)
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                paths[node] |= paths[parent]
        self.paths = torch.from_numpy(paths)

    def holds_greedy(self, probabilities: Tensor) -> bool:
        """Returns whether the likeliest token after each node, from the root on, leads to the end of a reply.

        Args:
            probabilities: That of each node's token after its parent, (n,).
        """
        node, children = 0, self._trie.children[0]
        while children:
            shares = {child: float(probabilities[child - 1]) for child in children.values()}
            node = max(shares, key=shares.__getitem__)
            if shares[node] <= 1 - sum(shares.values()):
                return False  # another token may be likelier
            children = self._trie.children[node]
        return True


def stratified_uniforms(sources: Sequence[np.random.Generator], draws: int, max_new_tokens: int) -> Tensor:
    """Draws uniform numbers as `draw_uniforms` does, stratified over the draws of a page, (pages, draws, tokens).

    At each token, [0, 1) is divided into as many parts as the page has draws, and one draw falls into each part (Latin
    hypercube sampling, McKay, Beckman and Conover 1979). Each draw keeps its distribution, and rare replies occur about
    as often as expected.
    """
    uniforms = draw_uniforms(sources, draws, max_new_tokens)
    for page_uniforms, source in zip(uniforms, sources, strict=True):
        strata = np.arange(draws)[:, None].repeat(max_new_tokens, axis=1)
        page_uniforms += torch.from_numpy(source.permuted(strata, axis=0))
    return (uniforms / draws).clamp(max=1 - 2**-24) if draws else uniforms  # float32 would round up to 1
