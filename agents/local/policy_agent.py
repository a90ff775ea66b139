"""A trained policy as an agent: observation -> chat messages -> tokens -> sampled reply.

make_agent("runs/demo/shop_r1")                      at the temperature it was trained for
make_agent("runs/demo/shop_r1?temperature=0")        greedy

Its probability of each action of a page is for the likelihood metrics (shop_env.metrics.action_likelihood). A policy
writes a rationale before its action, so the probability of an action is the expectation, over rationales r
that the policy itself writes at temperature 1, of the action's share among the page's candidates. Of K draws:

    p(a | page) = (Σ_r π(r, a | page) / Σ_b π(r, b | page) + (1 + M) / candidates) / (K + 1)

The last term counts one more draw that favours nothing (additive smoothing): without it an action that none of a few
rationales leads to would look impossible, and NLL would depend more on K than on the policy. A malformed draw favours
nothing either: the M of them are divided evenly among all candidates, so that the probabilities sum to 1. The
candidates are those of shop_env.candidates and the actions of the draws themselves.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.adapted import SeededAgent
from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.schema import Action
from shop_env.candidates import candidate_actions
from shop_env.observation import Observation
from shop_env.replies import Reply, format_reply, parse_reply
from train.checkpoints import CheckpointInfo, load_checkpoint
from train.config import SamplingConfig
from train.policy import Policy, autocast_dtype
from train.rollouts.engine import draw_uniforms, generate
from train.session_tree import SessionTree, pack
from train.tokens import decode_replies, prompt_tokens, reply_tokens, stop_token

Sources = Sequence[np.random.Generator]


class PolicyAgent(SeededAgent):
    """Samples replies from a checkpoint; prompts that begin one another share one reading of their pages.

    Args:
        path: The checkpoint's folder; None with `policy`.
        temperature: 0 is greedy; None: the checkpoint's own.
        max_new_tokens: None: the checkpoint's own.
        device: Where the model runs; None: a GPU where there is one.
        policy: A model, its tokenizer and its info that are already in memory.
        rationales: How many `probabilities` draws for each page.
    """

    reads_whole_sessions = True  # prompts of one session share what was read of their pages

    def __init__(
        self,
        path: str | None = None,
        *,
        temperature: float | None = None,
        max_new_tokens: int | None = None,
        device: str | None = None,
        policy: tuple[Any, Any, CheckpointInfo] | None = None,
        rationales: int = 16,
    ) -> None:
        model, tokenizer, info = policy or load_checkpoint(str(path), device or usual_device())
        self._policy = Policy(model, autocast=autocast_dtype(info.precision))
        self._rationales = rationales
        self._prepare(tokenizer, info, temperature, max_new_tokens)

    def _prepare(
        self,
        tokenizer: Any,
        info: CheckpointInfo,
        temperature: float | None = None,
        max_new_tokens: int | None = None,
    ) -> None:
        """Sets how prompts are made and replies sampled."""
        self._tokenizer, self.info = tokenizer, info
        self._sampling = SamplingConfig(
            temperature=info.temperature if temperature is None else temperature,
            max_new_tokens=max_new_tokens or info.max_new_tokens,
            end_token=stop_token(tokenizer),
        )

    def act(self, observation: Observation) -> str:
        """The reply to one observation."""
        (reply,) = self.act_batch([observation], seeds=[self._seed])
        if isinstance(reply, Exception):
            raise reply
        return reply

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str | Exception]:
        """A reply to each observation, or AgentFailed where the page is too long."""
        return self._each(self._replies, observations, seeds)

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> list[Mapping[Action, float] | Exception]:
        """The policy's probability of each candidate action of each page."""
        return self._each(self._probabilities, observations, seeds)

    def _replies(
        self, prompts: Sequence[list[int]], observations: Sequence[Observation], sources: Sources
    ) -> list[str]:
        uniforms = draw_uniforms(sources, 1, self._sampling.max_new_tokens)
        replies = generate(self._policy, prompts, self._sampling, uniforms=uniforms)
        return decode_replies(self._tokenizer, [reply.tokens for (reply,) in replies])

    def _probabilities(
        self, prompts: Sequence[list[int]], observations: Sequence[Observation], sources: Sources
    ) -> list[dict[Action, float]]:
        uniforms = draw_uniforms(sources, self._rationales, self._sampling.max_new_tokens)
        return action_probabilities(self._policy, self._tokenizer, prompts, observations, uniforms)

    def _each(
        self, answer: Callable[..., list[Any]], observations: Sequence[Observation], seeds: Sequence[int | None]
    ) -> list[Any]:
        """The results for the observations that fit; AgentFailed in place of the others."""
        results: list[Any] = [self._prompt(observation) for observation in observations]
        fitting = [index for index, prompt in enumerate(results) if not isinstance(prompt, AgentFailed)]
        answers = answer(
            [results[index] for index in fitting],
            [observations[index] for index in fitting],
            [np.random.default_rng(seeds[index]) for index in fitting],
        )
        for index, result in zip(fitting, answers, strict=True):
            results[index] = result
        return results

    def _prompt(self, observation: Observation) -> list[int] | AgentFailed:
        """The prompt's tokens; where they are too many, without the earliest pages (Customer-R1, section 4)."""
        limit = self.info.max_tokens - self._sampling.max_new_tokens
        tokens = prompt_tokens(self._tokenizer, observation, self.info.prompt, limit)
        if len(tokens) <= limit:
            return tokens
        return AgentFailed(
            f"the page alone needs {len(tokens)} tokens, but the checkpoint takes {limit} besides the reply."
        )


