"""A trained policy as an agent: observation -> chat messages -> tokens -> sampled reply.

make_agent("runs/demo/shop_r1")                      at the temperature it was trained for
make_agent("runs/demo/shop_r1?temperature=0")        greedy
make_agent("runs/demo/shop_r1?decode=most_probable_action&rationales=8")

Greedy decoding takes the likeliest token each time, and so may choose "click", which sums over a page's elements, where
terminating is the likeliest single action. `decode` chooses among whole actions:

    tokens                  replies are sampled token by token
    most_probable_action    the action with the greatest probability, of equal ones the first
    sample_action           an action drawn from p^(1/temperature)

Its probability of each action of a page is for the likelihood metrics (shop_env.metrics.action_likelihood). A policy
writes a rationale before its action, so the probability of an action is the expectation, over rationales r
that the policy itself writes at temperature 1, of the action's share among the page's candidates. Of K draws:

    p(a | page) = (Σ_r π(r, a | page) / Σ_b π(r, b | page) + (1 + M) / candidates) / (K + 1)

The last term counts one more draw that favours nothing (additive smoothing): without it an action that none of a few
rationales leads to would look impossible, and NLL would depend more on K than on the policy. A malformed draw favours
nothing either: the M of them are divided evenly among all candidates, so that the probabilities sum to 1. Decoding
leaves out both, and takes the action after an empty rationale where no draw is readable. The candidates are those of
shop_env.candidates and the actions of the draws themselves; a typed text that no draw proposes has no probability.

With `rationales=0` the probability is the action's share after an empty rationale, for policies that write none or
where time counts: nothing is sampled, and the greedy reply proposes what is typed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from agents.adapted import SeededAgent, choose
from replay_sessions.foundation.errors import AgentFailed, BadConfig, check_choice
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
Decode = Literal["tokens", "most_probable_action", "sample_action"]


class PolicyAgent(SeededAgent):
    """Samples replies from a checkpoint; prompts that begin one another share one reading of their pages.

    Args:
        path: The checkpoint's folder; None with `policy`.
        temperature: 0 is greedy; None: the checkpoint's own. With `sample_action` of actions, not of tokens.
        max_new_tokens: None: the checkpoint's own.
        device: Where the model runs; None: a GPU where there is one.
        policy: A model, its tokenizer and its info that are already in memory.
        decode: How a reply is chosen (above).
        rationales: How many draws the probabilities of a page's actions are means of, in `decode` too; 0: none.
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
        self._prepare(tokenizer, info, temperature, max_new_tokens)
        _check_decoding(decode, temperature, self._sampling.temperature, rationales)
        self._decode, self._rationales = decode, rationales

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
        if self._decode != "tokens":
            temperature = self._sampling.temperature if self._decode == "sample_action" else 0.0
            pages = self._weighed_actions(prompts, observations, sources)
            return [page.reply(temperature, source) for page, source in zip(pages, sources, strict=True)]
        uniforms = draw_uniforms(sources, 1, self._sampling.max_new_tokens)
        replies = generate(self._policy, prompts, self._sampling, uniforms=uniforms)
        return decode_replies(self._tokenizer, [reply.tokens for (reply,) in replies])

    def _probabilities(
        self, prompts: Sequence[list[int]], observations: Sequence[Observation], sources: Sources
    ) -> list[dict[Action, float]]:
        pages = self._weighed_actions(prompts, observations, sources)
        return [page.probabilities(self._rationales) for page in pages]

    def _weighed_actions(
        self, prompts: Sequence[list[int]], observations: Sequence[Observation], sources: Sources
    ) -> Iterator["WeighedActions"]:
        uniforms = draw_uniforms(sources, self._rationales, self._sampling.max_new_tokens)
        return weigh_actions(self._policy, self._tokenizer, prompts, observations, uniforms)

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


def _check_decoding(decode: str, asked_temperature: float | None, temperature: float, rationales: int) -> None:
    """Raises BadConfig where they do not go together."""
    check_choice("decode", decode, Decode)
    if type(rationales) is not int or rationales < 0:
        raise BadConfig(f"rationales is {rationales!r}; it must be a whole number, 0 for an empty rationale.")
    if decode == "most_probable_action" and asked_temperature:
        raise BadConfig(
            f"temperature is {asked_temperature} with decode=most_probable_action, which draws no action: leave it "
            "out, or give decode=sample_action."
        )
    if decode == "sample_action" and not temperature > 0:
        raise BadConfig(
            f"temperature is {temperature} with decode=sample_action: give one above 0, or decode=most_probable_action."
        )


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


def weigh_actions(
    policy: Policy,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    observations: Sequence[Observation],
    uniforms: Tensor,
) -> Iterator[WeighedActions]:
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
    replies_of_prompts = generate(policy, prompts, sampling, uniforms=uniforms if rationales else None)
    for prompt, observation, drawn in zip(prompts, observations, replies_of_prompts, strict=True):
        replies = [parse_reply(text) for text in decode_replies(tokenizer, [reply.tokens for reply in drawn])]
        readable = [reply for reply in replies if isinstance(reply, Reply)]
        candidates = list(dict.fromkeys([*candidate_actions(observation), *(reply.action for reply in readable)]))
        counts = Counter(reply.rationale for reply in readable) or {"": 0}
        if not rationales:
            counts = {"": 1}
        yield WeighedActions(candidates, counts, _shares(policy, tokenizer, prompt, list(counts), candidates))


@torch.no_grad()
def _shares(
    policy: Policy, tokenizer: Any, prompt: Sequence[int], rationales: Sequence[str], candidates: Sequence[Action]
) -> Tensor:
    """(rationales, candidates): each candidate's share behind each rationale; rows sum to 1.

    The replies with one rationale begin alike. That stem is passed once, before what follows it in each reply.
    """
    texts = [format_reply(rationale, action) for rationale in rationales for action in candidates]
    replies = reply_tokens(tokenizer, texts)
    groups = [replies[start : start + len(candidates)] for start in range(0, len(replies), len(candidates))]
    stems = [_common_start([reply[:-1] for reply in group]) for group in groups]
    behind = [[reply[len(stem) :] for reply in group] for stem, group in zip(stems, groups, strict=True)]
    branches = [[stem, *rest] for stem, rest in zip(stems, behind, strict=True)]
    packed = pack([SessionTree(prompt, [len(prompt)] * len(branches), branches)])
    for group, stem in zip(packed.spans[0].groups, stems, strict=True):
        packed.position_ids[0, group.start + len(stem) : group.end] += len(stem)
        group.own[len(stem) :, : len(stem)] = True
        sources = packed.predicted_from[group.targets][len(stem) :]
        sources[sources == len(prompt) - 1] = group.start + len(stem) - 1
    log_probs = policy.log_probs(packed.to(policy.device))
    # The stem's own tokens are the same in a whole row and cancel out of its shares.
    totals = [part.sum() for part in log_probs.double().split(packed.reply_lengths)]
    return torch.stack(totals).cpu().view(len(groups), 1 + len(candidates))[:, 1:].softmax(dim=1)


def _common_start(replies: Sequence[Sequence[int]]) -> list[int]:
    """The tokens with which all of them begin."""
    return [tokens[0] for tokens in takewhile(lambda tokens: len(set(tokens)) == 1, zip(*replies, strict=False))]
