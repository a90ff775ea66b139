"""What one GRPO step is like, in figures: name -> number, as they are logged and drawn (`python -m train.show`).

Over all sampled replies, before any group is left out:

| figure | what |
|---|---|
| `action_reward`, `action_reward_std` | what a reply's text earns, self-certainty aside: mean and deviation, points |
| `reward_TERM`, `reward_TERM_std` | the same of each part of it (shop_env.reward.RewardBreakdown) |
| `exact` | share of replies that are the logged action; steps whose target was not logged are left out |
| `malformed`, `cut` | shares of replies that cannot be read: ended by the policy itself, or by `max_new_tokens` |
| `no_rationale` | share of replies that can be read and have no rationale |
| `sampled_TYPE`, `logged_TYPE` | share of each type of action: of the readable replies, of the steps asked about |
| `sampled_commonest`, `logged_commonest` | share of the one action, whole, that comes most often |
| `reply_tokens` | mean length of a reply |
| `groups`, `groups_used` | steps that were asked about, and those of them that are learnt from |
| `packed_share` | tokens in a pass of learning over those of the same replies as rows, each behind its whole prompt |
| `tokens` | tokens that went through a model in the whole step, sampling and reference included |

Over the groups used only, since nobody computes them elsewhere: `loss`, `kl`, `entropy`, `self_certainty` and
`self_certainty_std` (s(r) of the readable replies, as it is rewarded). With several updates on a batch loss, KL and
entropy are of the last. `sampling_gap` is how far the log-probabilities of sampling and training lie apart, the mean of
|log π − log π_sampled| over tokens before any update; `importance` the mean weight that is set against it (1: none).
"""

import statistics
from collections import Counter
from collections.abc import Sequence

import msgspec

from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit
from shop_env.replies import MalformedReply, Reply
from shop_env.reward.terms import unlogged_fields
from train.grpo.groups import Group, Part
from train.ranks import Ranks
from train.rollout_engines.sampling import StopReason
from train.session_tree import PackedTrees

__all__ = ["certainty_figures", "packed_share", "sampling_figures", "tokens_processed"]

_NO_TERMS = ("self_certainty", "self_certainty_weight")  # of the breakdown: not of a reply's text
_TYPES = {"click": Click, "type_and_submit": TypeAndSubmit, "terminate": Terminate}


def sampling_figures(groups: Sequence[Group]) -> dict[str, float]:
    """What the sampled replies of a batch are like and earn."""
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    unreadable = [rollout.sampled.stop for rollout in rollouts if isinstance(rollout.reply, MalformedReply)]
    readable = [rollout.reply for rollout in rollouts if isinstance(rollout.reply, Reply)]
    scorable = [group.exact for group in groups if not unlogged_fields(group.step.action)]
    count = len(rollouts)
    earned = [msgspec.structs.asdict(rollout.earned) for rollout in rollouts]
    figures = _mean_and_deviation("action_reward", [rollout.action_reward for rollout in rollouts])
    for term in (name for name in earned[0] if name not in _NO_TERMS):
        figures |= _mean_and_deviation(f"reward_{term}", [terms[term] for terms in earned])
    return {
        **figures,
        "exact": sum(scorable) / max(len(scorable), 1),
        "malformed": unreadable.count(StopReason.END) / count,
        "cut": unreadable.count(StopReason.LENGTH) / count,
        "no_rationale": sum(not reply.rationale for reply in readable) / count,
        **_mix("sampled", [reply.action for reply in readable]),
        **_mix("logged", [group.step.action for group in groups]),
        "reply_tokens": sum(len(rollout.tokens) for rollout in rollouts) / count,
        "groups": len(groups),
    }


def certainty_figures(certainties: Sequence[float | None]) -> dict[str, float]:
    """Mean and deviation of s(r); nothing where no reply has one."""
    measured = [certainty for certainty in certainties if certainty is not None]
    return _mean_and_deviation("self_certainty", measured) if measured else {}


def packed_share(packs: Sequence[PackedTrees], ranks: Ranks) -> dict[str, float]:
    """What is left of the tokens of plain rows, and so at the least of their work; nothing where there is no pack."""
    packed = ranks.total(sum(one.input_ids.numel() for one in packs))
    rows = ranks.total(sum(one.row_tokens for one in packs))
    return {"packed_share": packed / rows} if rows else {}


def tokens_processed(groups: Sequence[Group], batch: Sequence[Part], *, updates: int, old: bool) -> int:
    """Tokens that went through a model in one step, each as often as it did.

    Sampling reads each session once, as far as it is asked about, and each reply but its last token; the packed batch
    goes through policy and reference at each update, and once more through the policy where `old` statistics are kept.
    """
    prompts: dict[int, int] = {}
    for group in groups:
        prompts[id(group.trunk)] = max(group.step.start, prompts.get(id(group.trunk), 0))
    sampled = sum(prompts.values()) + sum(group.reply_tokens - len(group.rollouts) for group in groups)
    packed = sum(part.packed.input_ids.numel() for part in batch)
    return sampled + packed * (2 * updates + old)


def _mix(kind: str, actions: Sequence[Action]) -> dict[str, float]:
    """Shares of the types of action and of the commonest one; nothing where there is no action."""
    if not actions:
        return {}
    shares = {f"{kind}_{name}": sum(isinstance(a, of) for a in actions) / len(actions) for name, of in _TYPES.items()}
    ((_, times),) = Counter(map(_as_predicted, actions)).most_common(1)
    return shares | {f"{kind}_commonest": times / len(actions)}


def _as_predicted(action: Action) -> Action:
    """Without a click's subtype, which is logged but not predicted."""
    return Click(name=action.name) if isinstance(action, Click) else action


def _mean_and_deviation(name: str, values: Sequence[float]) -> dict[str, float]:
    return {name: statistics.fmean(values), f"{name}_std": statistics.pstdev(values)}
