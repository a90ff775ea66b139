"""A trained policy as an agent: observation -> chat messages -> tokens -> sampled reply.

make_agent("runs/demo/shop_r1")                      at the temperature it was trained for
make_agent("runs/demo/shop_r1?temperature=0")        greedy
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from agents.llm_grpo.likelihood import action_probabilities
from replay_sessions.errors import AgentFailed
from replay_sessions.schema import Action
from shop_env.observation import History, Observation
from shop_env.prompts import render_prompt
from train.checkpoints import CheckpointInfo, load_checkpoint
from train.rollout_engines.local import SamplingConfig, generate
from train.tokens import decode_replies, prompt_tokens

__all__ = ["PolicyAgent"]


class PolicyAgent:
    """Samples replies from a checkpoint; prompts that begin one another share one reading of their pages.

    Args:
        path: The checkpoint's folder; None with `policy` given.
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
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._model, self._tokenizer, self.info = policy or load_checkpoint(str(path), device)
        self._sampling = SamplingConfig(
            temperature=self.info.temperature if temperature is None else temperature,
            max_new_tokens=max_new_tokens or self.info.max_new_tokens,
            end_token=self._tokenizer.eos_token_id,
        )
        self._generator = torch.Generator(self._model.device)
        self._rationales = rationales

    def reset(self, *, seed: int | None = None) -> None:
        """Seeds the sampling."""
        if seed is None:
            self._generator.seed()
        else:
            self._generator.manual_seed(seed)

    def act(self, observation: Observation) -> str:
        """The reply to one observation."""
        return self.act_batch([observation])[0]

    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        """One reply per observation."""
        prompts = [self._prompt(observation) for observation in observations]
        replies = generate(self._model, prompts, self._sampling, self._generator)
        return decode_replies(self._tokenizer, [reply for (reply,) in replies])

    def probabilities(self, observations: Sequence[Observation]) -> list[Mapping[Action, float]]:
        """The policy's probability of each candidate action of each page (agents/llm_grpo/likelihood.py)."""
        return [
            *action_probabilities(
                self._model,
                self._tokenizer,
                [self._prompt(observation) for observation in observations],
                observations,
                rationales=self._rationales,
                max_new_tokens=self._sampling.max_new_tokens,
                generator=self._generator,
            )
        ]

    def _prompt(self, observation: Observation) -> list[int]:
        """The prompt's tokens; where they are too many, without the earliest pages (Customer-R1, section 4)."""
        limit = self.info.max_tokens - self._sampling.max_new_tokens
        tokens = prompt_tokens(self._tokenizer, render_prompt(observation, self.info.prompt))
        history = list(observation["history"])
        for index, past in enumerate(history):
            if len(tokens) <= limit:
                return tokens
            if past["page"]:
                history[index] = {**past, "page": ""}
                shortened: Observation = {**observation, "history": History(history)}
                tokens = prompt_tokens(self._tokenizer, render_prompt(shortened, self.info.prompt))
        if len(tokens) > limit:
            raise AgentFailed(
                f"the page alone needs {len(tokens)} tokens, but the checkpoint takes {limit} besides the reply."
            )
        return tokens
