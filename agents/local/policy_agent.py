"""A trained policy as an agent: observation -> chat messages -> tokens -> sampled reply.

make_agent("runs/demo/shop_r1")                      at the temperature it was trained for
make_agent("runs/demo/shop_r1?temperature=0")        greedy
make_agent("runs/demo/shop_r1?decode=most_probable_action&rationales=8")

Greedy decoding takes the likeliest token each time, and so may choose "click", which sums over a page's elements, where
terminating is the likeliest single action. `decode` chooses among whole actions:

    tokens                  replies are sampled token by token
    most_probable_action    the action with the greatest probability, of equal ones the first

Its probability of each action of a page is for the likelihood metrics (shop_env.metrics.likelihood). A policy
writes a rationale before its action, so the probability of an action is the expectation, over rationales r
that the policy itself writes at temperature 1, of the action's share among the page's candidates. Of K draws:

    p(a | page) = (Σ_r π(r, a | page) / Σ_b π(r, b | page) + (1 + M) / candidates) / (K + 1)

The last term counts one more draw that favours nothing (additive smoothing): without it an action that none of a few
rationales leads to would look impossible, and NLL would depend more on K than on the policy. A malformed draw favours
nothing either: the M of them are divided evenly among all candidates, so that the probabilities sum to 1. Decoding
leaves out both, and takes the action after an empty rationale where no draw is readable. The candidates are those of
shop_env.candidates and the actions of the draws themselves; a typed text that no draw proposes has no probability.

With `rationales=0` the probability is the action's share after an empty rationale, for policies that write none:
nothing is sampled, and the greedy reply proposes what is typed. Where a page takes no text, decoding finds by itself
whether the policy writes an empty rationale there, and then draws none: it counts as K draws of the empty one.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch

from agents.adapted import SeededAgent
from agents.local.weighed_actions import WeighedActions, stratified_uniforms, weigh_actions, weigh_without_draws
from replay_sessions.foundation.errors import BadConfig, DeviceFailed, PromptTooLong, check_choice, first_line
from replay_sessions.schema import Action
from shop_env.evaluation.generate import Seeds
from shop_env.evaluation.protocol import PromptCut
from shop_env.observation import Observation
from train.checkpoints import CheckpointInfo, load_checkpoint
from train.config import SamplingConfig
from train.policy import Policy, autocast_dtype
from train.rollouts.engine import generate
from train.rollouts.sampling import draw_uniforms
from train.tokens import decode_replies, fit_prompt, stop_token

logger = logging.getLogger(__name__)

Decode = Literal["tokens", "most_probable_action"]


class PolicyAgent(SeededAgent):
    """Samples replies from a checkpoint; prompts that begin one another share one reading of their pages.

    Args:
        path: The checkpoint's folder; None with `policy`.
        temperature: 0 is greedy; None: the checkpoint's own.
        max_new_tokens: None: the checkpoint's own.
        device: The device of the model; None: a GPU where there is one.
        policy: A model, its tokenizer and its info that are already in memory.
        decode: The choice of a reply (above).
        rationales: The number of draws that probabilities of actions are means of, in `decode` too; 0: none.
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
        decode: Decode = "tokens",
        rationales: int = 16,
    ) -> None:
        model, tokenizer, info = policy or load_checkpoint(str(path), device or usual_device())
        self._policy = Policy(model, autocast=autocast_dtype(info.precision))
        self._tokenizer, self.info = tokenizer, info
        self._sampling = SamplingConfig(
            temperature=info.temperature if temperature is None else temperature,
            max_new_tokens=max_new_tokens or info.max_new_tokens,
            end_token=stop_token(tokenizer),
        )
        _check_decoding(decode, temperature, rationales)
        self._decode, self._rationales = decode, rationales
        self._cuts: dict[int, PromptCut] = {}  # of the observations of the last call, by their identity
        self._weighed: tuple[Sequence[Observation], Seeds, list[WeighedActions]] = ([], [], [])  # for the last replies

    def act(self, observation: Observation) -> str:
        """Returns the reply to one observation."""
        (reply,) = self.act_batch([observation], seeds=[self._seed])
        if isinstance(reply, Exception):
            raise reply
        return reply

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str | Exception]:
        """Returns a reply to each observation, or PromptTooLong."""
        self._cuts = {}
        return self._each(self._replies, observations, seeds)

    def prompt_cuts(self, observations: Sequence[Observation]) -> list[PromptCut | None]:
        """Returns what the last replies to these observations did not read."""
        return [self._cuts.get(id(observation)) for observation in observations]

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> list[Mapping[Action, float] | Exception]:
        """Computes the policy's probability of each candidate action of each page."""
        return self._each(self._probabilities, observations, seeds)

    def _replies(self, prompts: Sequence[list[int]], observations: Sequence[Observation], seeds: Seeds) -> list[str]:
        sources = list(map(np.random.default_rng, seeds))
        if self._decode == "tokens":
            uniforms = draw_uniforms(sources, 1, self._sampling.max_new_tokens)
            replies = generate(self._policy, prompts, self._sampling, uniforms=uniforms)
            return decode_replies(self._tokenizer, [reply.tokens for (reply,) in replies])
        pages = self._weigh(prompts, observations, sources)
        self._weighed = (observations, seeds, pages)
        return [page.reply() for page in pages]

    def _probabilities(
        self, prompts: Sequence[list[int]], observations: Sequence[Observation], seeds: Seeds
    ) -> list[dict[Action, float]]:
        *weighed, pages = self._weighed  # an evaluation wants them right after the replies, which follow from the same
        if [observations, seeds] != weighed:
            pages = self._weigh(prompts, observations, list(map(np.random.default_rng, seeds)))
        return [page.probabilities(self._rationales) for page in pages]

    def _weigh(
        self, prompts: Sequence[list[int]], observations: Sequence[Observation], sources: Sequence[np.random.Generator]
    ) -> list[WeighedActions]:
        pages: dict[int, WeighedActions] = {}
        submitted = self.info.prompt.typing != "input"
        if self._decode != "tokens":
            pages = weigh_without_draws(
                self._policy, self._tokenizer, prompts, observations, self._rationales, submitted=submitted
            )
        draw = draw_uniforms if self._decode == "tokens" else stratified_uniforms
        rest = [index for index in range(len(prompts)) if index not in pages]
        drawn = weigh_actions(
            self._policy,
            self._tokenizer,
            [prompts[index] for index in rest],
            [observations[index] for index in rest],
            draw([sources[index] for index in rest], self._rationales, self._sampling.max_new_tokens),
            submitted=submitted,
        )
        pages |= zip(rest, drawn, strict=True)
        return [pages[index] for index in range(len(prompts))]

    def _each(self, answer: Callable[..., list[Any]], observations: Sequence[Observation], seeds: Seeds) -> list[Any]:
        """Computes the results for the observations that fit; PromptTooLong stands in place of the others.

        Where the device has too little memory for all of them, half of them at a time: a step's seed is its own.

        Raises:
            DeviceFailed: It has too little for one, or failed otherwise.
        """
        try:
            return self._all(answer, observations, seeds)
        except RuntimeError as error:
            is_out_of_memory = isinstance(error, torch.OutOfMemoryError)
            if not (is_out_of_memory or _is_of_device(error)):
                raise
            reason = first_line(error)
        if is_out_of_memory and (half := len(observations) // 2):  # outside of `except`, whose error holds tensors
            torch.cuda.empty_cache()
            logger.warning("out of memory with %d steps at once; half as many are read now", len(observations))
            parts = (slice(half), slice(half, None))
            return [each for part in parts for each in self._each(answer, observations[part], seeds[part])]
        raise DeviceFailed(
            f"{self._policy.device} failed while a policy was evaluated: {reason}. What was finished is kept: free "
            "memory on the device and go on, or train with a lower model.max_tokens or model.max_new_tokens."
        )

    def _all(self, answer: Callable[..., list[Any]], observations: Sequence[Observation], seeds: Seeds) -> list[Any]:
        """Does the same for all at once."""
        results: list[Any] = [self._prompt(observation) for observation in observations]
        fitting = [index for index, prompt in enumerate(results) if not isinstance(prompt, PromptTooLong)]
        answers = answer(
            [results[index] for index in fitting],
            [observations[index] for index in fitting],
            [seeds[index] for index in fitting],
        )
        for index, result in zip(fitting, answers, strict=True):
            results[index] = result
        return results

    def _prompt(self, observation: Observation) -> list[int] | PromptTooLong:
        """Returns the tokens of the prompt that fits, as training would show it.

        A policy that was trained without personas or goals is shown none.
        """
        trained_with, seen = self.info.context, observation
        if trained_with.persona == "none":
            seen = {**seen, "persona": ""}
        if trained_with.goal == "hidden":
            seen = {**seen, "goal": ""}
        limit = self.info.max_tokens - self._sampling.max_new_tokens
        fitted = fit_prompt(self._tokenizer, seen, self.info.prompt, limit, self.info.long_pages, trained_with)
        if fitted is None:
            return PromptTooLong(
                f"the page alone takes more than the {limit} tokens that the checkpoint reads besides the reply "
                f"(long_pages = {self.info.long_pages})."
            )
        self._cuts[id(observation)] = PromptCut(fitted.page_cut, fitted.pages_left_out)
        return fitted.tokens


def _is_of_device(error: RuntimeError) -> bool:
    """Returns true if CUDA, or the CPU's allocator, failed."""
    return type(error).__name__ == "AcceleratorError" or any(
        word in str(error)
        for word in ("CUDA error", "CUDA out of memory", "CUBLAS_", "CUDNN_", "can't allocate memory")
    )


def usual_device() -> str:
    """Returns the name of a GPU where there is one, else of the CPU."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def _check_decoding(decode: str, temperature: float | None, rationales: int) -> None:
    """Raises BadConfig where the options do not go together."""
    check_choice("decode", decode, Decode)
    if type(rationales) is not int or rationales < 0:
        raise BadConfig(f"rationales is {rationales!r}; it must be a whole number, 0 for an empty rationale.")
    if decode == "most_probable_action" and temperature:
        raise BadConfig(
            f"temperature is {temperature} with decode=most_probable_action, which draws no action: leave it out."
        )