def usual_device() -> str:
    """A GPU where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def action_probabilities(
    policy: Policy,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    observations: Sequence[Observation],
    uniforms: Tensor,
) -> list[dict[Action, float]]:
    """The probability of each candidate on each page.

    Args:
        prompts: The tokens of each observation's prompt.
        uniforms: What the rationales are drawn by (train.rollouts.engine.draw_uniforms), as many for each page as
            its second dimension says (more cost time and lower the variance), of at most as many tokens as the third.
    """
    _, rationales, max_new_tokens = uniforms.shape
    sampling = SamplingConfig(
        temperature=1.0, max_new_tokens=max_new_tokens, end_token=stop_token(tokenizer), num_generations=rationales
    )
    probabilities = []
    replies_of_prompts = generate(policy, prompts, sampling, uniforms=uniforms)
    for prompt, observation, drawn in zip(prompts, observations, replies_of_prompts, strict=True):
        replies = [parse_reply(text) for text in decode_replies(tokenizer, [reply.tokens for reply in drawn])]
        readable = [reply for reply in replies if isinstance(reply, Reply)]
        candidates = list(dict.fromkeys([*candidate_actions(observation), *(reply.action for reply in readable)]))
        counts = Counter(reply.rationale for reply in readable)
        shares = _shares(policy, tokenizer, prompt, list(counts), candidates)
        for_none = 1 + rationales - len(readable)
        votes = torch.tensor(list(counts.values()), dtype=torch.float64) @ shares + for_none / len(candidates)
        probabilities.append(dict(zip(candidates, (votes / (rationales + 1)).tolist(), strict=True)))
    return probabilities


@torch.no_grad()
def _shares(
    policy: Policy, tokenizer: Any, prompt: Sequence[int], rationales: Sequence[str], candidates: Sequence[Action]
) -> Tensor:
    """(rationales, candidates): each candidate's share behind each rationale; rows sum to 1."""
    if not rationales:
        return torch.zeros(0, len(candidates), dtype=torch.float64)
    texts = [format_reply(rationale, action) for rationale in rationales for action in candidates]
    replies = reply_tokens(tokenizer, texts)
    groups = [replies[start : start + len(candidates)] for start in range(0, len(replies), len(candidates))]
    packed = pack([SessionTree(prompt, [len(prompt)] * len(groups), groups)]).to(policy.device)
    log_probs = policy.log_probs(packed)
    # The rationale's own tokens are the same in a whole row and cancel out of its shares.
    totals = [part.sum() for part in log_probs.double().split(packed.reply_lengths)]
    return torch.stack(totals).cpu().view(len(groups), len(candidates)).softmax(dim=1)
