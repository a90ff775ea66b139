"""What a policy makes of a page's candidate actions: the part of policy_agent.py that weighs whole actions.

    prompts ─► draws of the policy ─► rationales, and what they propose ─► candidates
            ─► one packed pass for each page: every candidate after every rationale ─► WeighedActions
            ─► probabilities (smoothed, for the likelihood metrics), or a reply with the action that is chosen

The formulas stand at the head of policy_agent.py.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.adapted import choose
from replay_sessions.elements import find_elements
from replay_sessions.schema import Action
from shop_env.candidates import candidate_actions
from shop_env.observation import Observation
from shop_env.replies import Reply, format_reply, parse_reply
from train.config import SamplingConfig
from train.policy import Policy
from train.rollouts.engine import draw_uniforms, generate
from train.sampler import split_batches
from train.session_tree import SessionTree, pack
from train.tokens import decode_replies, reply_tokens, stop_token

PASS_TOKENS = 4096  # in one pass, or one page
MOST_CANDIDATES = 64  # of a page, beside what a policy proposes


@dataclass(frozen=True)
class WeighedActions:
    """A page's candidate actions, and what the policy makes of them after each rationale that it drew.

    Attributes:
        counts: How often each rationale was drawn; only the empty one, and it 0 times, where no draw is readable.
        shares: (rationales, candidates): each candidate's share behind each rationale; rows sum to 1.
    """

    candidates: list[Action]
    counts: dict[str, int]
    shares: Tensor

    def probabilities(self, draws: int) -> dict[Action, float]:
        """The probability of each candidate, with the smoothing of the module's head."""
        for_none = 1 + draws - sum(self.counts.values())
        votes = self._votes(list(self.counts.values())) + for_none / len(self.candidates)
        return dict(zip(self.candidates, (votes / (draws + 1)).tolist(), strict=True))

    def reply(self, temperature: float, source: np.random.Generator) -> str:
        """The action that is chosen without smoothing, behind the rationale after which its share is the highest."""
        counts = list(self.counts.values()) if any(self.counts.values()) else [1]
        action = choose(self._votes(counts).numpy() / sum(counts), temperature, source)
        rationale = list(self.counts)[int(self.shares[:, action].numpy().argmax())]
        return format_reply(rationale, self.candidates[action])

    def _votes(self, counts: Sequence[int]) -> Tensor:
        return torch.tensor(counts, dtype=torch.float64) @ self.shares


def weigh_without_draws(
    policy: Policy,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    observations: Sequence[Observation],
    least: float,
) -> dict[int, WeighedActions]:
    """The pages to which draws would add nothing, by index: all that can be done there is among the candidates.

    Args:
        least: How probable an empty rationale must be.
    """
    listed = {}
    for index, observation in enumerate(observations):
        candidates = candidate_actions(observation, MOST_CANDIDATES)
        accepts_text = any(element.accepts == "type" for element in find_elements(observation["page"]))
        # A policy that reads rationales writes them: a pass to find that out would be for nothing.
        writes = least > 0 and any(past["rationale"] for past in observation["history"])
        if len(candidates) < MOST_CANDIDATES and not accepts_text and not writes:
            listed[index] = candidates
    pages = [(prompts[index], ("",), candidates) for index, candidates in listed.items()]
    return {
        index: WeighedActions(candidates, {"": 1}, shares)
        for (index, candidates), (shares, (empty,)) in zip(
            listed.items(), compute_shares(policy, tokenizer, pages), strict=True
        )
        if empty >= least
    }


