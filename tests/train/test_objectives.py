"""The objectives beside GRPO against plain rows, and what is refused of one's own."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from agents.llm_grpo.config import PhaseConfig
from replay_sessions.foundation.errors import BadConfig
from shop_env.reward import reward_preset
from tests.oracles.unpacked_policy import unpacked_log_probs
from tests.train.conftest import Tiny
from tests.train.test_grpo import CONFIG, changed, sampled, shifted_reference
from train.config import SamplingConfig
from train.grpo.groups import Group, micro_batches
from train.grpo.trainer import GroupTrainer
from train.objectives import load_objective, read_options
from train.policy import Policy
from train.rollouts.engine import SampledReply
from train.session_tree import enable_tree_attention


class Fixed:
    """Writes to each step another one's logged reply, its own, and one that cannot be read."""

    def __init__(self, tiny: Tiny) -> None:
        self._tiny = tiny
        self._logged = {
            tuple(trunk.tokens[: reply.start]): list(trunk.tokens[reply.start : reply.end])
            for trunk in tiny.trunks
            for reply in trunk.replies
        }

    def sync_weights(self, policy: Policy) -> None:
        """Nothing to copy."""

    def generate(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int | Sequence[int]
    ) -> list[list[SampledReply]]:
        groups = []
        for logged in (self._logged[tuple(prompt)] for prompt in prompts):
            other = next(reply for reply in self._logged.values() if reply != logged)
            groups.append(sampled(self._tiny, [other, logged, [*logged[:2], self._tiny.tokenizer.eos_token_id]]))
        return groups


def learnt(
    tiny: Tiny, method: str, of_objective: Any = None, **options: Any
) -> tuple[GroupTrainer, list[Group], dict[str, float]]:
    """A trainer that has accumulated the gradient of its first batch, the groups used, and the metrics."""
    model, reference = tiny.plain_model(), shifted_reference(tiny)
    for each in (model, reference):
        enable_tree_attention(each)
    objective = load_objective(method)
    trainer: GroupTrainer = objective(
        Policy(model),
        Policy(reference) if objective.has_reference else None,
        tiny.tokenizer,
        tiny.trunks,
        changed(CONFIG, **options),
        reward_preset("binary"),
        seed=0,
        engine=Fixed(tiny),
        **(of_objective or {}),
    )
    groups = [group for group in trainer.groups(0) if trainer.is_used(group)]
    return trainer, groups, trainer.learn(list(micro_batches(groups, 400)), None)


def row_log_prob(model: Any, group: Group, tokens: Sequence[int]) -> Tensor:
    """Of a whole reply, from a row of its own."""
    return unpacked_log_probs(model, group.trunk.tokens[: group.step.start], tokens, CONFIG.temperature).sum()


def logged_tokens(group: Group) -> list[int]:
    return list(group.trunk.tokens[group.step.start : group.step.end])


def assert_same_gradient(trainer: GroupTrainer, plain: Any) -> None:
    pairs = zip(trainer.policy.model.named_parameters(), plain.named_parameters(), strict=True)
    gradients = {name: (ours.grad, theirs.grad) for (name, ours), (_, theirs) in pairs}
    largest = max(theirs.abs().max().item() for _, theirs in gradients.values())
    assert largest > 0
    for name, (ours, theirs) in gradients.items():
        assert (ours - theirs).abs().max().item() <= 1e-4 * largest, name


def test_weighted_sft_has_the_gradient_of_the_probability_of_the_logged_replies(tiny):
    trainer, groups, metrics = learnt(tiny, "weighted_sft")
    plain = tiny.plain_model()
    loss = -torch.stack([row_log_prob(plain, group, logged_tokens(group)).exp() for group in groups]).mean()
    loss.backward()
    assert loss.item() < 0 and len(groups) > 2
    assert metrics["loss"] == pytest.approx(loss.item(), rel=1e-4)
    assert metrics.keys() >= {"entropy"} and not metrics.keys() & {"kl", "importance"}
    assert_same_gradient(trainer, plain)


