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
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch

from agents.local.weighed_actions import WeighedActions, stratified_uniforms, weigh_actions, weigh_without_draws
from replay_sessions.foundation.errors import (
    BadConfig,
    DeviceFailed,
    check_at_least,
    check_choice,
    first_line,
)
from shop_env.evaluation.answering import Answer, AnsweringAgent, NoReply, Probabilities, Reason, Seeds
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


class PolicyAgent(AnsweringAgent):
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
        self._totals: list[float] = []  # of pages without draws

    def answer(self, observations: Sequence[Observation], seeds: Seeds, probabilities: bool) -> list[Answer]:
        """Returns a reply to each observation; one that does not fit has NoReply in its place."""
        return self._answer_parts(observations, seeds, replies=True, probabilities=probabilities)

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Seeds | None = None
    ) -> list[Probabilities | Exception | None]:
        """Computes the policy's probability of each candidate action of each page, without a reply."""
        seeds = seeds or [None] * len(observations)
        answers = self._answer_parts(observations, seeds, replies=False, probabilities=True)
        return [answer.weights() for answer in answers]

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

    def _answer_parts(
        self, observations: Sequence[Observation], seeds: Seeds, *, replies: bool, probabilities: bool
    ) -> list[Answer]:
        """Computes answers; if the device runs out of memory, those of each half, which are the same.

        Raises:
            DeviceFailed: The device has too little memory for one observation, or failed otherwise.
        """
        try:
            return self._answer_at_once(observations, seeds, replies, probabilities)
        except RuntimeError as error:
            is_out_of_memory = isinstance(error, torch.OutOfMemoryError)
            if not (is_out_of_memory or _is_of_device(error)):
                raise
            reason = first_line(error)
        if is_out_of_memory and (half := len(observations) // 2):  # outside of `except`: the error holds tensors
            torch.cuda.empty_cache()
            logger.warning("out of memory with %d steps at once; half as many are read now", len(observations))
            return [
                answer
                for part in (slice(half), slice(half, None))
                for answer in self._answer_parts(
                    observations[part], seeds[part], replies=replies, probabilities=probabilities
                )
            ]
        raise DeviceFailed(
            f"{self._policy.device} failed while a policy was evaluated: {reason}. What was finished is kept: free "
            "memory on the device and go on, or train with a lower model.max_tokens or model.max_new_tokens."
        )

    def _answer_at_once(
        self, observations: Sequence[Observation], seeds: Seeds, replies: bool, probabilities: bool
    ) -> list[Answer]:
        encoded: dict[str, list[int]] = {}
        read = [self._read(observation, encoded) for observation in observations]
        fitting = {index: prompt for index, prompt in enumerate(read) if not isinstance(prompt, NoReply)}
        prompts, shown = [tokens for tokens, _ in fitting.values()], [observations[index] for index in fitting]

        def sources() -> list[np.random.Generator]:  # anew for each use: probabilities do not depend on replies
            return [np.random.default_rng(seeds[index]) for index in fitting]

        by_tokens = self._decode == "tokens"
        texts = self._sample(prompts, shown, sources()) if replies and by_tokens else []
        weighed = self._weigh(prompts, shown, sources()) if probabilities or not by_tokens else []
        answers = [Answer(prompt if isinstance(prompt, NoReply) else "") for prompt in read]
        for number, (index, (_, cut)) in enumerate(fitting.items()):
            reply = texts[number] if texts else weighed[number].reply()
            shares = weighed[number].probabilities(self._rationales) if probabilities else None
            answers[index] = Answer(reply, shares, cut)
        return answers

    def _sample(
        self, prompts: Sequence[list[int]], observations: Sequence[Observation], sources: Sequence[np.random.Generator]
    ) -> list[str]:
        uniforms = draw_uniforms(sources, 1, self._sampling.max_new_tokens)
        tries = self._tries_of(observations)
        replies = generate(self._policy, prompts, self._sampling, uniforms=uniforms, tries=tries)
        return decode_replies(self._tokenizer, [reply.tokens for (reply,) in replies])

    def prompt_tokens(self, observation: Observation) -> list[int]:
        """Returns the tokens of the prompt as in training, cut to the length that fits.

        The prompt has no persona, goal or past rationales if the policy was trained without them, and marks if it was
        trained with them.

        Raises:
            PromptTooLong: The page alone does not fit.
        """
        prompt = self._read(observation, {})
        if isinstance(prompt, NoReply):
            raise prompt.exception()
        return prompt[0]

    def _read(self, observation: Observation, encoded: dict[str, list[int]]) -> tuple[list[int], PromptCut] | NoReply:
        """Returns the tokens of the prompt, and the part of the pages that is not in it.

        Args:
            encoded: The tokens of texts, to which those of this prompt are added.
        """
        trained_with = self.info.context
        visible = adapt(observation, trained_with)
        limit = self.info.max_tokens - self._sampling.max_new_tokens
        prompt, long_pages = self.info.prompt, self.info.long_pages
        fitted = fit_prompt(self._tokenizer, visible, prompt, limit, long_pages, trained_with, encoded)
        if fitted is None:
            text = (
                f"the page alone takes more than the {limit} tokens that the checkpoint reads besides the reply "
                f"(long_pages = {long_pages})."
            )
            return NoReply(reason=Reason.TOO_LONG, error=text)
        window = None
        if fitted.window is not None:
            start, end = (len(remove_marks(visible["page"][:offset])) for offset in fitted.window)
            window = start, end
        return fitted.tokens, PromptCut(window is not None, fitted.pages_left_out, window)


def _is_of_device(error: RuntimeError) -> bool:
    """Returns whether the error comes from CUDA or from the CPU's allocator."""
    return type(error).__name__ == "AcceleratorError" or any(
        word in str(error)
        for word in ("CUDA error", "CUDA out of memory", "CUBLAS_", "CUDNN_", "can't allocate memory")
    )


def usual_device() -> str:
    """Returns "cuda" if a GPU is available, or else "cpu"."""
    return "cuda" if torch.cuda.is_available() else "cpu"