def weigh_actions(
    policy: Policy,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    observations: Sequence[Observation],
    uniforms: Tensor,
) -> list[WeighedActions]:
    """What the policy makes of each page's candidates.

    Args:
        prompts: The tokens of each observation's prompt.
        uniforms: What the rationales are drawn by (train.rollouts.engine.draw_uniforms), as many for each page as
            its second dimension says (more cost time and lower the variance; 0: an empty rationale), of at most as many
            tokens as the third.
    """
    _, rationales, max_new_tokens = uniforms.shape
    sampling = SamplingConfig(
        temperature=1.0 if rationales else 0.0,
        max_new_tokens=max_new_tokens,
        end_token=stop_token(tokenizer),
        num_generations=rationales or 1,
    )
    listed = []
    replies_of_prompts = generate(policy, prompts, sampling, uniforms=uniforms if rationales else None)
    for observation, drawn in zip(observations, replies_of_prompts, strict=True):
        replies = [parse_reply(text) for text in decode_replies(tokenizer, [reply.tokens for reply in drawn])]
        readable = [reply for reply in replies if isinstance(reply, Reply)]
        offered = candidate_actions(observation, MOST_CANDIDATES)
        candidates = list(dict.fromkeys([*offered, *(reply.action for reply in readable)]))
        counts = Counter(reply.rationale for reply in readable) or {"": 0}
        if not rationales:
            counts = {"": 1}
        listed.append((candidates, counts))
    pages = [(prompt, counts, candidates) for prompt, (candidates, counts) in zip(prompts, listed, strict=True)]
    computed = compute_shares(policy, tokenizer, pages)
    return [WeighedActions(*page, shares) for page, (shares, _) in zip(listed, computed, strict=True)]


@torch.no_grad()
def compute_shares(
    policy: Policy, tokenizer: Any, pages: Iterable[tuple[Sequence[int], Iterable[str], Sequence[Action]]]
) -> Iterator[tuple[Tensor, list[float]]]:
    """Of each page (prompt, rationales, candidates): each candidate's share behind each rationale, and the rationales'.

    Shares are (rationales, candidates), and rows sum to 1. The replies with one rationale begin alike: that stem is
    passed once, before what follows it in each reply. The candidates of several pages are passed together.
    """
    trees = (_tree(tokenizer, *page) for page in pages)
    for batch in split_batches(trees, lambda _, tree: (_count_tokens(tree),), PASS_TOKENS):
        packed = pack(batch)
        for span, tree in zip(packed.spans, batch, strict=True):
            for group, (stem, *_) in zip(span.groups, tree.replies, strict=True):
                packed.position_ids[0, group.start + len(stem) : group.end] += len(stem)
                group.own[len(stem) :, : len(stem)] = True
                sources = packed.predicted_from[group.targets][len(stem) :]
                sources[sources == span.end - 1] = group.start + len(stem) - 1
        log_probs = policy.log_probs(packed.to(policy.device)).double().cpu()
        totals = torch.stack([part.sum() for part in log_probs.split(packed.reply_lengths)])
        for of_page, tree in zip(totals.split([sum(map(len, tree.replies)) for tree in batch]), batch, strict=True):
            table = of_page.view(len(tree.replies), -1)
            yield table[:, 1:].softmax(dim=1), table[:, 0].exp().tolist()


def _tree(
    tokenizer: Any, prompt: Sequence[int], rationales: Iterable[str], candidates: Sequence[Action]
) -> SessionTree:
    """A prompt, and behind it for each rationale the stem, then what follows it in each candidate's reply."""
    groups = []
    for rationale in rationales:
        replies = reply_tokens(tokenizer, [format_reply(rationale, action) for action in candidates])
        stem = _common_start([reply[:-1] for reply in replies])
        groups.append([stem, *(reply[len(stem) :] for reply in replies)])
    return SessionTree(prompt, [len(prompt)] * len(groups), groups)


def _count_tokens(tree: SessionTree) -> int:
    return len(tree.trunk) + sum(len(reply) for replies in tree.replies for reply in replies)


def _common_start(replies: Sequence[Sequence[int]]) -> list[int]:
    """The tokens with which all of them begin."""
    return [tokens[0] for tokens in takewhile(lambda tokens: len(set(tokens)) == 1, zip(*replies, strict=False))]


def stratified_uniforms(sources: Sequence[np.random.Generator], draws: int, max_new_tokens: int) -> Tensor:
    """As `draw_uniforms`, but at each token one of a page's draws falls into each of as many equal parts of [0, 1).

    Each draw by itself is as it would be, and what is rare comes as often in all of them as it should (Latin hypercube
    sampling, McKay, Beckman and Conover 1979).
    """
    uniforms = draw_uniforms(sources, draws, max_new_tokens)
    for of_page, source in zip(uniforms, sources, strict=True):
        parts = np.arange(draws)[:, None].repeat(max_new_tokens, axis=1)
        of_page += torch.from_numpy(source.permuted(parts, axis=0))
    return (uniforms / draws).clamp(max=1 - 2**-24) if draws else uniforms  # float32 would round up to 1
