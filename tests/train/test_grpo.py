"""GRPO: advantages and loss by hand, and one whole step against the slow, unpacked way."""

import dataclasses
import math

import pytest
import torch

from replay_sessions.schema import Action, Click
from shop_env.replies import Reply, format_reply, parse_reply
from shop_env.reward import RewardConfig, score_reply
from tests.oracles.self_certainty import kl_uniform_policy, softmax
from tests.oracles.unpacked_policy import unpacked_grpo_loss
from tests.train.conftest import Tiny
from train.grpo.advantages import group_advantages, informative
from train.grpo.loss import grpo_loss
from train.grpo.trainer import GrpoConfig, GrpoTrainer, _Group, _Rollout, _sampling_figures
from train.loop import OptimizerConfig
from train.tokens import decode_replies, rationale_tokens, reply_tokens

CONFIG = GrpoConfig(optimizer=OptimizerConfig(lr=1e-3), steps=3, sessions_per_batch=2, replies=3, beta=0.05)


def test_any_positive_affine_change_of_the_rewards_leaves_standardised_advantages() -> None:
    rewards = torch.tensor([[0.5, 1000.5, 0.5, 1.0], [0.0, 1.0, 2.0, 3.0]])
    assert torch.allclose(group_advantages(rewards), group_advantages(3 * rewards + 7), atol=1e-4)


def test_a_group_without_differences_has_no_advantage_and_is_not_informative() -> None:
    assert group_advantages(torch.full((1, 4), 0.5)).tolist() == [[0.0] * 4]
    assert not informative([0.5] * 4)


def test_the_loss_on_policy_is_minus_the_mean_advantage_plus_the_kl() -> None:
    log_probs = torch.tensor([-1.0, -2.0, -0.5])
    reference = torch.tensor([-1.5, -2.0, -0.5])
    loss, kl = grpo_loss(
        log_probs, log_probs, reference, torch.tensor([2.0, -1.0]), torch.tensor([0, 0, 1]), beta=0.1, clip=0.2
    )
    first_token = math.exp(-0.5) - (-0.5) - 1
    assert kl.item() == pytest.approx((first_token / 2 + 0) / 2)
    assert loss.item() == pytest.approx((-2.0 + 1.0) / 2 + 0.1 * kl.item())


def test_the_clipped_ratio_stops_the_gradient() -> None:
    log_probs = torch.tensor([0.0], requires_grad=True)
    loss, _ = grpo_loss(
        log_probs, torch.tensor([-1.0]), torch.tensor([0.0]), torch.ones(1), torch.zeros(1, dtype=torch.long),
        beta=0.0, clip=0.2,
    )  # fmt: skip
    loss.backward()
    assert loss.item() == pytest.approx(-1.2)
    assert log_probs.grad is not None and log_probs.grad.item() == 0.0


def hand_made_groups(tiny: Tiny) -> list[_Group]:
    """At each step of two sessions: the logged reply, that of another step, and one that cannot be read."""
    reward = RewardConfig()
    groups = []
    for trunk in tiny.trunks[:2]:
        logged = [trunk.tokens[reply.start : reply.end] for reply in trunk.replies]
        for place, step in enumerate(trunk.replies[1:], start=1):
            replies = [logged[place], logged[place - 1], [*logged[place][:3], tiny.tokenizer.eos_token_id]]
            parsed = [parse_reply(text) for text in decode_replies(tiny.tokenizer, replies)]
            rollouts = [
                _Rollout(tokens, reply, score_reply(reply, step.action, reward).without_certainty)
                for tokens, reply in zip(replies, parsed, strict=True)
            ]
            groups.append(_Group(trunk, step, rollouts))
    return groups


