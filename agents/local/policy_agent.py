"""A trained policy as an agent: observation -> chat messages -> tokens -> sampled reply.

make_agent("runs/demo/shop_r1")                      at the temperature it was trained for
make_agent("runs/demo/shop_r1?temperature=0")        greedy
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from agents.local.action_probabilities import action_probabilities
from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.schema import Action
from shop_env.observation import Observation
from train.checkpoints import CheckpointInfo, load_checkpoint
from train.policy import Policy, autocast_dtype
from train.rollouts.config import SamplingConfig
from train.rollouts.local import draw_uniforms, generate
from train.tokens import decode_replies, prompt_tokens, stop_token


class PolicyAgent:
    """Samples replies from a checkpoint; prompts that begin one another share one reading of their pages.

    Args:
        path: The checkpoint's folder; None with `policy`.
        temperature: 0 is greedy; None: the checkpoint's own.
        max_new_tokens: None: the checkpoint's own.
        device: Where the model runs; None: a GPU where there is one.
        policy: A model, its tokenizer and its info that are already in memory.
        rationales: How many `probabilities` draws for each page.
    """

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
        model, self._tokenizer, self.info = policy or load_checkpoint(str(path), device or usual_device())
        self._policy = Policy(model, autocast=autocast_dtype(self.info.precision))
        self._sampling = SamplingConfig(
            temperature=self.info.temperature if temperature is None else temperature,
            max_new_tokens=max_new_tokens or self.info.max_new_tokens,
            end_token=stop_token(self._tokenizer),
        )
        self._random = np.random.default_rng()
        self._rationales = rationales

    def reset(self, *, seed: int | None = None) -> None:
        """Seeds the sampling."""
        self._random = np.random.default_rng(seed)

    def act(self, observation: Observation) -> str:
        """The reply to one observation."""
        (reply,) = self._replies([self._prompt(observation)], [observation], [self._random])
        return reply

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str | Exception]:
        """A reply to each observation, or AgentFailed where the page is too long."""
        return self._each(self._replies, observations, seeds)

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> list[Mapping[Action, float] | Exception]:
        """The policy's probability of each candidate action of each page (agents/local/action_probabilities.py)."""
        return self._each(self._probabilities, observations, seeds)

    def _replies(
        self, prompts: Sequence[list[int]], observations: Sequence[Observation], sources: Sequence[np.random.Generator]
    ) -> list[str]:
        uniforms = draw_uniforms(sources, 1, self._sampling.max_new_tokens)
        replies = generate(self._policy, prompts, self._sampling, uniforms=uniforms)
        return decode_replies(self._tokenizer, [reply.tokens for (reply,) in replies])

    def _probabilities(
        self, prompts: Sequence[list[int]], observations: Sequence[Observation], sources: Sequence[np.random.Generator]
    ) -> list[dict[Action, float]]:
        limit = self._sampling.max_new_tokens
        return action_probabilities(
            self._policy,
            self._tokenizer,
            prompts,
            observations,
            max_new_tokens=limit,
            uniforms=draw_uniforms(sources, self._rationales, limit),
        )

    def _each(
        self, answer: Callable[..., list[Any]], observations: Sequence[Observation], seeds: Sequence[int | None]
    ) -> list[Any]:
        """The results for the observations that fit; AgentFailed in place of the others."""
        results: list[Any] = [self._prompt_or_failure(observation) for observation in observations]
        fitting = [index for index, prompt in enumerate(results) if not isinstance(prompt, AgentFailed)]
        answers = answer(
            [results[index] for index in fitting],
            [observations[index] for index in fitting],
            [np.random.default_rng(seeds[index]) for index in fitting],
        )
        for index, result in zip(fitting, answers, strict=True):
            results[index] = result
        return results

    def _prompt_or_failure(self, observation: Observation) -> list[int] | AgentFailed:
        try:
            return self._prompt(observation)
        except AgentFailed as failure:
            return failure

    def _prompt(self, observation: Observation) -> list[int]:
        """The prompt's tokens; where they are too many, without the earliest pages (Customer-R1, section 4)."""
        limit = self.info.max_tokens - self._sampling.max_new_tokens
        tokens = prompt_tokens(self._tokenizer, observation, self.info.prompt, limit)
        if len(tokens) > limit:
            raise AgentFailed(
                f"the page alone needs {len(tokens)} tokens, but the checkpoint takes {limit} besides the reply."
            )
        return tokens


def usual_device() -> str:
    """A GPU where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"
