"""A trained policy as an agent: observation -> chat messages -> tokens -> sampled reply.

make_agent("runs/demo/shop_r1")                      at the temperature it was trained for, or by whole actions
make_agent("runs/demo/shop_r1?temperature=0")        greedy
make_agent("runs/demo/shop_r1?decode=most_probable_action&rationales=8")

Greedy decoding takes the likeliest token at each position. It may choose "click", which sums over a page's elements,
although terminating is the likeliest single action. `decode` selects the way to choose a reply:

    tokens                  samples replies token by token
    most_probable_action    takes the action with the greatest probability; of equal ones the first. This is the default
                            of a policy that writes no rationale, if no temperature is named

The likelihood metrics (shop_env.metrics.likelihood) need the policy's probability of each action of a page. A policy
writes a rationale before its action. So the probability of an action is the expectation, over rationales r that the
policy writes at temperature 1, of the action's share among the page's candidates. With K draws:

    p(a | page) = (Σ_r π(r, a | page) / Σ_b π(r, b | page) + (1 + M) / candidates) / (K + 1)

The last term counts one more draw that favours no action (additive smoothing). Without it, an action that none of a few
rationales leads to would look impossible, and NLL would depend more on K than on the policy. A malformed draw favours
no action either: the M of them are divided evenly among all candidates, so that the probabilities sum to 1. Decoding
leaves out both, and takes the action after an empty rationale if no draw is readable. The candidates are those of
shop_env.candidates and the actions of the draws; a typed text that no draw proposes has no probability.

`rationales=0` is for policies that write no rationale: the probability is the action's share after an empty rationale.
Nothing is sampled, and the greedy reply proposes the text to type. On a page that takes no text, decoding checks
whether the policy writes an empty rationale. If it does, nothing is drawn, and K draws of the empty rationale count.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch

from agents.adapted import SeededAgent
from agents.local.weighed_actions import WeighedActions, stratified_uniforms, weigh_actions, weigh_without_draws
from replay_sessions.foundation.errors import (
    BadConfig,
    DeviceFailed,
    PromptTooLong,
    check_at_least,
    check_choice,
    first_line,
)
from replay_sessions.schema import Action
from shop_env.evaluation.generate import Seeds
from shop_env.evaluation.protocol import PromptCut
from shop_env.marks import remove_marks
from shop_env.observation import Observation, adapt
from train.candidates import CandidateTries, ReplyTrie
from train.chat_template import stop_token
from train.checkpoints import CheckpointInfo, load_checkpoint
from train.config import SamplingConfig
from train.contract import EXAMPLE, check_contract
from train.policy import Policy, autocast_dtype
from train.rollouts.engine import generate
from train.rollouts.sampling import draw_uniforms
from train.tokens import decode_replies, fit_prompt

logger = logging.getLogger(__name__)

Decode = Literal["tokens", "most_probable_action"]


class PolicyAgent(SeededAgent):
    """An agent that samples replies from a checkpoint; prompts of a session share the computation of their pages.

    Args:
        path: The checkpoint's folder; None if `policy` is given.
        temperature: The sampling temperature; 0 is greedy, None means the checkpoint's.
        max_new_tokens: The maximum number of tokens of a reply; None means the checkpoint's.
        device: The device of the model; None means a GPU if the machine has one.
        policy: A model, its tokenizer and its info that are already in memory.
        decode: The way to choose a reply (see the module); None means the default.
        rationales: The number of draws K that the probabilities of actions are averaged over, 0 for none; None means
            16, or 0 for a policy that writes no rationale.
    """

    reads_whole_sessions = True  # prompts of one session share the computation of their pages

    def __init__(
        self,
        path: str | None = None,
        *,
        temperature: float | None = None,
        max_new_tokens: int | None = None,
        device: str | None = None,
        policy: tuple[Any, Any, CheckpointInfo] | None = None,
        decode: Decode | None = None,
        rationales: int | None = None,
    ) -> None:
        model, tokenizer, info = policy or load_checkpoint(str(path), device or usual_device())
        if policy is None:
            check_contract(tokenizer, [EXAMPLE], info.context, info.prompt, long_pages=info.long_pages)
        most_new = info.max_new_tokens if max_new_tokens is None else max_new_tokens
        if not 0 < most_new < info.max_tokens:
            raise BadConfig(
                f"max_new_tokens is {most_new}: expected at least 1, and less than max_tokens ({info.max_tokens})"
            )
        writes_rationales = info.prompt.rationales and info.writes_rationales
        if decode is None:
            decode = "tokens" if writes_rationales or temperature is not None else "most_probable_action"
        if rationales is None:
            rationales = 16 if writes_rationales else 0
        check_choice("decode", decode, Decode)
        check_at_least(0, temperature=temperature)
        if type(rationales) is not int or rationales < 0:
            raise BadConfig(f"rationales is {rationales!r}; it must be a whole number, 0 for an empty rationale.")
        if decode == "most_probable_action" and temperature:
            raise BadConfig(
                f"temperature is {temperature} with decode=most_probable_action, which draws no action: leave it out."
            )
        self._policy = Policy(model, autocast=autocast_dtype(info.precision))
        self._tokenizer, self.info = tokenizer, info
        self._tries = CandidateTries(tokenizer, info.prompt) if info.restricted else None
        self._sampling = SamplingConfig(
            temperature=info.temperature if temperature is None else temperature,
            max_new_tokens=most_new,
            end_token=stop_token(tokenizer),
        )
        self._decode, self._rationales = decode, rationales
        # Of the last call, by the observation's id, and the tokens of texts:
        self._cuts: dict[int, PromptCut] = {}
        self._prompts: dict[int, tuple[Observation, list[int] | PromptTooLong]] = {}
        self._encoded: dict[str, list[int]] = {}
        self._weighed: tuple[Sequence[Observation], Seeds, list[WeighedActions]] = ([], [], [])  # for the last replies
        self._totals: list[float] = []  # of pages without draws

    def act(self, observation: Observation) -> str:
        """Returns the reply to an observation.

        Raises:
            PromptTooLong: The page alone does not fit.
        """
        (reply,) = self.act_batch([observation], seeds=[self._seed])
        if isinstance(reply, Exception):
            raise reply
        return reply

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str | Exception]:
        """Returns a reply to each observation, or PromptTooLong in its place."""
        self._cuts, self._prompts = {}, {}
        return self._each(self._replies, observations, seeds)

    def prompt_cuts(self, observations: Sequence[Observation]) -> list[PromptCut | None]:
        """Returns the parts of pages that were left out of the prompts of the last replies to these observations."""
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
            tries = self._tries_of(observations)
            replies = generate(self._policy, prompts, self._sampling, uniforms=uniforms, tries=tries)
            return decode_replies(self._tokenizer, [reply.tokens for (reply,) in replies])
        pages = self._weigh(prompts, observations, sources)
        self._weighed = (observations, seeds, pages)
        return [page.reply() for page in pages]

    def _probabilities(
        self, prompts: Sequence[list[int]], observations: Sequence[Observation], seeds: Seeds
    ) -> list[dict[Action, float]]:
        *weighed, pages = self._weighed  # an evaluation calls this after the replies, which use the same draws
        if [observations, seeds] != weighed:
            pages = self._weigh(prompts, observations, list(map(np.random.default_rng, seeds)))
        return [page.probabilities(self._rationales) for page in pages]

    def _weigh(
        self, prompts: Sequence[list[int]], observations: Sequence[Observation], sources: Sequence[np.random.Generator]
    ) -> list[WeighedActions]:
        pages: dict[int, WeighedActions] = {}
        if self._decode != "tokens" or not self._rationales:
            pages = weigh_without_draws(
                *(self._policy, self._tokenizer, prompts, observations, self._rationales, self.info.prompt),
                self._tries_of(observations),
            )
        draw = draw_uniforms if self._decode == "tokens" else stratified_uniforms
        remaining = [index for index in range(len(prompts)) if index not in pages]
        drawn = weigh_actions(
            self._policy,
            self._tokenizer,
            [prompts[index] for index in remaining],
            [observations[index] for index in remaining],
            draw([sources[index] for index in remaining], self._rationales, self._sampling.max_new_tokens),
            self.info.prompt,
            self._tries_of([observations[index] for index in remaining]),
        )
        pages |= zip(remaining, drawn, strict=True)
        if not self._rationales:
            self._totals += [page.total for page in pages.values()]
        return [pages[index] for index in range(len(prompts))]

    def _tries_of(self, observations: Sequence[Observation]) -> list[ReplyTrie]:
        """Returns the replies that a restricted policy chooses among on each page; nothing for other policies."""
        return [] if self._tries is None else [self._tries.of_page(each["page"]) for each in observations]

    def remarks(self) -> list[str]:
        """Returns the probability of candidates without draws, which is small if the policy does write rationales."""
        if not self._totals:
            return []
        share = sum(self._totals) / len(self._totals)
        return [
            f"{share:.1%} of the probability is on actions of the page without a rationale, the rest on other replies"
        ]

    def _each(self, answer: Callable[..., list[Any]], observations: Sequence[Observation], seeds: Seeds) -> list[Any]:
        """Computes results for the observations that fit; PromptTooLong stands in place of the others.

        If the device runs out of memory, each half is computed separately, which does not change the results.

        Raises:
            DeviceFailed: The device has too little memory for one observation, or failed otherwise.
        """
        try:
            return self._all(answer, observations, seeds)
        except RuntimeError as error:
            is_out_of_memory = isinstance(error, torch.OutOfMemoryError)
            if not (is_out_of_memory or _is_of_device(error)):
                raise
            reason = first_line(error)
        if is_out_of_memory and (half := len(observations) // 2):  # outside of `except`: the error holds tensors
            torch.cuda.empty_cache()
            logger.warning("out of memory with %d steps at once; half as many are read now", len(observations))
            halves = (slice(half), slice(half, None))
            return [result for part in halves for result in self._each(answer, observations[part], seeds[part])]
        raise DeviceFailed(
            f"{self._policy.device} failed while a policy was evaluated: {reason}. What was finished is kept: free "
            "memory on the device and go on, or train with a lower model.max_tokens or model.max_new_tokens."
        )

    def _all(self, answer: Callable[..., list[Any]], observations: Sequence[Observation], seeds: Seeds) -> list[Any]:
        """Computes the results of `_each` for all observations at once."""
        # An evaluation asks for the probabilities of the observations that it just got replies to.
        before, self._encoded = self._prompts, {}
        self._prompts = {id(each): before.get(id(each)) or (each, self._prompt(each)) for each in observations}
        results: list[Any] = [self._prompts[id(each)][1] for each in observations]
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
        """Returns the tokens of the prompt as in training, cut to the length that fits.

        The prompt has no persona, goal or past rationales if the policy was trained without them, and marks if it was
        trained with them.
        """
        trained_with = self.info.context
        visible = adapt(observation, trained_with)
        limit = self.info.max_tokens - self._sampling.max_new_tokens
        prompt, long_pages = self.info.prompt, self.info.long_pages
        fitted = fit_prompt(self._tokenizer, visible, prompt, limit, long_pages, trained_with, self._encoded)
        if fitted is None:
            return PromptTooLong(
                f"the page alone takes more than the {limit} tokens that the checkpoint reads besides the reply "
                f"(long_pages = {self.info.long_pages})."
            )
        window = None
        if fitted.window is not None:
            start, end = (len(remove_marks(visible["page"][:offset])) for offset in fitted.window)
            window = start, end
        self._cuts[id(observation)] = PromptCut(window is not None, fitted.pages_left_out, window)
        return fitted.tokens


def _is_of_device(error: RuntimeError) -> bool:
    """Returns whether the error comes from CUDA or from the CPU's allocator."""
    return type(error).__name__ == "AcceleratorError" or any(
        word in str(error)
        for word in ("CUDA error", "CUDA out of memory", "CUBLAS_", "CUDNN_", "can't allocate memory")
    )


def usual_device() -> str:
    """Returns "cuda" if a GPU is available, or else "cpu"."""
    return "cuda" if torch.cuda.is_available() else "cpu"