def test_a_steps_gradient_equals_that_of_the_unpacked_way(tiny: Tiny) -> None:
    plain, reference = tiny.plain_model(), tiny.plain_model()
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.mul_(0.9)
    frozen = tiny.plain_model()
    frozen.load_state_dict(reference.state_dict())
    frozen.set_attn_implementation("session_tree")
    trainer = GrpoTrainer(tiny.model, frozen, tiny.tokenizer, tiny.trunks, CONFIG, RewardConfig(), seed=0)
    groups = hand_made_groups(tiny)
    tiny.model.zero_grad()
    figures = trainer._learn(groups)
    loss = unpacked_grpo_loss(
        plain,
        reference,
        [
            (
                group.trunk.tokens[: group.step.start],
                [rollout.tokens for rollout in group.rollouts],
                [total_reward(tiny, plain, group, rollout) for rollout in group.rollouts],
            )
            for group in groups
        ],
        temperature=CONFIG.temperature,
        beta=CONFIG.beta,
    )
    loss.backward()
    assert figures["loss"] == pytest.approx(loss.item(), abs=1e-5)
    for (name, ours), (_, theirs) in zip(tiny.model.named_parameters(), plain.named_parameters(), strict=True):
        assert (ours.grad - theirs.grad).abs().max().item() < 1e-5, name
    tiny.model.zero_grad()


def total_reward(tiny: Tiny, plain: torch.nn.Module, group: _Group, rollout: _Rollout) -> float:
    """The reward with self-certainty by its definition in float64, from the plain model's logits."""
    certainty = None
    if isinstance(rollout.reply, Reply):
        first, end = rationale_tokens(tiny.tokenizer, rollout.tokens, rollout.reply.rationale_span)
        prompt = group.trunk.tokens[: group.step.start]
        with torch.no_grad():
            logits = plain(torch.tensor([[*prompt, *rollout.tokens]])).logits[0].double()
        rows = logits[len(prompt) - 1 + first : len(prompt) - 1 + end].tolist()
        certainty = kl_uniform_policy([softmax(row) for row in rows])
    return score_reply(rollout.reply, group.step.action, RewardConfig(), self_certainty=certainty).total


def rollout_of(tiny: Tiny, text: str, logged: Action) -> _Rollout:
    (tokens,) = reply_tokens(tiny.tokenizer, [text])
    return _Rollout(tokens, parse_reply(text), score_reply(text, logged, RewardConfig()).without_certainty)


def test_an_empty_rationale_earns_no_self_certainty_and_is_counted(tiny: Tiny) -> None:
    trunk = tiny.trunks[0]
    step = trunk.replies[1]
    texts = [format_reply(rationale, step.action) for rationale in ("I look at it.", "")]
    group = _Group(trunk, step, [rollout_of(tiny, text, step.action) for text in texts])
    trainer = GrpoTrainer(tiny.model, tiny.model, tiny.tokenizer, tiny.trunks, CONFIG, RewardConfig(), seed=0)
    certain = torch.full((sum(len(rollout.tokens) for rollout in group.rollouts),), 20.0)
    with_reason, without = trainer._rewards([group], certain).double().tolist()
    assert without == pytest.approx(group.rollouts[1].action_reward)
    assert with_reason == pytest.approx(group.rollouts[0].action_reward + 0.005 * 20, abs=1e-3)
    assert _sampling_figures([group])["no_rationale"] == 1 / 2


def test_targets_that_were_not_logged_are_in_no_share_of_exact_replies(tiny: Tiny) -> None:
    trunk = tiny.trunks[0]
    exact = {}
    for name, action in (("logged", trunk.replies[1].action), ("unlogged", Click(name=""))):
        step = dataclasses.replace(trunk.replies[1], action=action)
        exact[name] = _Group(trunk, step, [rollout_of(tiny, format_reply("So.", action), action)] * 2)
    assert (exact["logged"].exact, exact["unlogged"].exact) == (1, 0)
    assert exact["unlogged"].rollouts[0].action_reward == pytest.approx(0.8)
    assert _sampling_figures(list(exact.values()))["exact"] == 1


def test_cutting_a_batch_into_several_passes_changes_no_gradient(tiny: Tiny) -> None:
    gradients = []
    for limit in (32_768, 200):
        config = GrpoConfig(
            optimizer=CONFIG.optimizer, steps=3, sessions_per_batch=2, replies=3, beta=0.05, max_batch_tokens=limit
        )
        trainer = GrpoTrainer(tiny.model, tiny.model, tiny.tokenizer, tiny.trunks, config, RewardConfig(), seed=0)
        tiny.model.zero_grad()
        trainer._learn(hand_made_groups(tiny))
        gradients.append([parameter.grad.clone() for parameter in tiny.model.parameters()])
    tiny.model.zero_grad()
    for whole, cut in zip(*gradients, strict=True):
        assert torch.allclose(whole, cut, atol=1e-6)