def test_dpo_prefers_the_logged_reply_to_each_that_earns_less_and_to_no_other(tiny):
    trainer, groups, metrics = learnt(tiny, "dpo", beta=0.5)
    plain, reference = tiny.plain_model(), shifted_reference(tiny)
    losses = []
    for group in groups:
        replies = [rollout.tokens for rollout in group.rollouts]
        assert replies[0] == logged_tokens(group)
        margins = [row_log_prob(plain, group, r) - row_log_prob(reference, group, r).detach() for r in replies]
        for margin, tokens in zip(margins[1:], replies[1:], strict=True):
            if tokens != replies[0]:
                losses.append(-torch.nn.functional.logsigmoid(0.5 * (margins[0] - margin)))
    loss = torch.stack(losses).sum() / (3 * len(groups))
    loss.backward()
    assert len(losses) == 2 * len(groups), "one sampled reply is the logged one"
    assert metrics["loss"] == pytest.approx(loss.item(), rel=1e-4)
    assert_same_gradient(trainer, plain)


def test_grpo_with_the_logged_reply_has_one_more_in_each_group_that_no_metric_counts(tiny):
    trainer, groups, metrics = learnt(tiny, "grpo_with_logged")
    for group in groups:
        assert [rollout.is_sampled for rollout in group.rollouts] == [False, True, True, True]
        assert group.rollouts[0].action_reward == 1
        assert group.exact == sum(rollout.action_reward for rollout in group.rollouts[1:]) / 3
    assert metrics["importance"] == pytest.approx(1)
    assert trainer.sampling_metrics(groups)["exact"] == pytest.approx(1 / 3)


OWN = """
from replay_sessions.foundation.records import Config
from train.objectives.grpo import GrpoTrainer

class Halved(GrpoTrainer):
    class Options(Config):
        share: float = 0.5

    def advantages(self, rewards):
        return self.options.share * super().advantages(rewards)
"""


def test_own_objectives_have_numbers_of_their_own(tiny, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    method = f"{file}:Halved"
    own = load_objective(method)
    rewards = torch.tensor([[0.0, 2.0]])
    assert learnt(tiny, method)[0].advantages(rewards)[0, 1].item() == pytest.approx(0.5 * 0.5**0.5, abs=1e-5)
    trainer = learnt(tiny, method, of_objective=read_options(own, {"share": 0.25}, "mine"))[0]
    assert trainer.advantages(rewards)[0, 1].item() == pytest.approx(0.25 * 0.5**0.5, abs=1e-5)
    with pytest.raises(BadConfig, match=r"phases\.mine\.options: unknown key 'shar'\. Did you mean 'share'\?"):
        read_options(own, {"shar": 0.25}, "mine")
    with pytest.raises(BadConfig, match="has options, which only objectives of your own read"):
        PhaseConfig(label="x", method="dpo", grpo=CONFIG, options={"share": 0.25})


METHOD = """
from train.grpo.trainer import GroupTrainer

class WithoutLoss(GroupTrainer):
    pass

def loss(chunk):
    return 0
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("WithoutLoss", "is no objective: give a subclass of train.grpo.trainer.GroupTrainer with a method loss"),
        ("loss", "is no objective"),
        ("WithoutLos", r"cannot be loaded: no such name: Did you mean 'WithoutLoss'\?"),
    ],
)
def test_unusable_objectives_are_refused_before_the_run(tmp_path, name, message):
    file = tmp_path / "mine.py"
    file.write_text(METHOD)
    with pytest.raises(BadConfig, match=message):
        load_objective(f"{file}:{name}")


def test_an_unknown_method_names_the_nearest_one():
    with pytest.raises(BadConfig, match=r"unknown method 'weigthed_sft'\. Did you mean 'weighted_sft'\?"):
        PhaseConfig(label="x", method="weigthed_sft")
