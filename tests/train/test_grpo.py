"""GRPO: advantages and loss by hand, and one whole step against the slow, unpacked way."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, get_args

import msgspec
import pytest
import torch
from torch import Tensor

from replay_sessions.schema import Click, TypeAndSubmit
from shop_env.replies import Reply, format_reply
from shop_env.reward import RewardConfig, score_reply
from tests.oracles.self_certainty import kl_uniform_policy, softmax
from tests.oracles.unpacked_policy import unpacked_grpo_loss, unpacked_log_probs
from tests.train.conftest import Tiny, assert_same_gradients, own_model
from train.config import OptimizerConfig, SamplingConfig
from train.grpo.config import GrpoConfig, LossType, ScaleRewards
from train.grpo.groups import Group, Rollout, deal_groups, measured_metrics, micro_batches, rollout_metrics, score_group
from train.grpo.loss import (
    clipped_gain,
    importance_weights,
    is_informative,
    kl_divergence,
    scaled_advantages,
    token_weights,
)
from train.objectives.grpo import GrpoTrainer
from train.policy import Policy, PolicyStats
from train.ranks import Ranks
from train.rollouts.engine import LocalEngine, SampledReply, StopReason
from train.rollouts.layers import DecoderLayers
from train.session_tree import enable_tree_attention
from train.tokens import ReplySpan, rationale_tokens, reply_tokens

CONFIG = GrpoConfig(optimizer=OptimizerConfig(lr=1e-3), steps=3, sessions_per_batch=2, num_generations=3, beta=0.05)


def test_any_positive_affine_change_of_the_rewards_leaves_advantages_scaled_by_group():
    rewards = torch.tensor([[0.5, 1000.5, 0.5, 1.0], [0.0, 1.0, 2.0, 3.0]])
    assert torch.allclose(scaled_advantages(rewards), scaled_advantages(3 * rewards + 7), atol=1e-4)


def test_a_group_without_differences_has_no_advantage_and_is_not_informative():
    assert scaled_advantages(torch.full((1, 4), 0.5)).tolist() == [[0.0] * 4]
    assert not is_informative([0.5] * 4)


def test_advantages_are_scaled_by_the_group_or_nothing():
    rewards = torch.tensor([[0.0, 2.0], [10.0, 30.0]])
    assert scaled_advantages(rewards, "none").tolist() == [[-1.0, 1.0], [-10.0, 10.0]]
    assert scaled_advantages(rewards, "group").flatten().tolist() == pytest.approx(
        [-(0.5**0.5), 0.5**0.5, -(0.5**0.5), 0.5**0.5], abs=1e-5
    )


def test_the_loss_on_policy_is_minus_the_mean_advantage_plus_the_kl():
    log_probs = torch.tensor([-1.0, -2.0, -0.5])
    kl = kl_divergence(log_probs, torch.tensor([-1.5, -2.0, -0.5]))
    gain = clipped_gain(torch.ones(3), torch.tensor([2.0, 2.0, -1.0]), 0.2)
    loss = (token_weights([2, 1], replies=2, tokens=3, max_new_tokens=4) * (0.1 * kl - gain)).sum()
    first_token = math.exp(-0.5) - (-0.5) - 1
    assert kl.tolist() == pytest.approx([first_token, 0.0, 0.0])
    assert loss.item() == pytest.approx((-2.0 + 1.0) / 2 + 0.1 * first_token / 4)


@pytest.mark.parametrize(("advantage", "log_prob", "bound"), [(1.0, 0.0, -1.2), (-1.0, -2.0, 0.8)])
def test_the_clipped_ratio_stops_the_gradient_at_the_bound_of_its_side(advantage, log_prob, bound):
    log_probs = torch.tensor([log_prob], requires_grad=True)
    ratio = torch.exp(log_probs - torch.tensor([-1.0]))
    loss = -clipped_gain(ratio, torch.tensor([advantage]), 0.2).sum()
    loss.backward()
    assert loss.item() == pytest.approx(bound)
    assert log_probs.grad is not None and log_probs.grad.item() == 0.0


@pytest.mark.parametrize("steps_per_batch", [None, 4])
def test_epochs_are_passes_through_all_predicted_steps(tiny, steps_per_batch):
    config = changed(CONFIG, steps=None, epochs=2.0, steps_per_batch=steps_per_batch)
    trainer = trainer_of(tiny.plain_model(), tiny.model, tiny, config)
    predicted = sum(reply.step_index > 0 for trunk in tiny.trunks for reply in trunk.replies)
    sessions = len({trunk.session_id for trunk in tiny.trunks})
    assert trainer.total_steps == round(2 * (predicted / 4 if steps_per_batch else math.ceil(sessions / 2)))


def test_importance_weights_are_ratios_up_to_the_cap_and_1_without_one():
    old, drawn = torch.tensor([-1.0, -1.0, -3.0]), torch.tensor([-1.0, -3.0, -1.0])
    assert importance_weights(old, drawn, 2.0).tolist() == pytest.approx([1.0, 2.0, math.exp(-2)])
    assert importance_weights(old, drawn, None).tolist() == [1.0] * 3


def hand_made_groups(tiny: Tiny) -> list[Group]:
    """At each step of two sessions: the logged reply, that of another step, and one that cannot be read."""
    groups = []
    for trunk in tiny.trunks[:2]:
        logged = [trunk.tokens[reply.start : reply.end] for reply in trunk.replies]
        for place, step in enumerate(trunk.replies[1:], start=1):
            replies = [logged[place], logged[place - 1], [*logged[place][:3], tiny.tokenizer.eos_token_id]]
            groups.append(score_group(trunk, step, sampled(tiny, replies), tiny.tokenizer, RewardConfig()))
    return groups


def sampled(tiny: Tiny, replies: list[list[int]]) -> list[SampledReply]:
    """The replies as if an engine had drawn them, all but surely."""
    ends = tiny.tokenizer.eos_token_id
    return [
        SampledReply(reply, [-0.01] * len(reply), StopReason.END if reply[-1] == ends else StopReason.LENGTH)
        for reply in replies
    ]


def trainer_of(model: Any, reference: Any, tiny: Tiny, config: GrpoConfig = CONFIG) -> GrpoTrainer:
    return GrpoTrainer(Policy(model), Policy(reference), tiny.tokenizer, tiny.trunks, config, RewardConfig(), seed=0)


def changed(config: GrpoConfig, **options: Any) -> GrpoConfig:
    return msgspec.structs.replace(config, **options)


def shifted_reference(tiny: Tiny) -> Any:
    """A reference that differs from the policy, so that the KL is not 0; with transformers' own attention."""
    reference = tiny.plain_model()
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.mul_(0.9)
    return reference


def test_a_steps_gradient_equals_that_of_the_unpacked_way(tiny):
    plain, reference = tiny.plain_model(), shifted_reference(tiny)
    frozen = shifted_reference(tiny)
    enable_tree_attention(frozen)
    trainer = trainer_of(tiny.model, frozen, tiny)
    groups = hand_made_groups(tiny)
    tiny.model.zero_grad()
    figures = trainer.learn(list(micro_batches(groups, CONFIG.max_batch_tokens)), None)
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
    assert_same_gradients(tiny.model, plain)
    tiny.model.zero_grad()


def total_reward(tiny: Tiny, plain: torch.nn.Module, group: Group, rollout: Rollout) -> float:
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


def group_of(tiny: Tiny, texts: list[str], step: ReplySpan) -> Group:
    replies = sampled(tiny, reply_tokens(tiny.tokenizer, texts))
    return score_group(tiny.trunks[0], step, replies, tiny.tokenizer, RewardConfig())


def test_an_empty_rationale_earns_no_self_certainty_and_is_counted(tiny):
    trunk = tiny.trunks[0]
    step = trunk.replies[1]
    group = group_of(tiny, [format_reply(rationale, step.action) for rationale in ("I look at it.", "")], step)
    (micro_batch,) = micro_batches([group], 10_000)
    certain = PolicyStats(*torch.full((4, len(micro_batch.packed.targets)), 20.0))
    trainer = trainer_of(tiny.model, tiny.model, tiny)
    (with_reason, without), certainties = trainer.rewards(micro_batch.rollouts, certain)
    assert certainties == [20.0, 0.0]
    assert without == pytest.approx(group.rollouts[1].action_reward)
    assert with_reason == pytest.approx(group.rollouts[0].action_reward + 0.005 * 20, abs=1e-3)
    assert rollout_metrics([group])["no_rationale"] == 1 / 2


def test_targets_that_were_not_logged_are_in_no_share_of_exact_replies(tiny):
    trunk = tiny.trunks[0]
    exact = {}
    for name, action in (("logged", trunk.replies[1].action), ("unlogged", Click(name=""))):
        step = dataclasses.replace(trunk.replies[1], action=action)
        exact[name] = group_of(tiny, [format_reply("So.", action)] * 2, step)
    assert (exact["logged"].exact, exact["unlogged"].exact) == (1, 0)
    assert exact["unlogged"].rollouts[0].action_reward == pytest.approx(0.8)
    assert rollout_metrics(list(exact.values()))["exact"] == 1


@pytest.mark.parametrize(
    ("loss_type", "weights"),
    [("grpo", [1 / 4, 1 / 4, 1 / 2]), ("dapo", [1 / 3] * 3), ("dr_grpo", [1 / 20] * 3)],
)
def test_the_loss_type_weighs_the_tokens_of_replies_of_2_and_1(loss_type, weights):
    """One mean over replies of means, one over tokens, and one of sums divided by 2 replies of at most 10 tokens."""
    ours = token_weights([2, 1], loss_type, replies=2, tokens=3, max_new_tokens=10)
    assert ours.tolist() == pytest.approx(weights)


def test_losses_of_three_types_weigh_the_same_tokens_and_metrics_stay_means(tiny):
    """By hand, with advantages of a token's reply, KL 0 and a ratio of 1: the loss is a weighted mean of advantages."""
    figures, losses = {}, {}
    for loss_type in get_args(LossType):
        config = changed(CONFIG, loss_type=loss_type, beta=0.0)
        trainer = trainer_of(tiny.model, tiny.model, tiny, config)
        groups = hand_made_groups(tiny)
        (micro_batch,) = batch = list(micro_batches(groups, 32_768))
        (stats,) = trainer.statistics(batch)
        rewards, _ = trainer.rewards(micro_batch.rollouts, stats)
        advantages = trainer.advantages(torch.tensor(rewards).view(len(groups), -1)).flatten().tolist()
        lengths = [len(rollout.tokens) for rollout in micro_batch.rollouts]
        divisors = {
            "grpo": [len(lengths) * length for length in lengths],
            "dapo": [sum(lengths)] * len(lengths),
            "dr_grpo": [len(lengths) * config.max_new_tokens] * len(lengths),
        }[loss_type]
        losses[loss_type] = -sum(a * n / d for a, n, d in zip(advantages, lengths, divisors, strict=True))
        figures[loss_type] = trainer.learn(batch, None)
        tiny.model.zero_grad()
    assert len(set(losses.values())) == 3
    for loss_type, loss in losses.items():
        assert figures[loss_type]["loss"] == pytest.approx(loss, rel=1e-4, abs=1e-6)
        assert figures[loss_type]["entropy"] == pytest.approx(figures["grpo"]["entropy"])


@pytest.mark.parametrize("scale", get_args(ScaleRewards))
def test_cutting_a_batch_into_several_passes_changes_no_gradient(tiny, scale):
    gradients = []
    for limit in (32_768, 200):
        config = changed(CONFIG, max_batch_tokens=limit, scale_rewards=scale)
        trainer = trainer_of(tiny.model, tiny.model, tiny, config)
        batch = list(micro_batches(hand_made_groups(tiny), limit))
        assert (len(batch) > 1) == (limit == 200)
        tiny.model.zero_grad()
        trainer.learn(batch, None)
        gradients.append([parameter.grad.clone() for parameter in tiny.model.parameters()])
    tiny.model.zero_grad()
    for whole, cut in zip(*gradients, strict=True):
        assert (whole - cut).abs().max() <= 1e-5 * whole.abs().max() + 1e-7


class OtherNumerics:
    """The policy at another temperature: an engine whose probabilities are not the trainer's."""

    def __init__(self, policy: Policy, temperature: float) -> None:
        self._engine, self._temperature = LocalEngine(policy), temperature

    def sync_weights(self, policy: Policy) -> None:
        self._engine.sync_weights(policy)

    def generate(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int | Sequence[int]
    ) -> list[list[SampledReply]]:
        """Drawn at its own temperature."""
        return self._engine.generate(prompts, dataclasses.replace(config, temperature=self._temperature), seed=seed)


def test_an_engine_of_the_same_numerics_leaves_no_gap_and_weights_of_1(tiny):
    model = own_model(tiny)
    config = changed(CONFIG, filter_zero_variance=False, importance_sampling_cap=2.0)
    figures = trainer_of(model, tiny.model, tiny, config).step(0)
    assert figures["sampler_trainer_logprob_gap"] < 1e-5
    assert figures["importance"] == pytest.approx(1, abs=1e-5)


def test_the_gradient_on_another_samplers_replies_is_weighed_by_how_likely_the_policy_finds_them(tiny):
    """Without KL: each token's gradient is that of −w·A·log π, taken here by hand from the unpacked way."""
    model, plain = own_model(tiny), tiny.plain_model()
    config = changed(CONFIG, filter_zero_variance=False, importance_sampling_cap=1.5, beta=0.0)
    trainer = GrpoTrainer(
        Policy(model), Policy(model), tiny.tokenizer, tiny.trunks, config, RewardConfig(), seed=0,
        engine=OtherNumerics(Policy(model), 1.2),
    )  # fmt: skip
    groups = trainer.groups(0)
    (batch,) = micro_batches(groups, 100_000)
    figures = trainer.learn([batch], None)
    (stats,) = trainer.statistics([batch])
    rewards = torch.tensor(trainer.rewards(batch.rollouts, stats)[0])
    advantages = trainer.advantages(rewards.view(-1, config.num_generations)).flatten()
    loss = torch.tensor(0.0)
    rollouts = [(group, rollout) for group in groups for rollout in group.rollouts]
    for (group, rollout), advantage in zip(rollouts, advantages.tolist(), strict=True):
        prompt = group.trunk.tokens[: group.step.start]
        log_probs = unpacked_log_probs(plain, prompt, rollout.tokens, config.temperature)
        ratios = (log_probs.detach() - torch.tensor(rollout.sampled.log_probs)).exp()
        loss = loss - advantage * (ratios.clamp(max=1.5) * log_probs).mean() / len(rollouts)
    loss.backward()
    assert figures["sampler_trainer_logprob_gap"] > 0.05
    assert_same_gradients(model, plain)


def test_every_step_samples_with_random_numbers_of_its_own(tiny):
    seeds: list[object] = []

    class Recording(LocalEngine):
        def generate(self, *arguments: Any, seed: int | Sequence[int], **options: Any) -> list[list[SampledReply]]:
            seeds.append(seed)
            return super().generate(*arguments, seed=seed, **options)

    config = changed(CONFIG, max_new_tokens=2)
    policy = Policy(tiny.model)
    trainer = GrpoTrainer(
        policy, policy, tiny.tokenizer, tiny.trunks, config, RewardConfig(), seed=0, engine=Recording(policy)
    )
    for step in (0, 1, 2, 1):
        trainer.groups(step)
    assert seeds[1] == seeds[3] and len({*map(str, seeds)}) == 3


def test_later_updates_on_a_batch_are_clipped_against_the_policy_that_sampled(tiny):
    weights = {}
    for clip in (0.0, 10.0):
        model = own_model(tiny)
        trainer = trainer_of(model, tiny.model, tiny, changed(CONFIG, num_iterations=3, epsilon=clip))
        batch = list(micro_batches(hand_made_groups(tiny), CONFIG.max_batch_tokens))
        old = trainer.statistics(batch)
        for update in range(3):
            trainer.learn(batch, old)
            trainer.optimizer.step(update)
            flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
            weights[clip, update] = flat
    assert torch.equal(weights[0.0, 0], weights[10.0, 0])  # at the first update every ratio is 1
    assert not torch.equal(weights[0.0, 1], weights[10.0, 1])


def test_a_reply_cut_by_its_length_is_told_from_a_malformed_one(tiny):
    trunk = tiny.trunks[0]
    step = trunk.replies[1]
    logged = trunk.tokens[step.start : step.end]
    replies = [logged, logged[:4], [*logged[:4], tiny.tokenizer.eos_token_id], logged[:4]]
    figures = rollout_metrics([score_group(trunk, step, sampled(tiny, replies), tiny.tokenizer, RewardConfig())])
    assert (figures["malformed"], figures["cut"], figures["exact"]) == (0.25, 0.5, 0.25)


def test_the_figures_hold_each_term_of_the_reward_and_the_mix_of_actions(tiny):
    click, typing = Click(name="buy"), TypeAndSubmit(name="search", text="red tent")
    step = dataclasses.replace(tiny.trunks[0].replies[1], action=click)
    replies = [format_reply("So.", action) for action in (click, click, typing)]
    figures = rollout_metrics([group_of(tiny, [*replies, "buy it"], step)])
    assert (figures["logged_click"], figures["logged_terminate"], figures["logged_commonest"]) == (1, 0, 1)
    assert [figures[f"sampled_{name}"] for name in ("click", "type_and_submit", "commonest")] == [2 / 3, 1 / 3, 2 / 3]
    assert (figures["reward_format"], figures["reward_format_std"]) == pytest.approx((0.375, 0.5 * 3**0.5 / 4))
    assert figures["reward_action_type"] == pytest.approx(0.15)
    terms = [value for name, value in figures.items() if name.startswith("reward_") and not name.endswith("_std")]
    assert sum(terms) == pytest.approx(figures["action_reward"])


def test_a_batch_without_a_readable_reply_has_no_mix_of_sampled_actions(tiny):
    figures = rollout_metrics([group_of(tiny, ["buy it"] * 2, tiny.trunks[0].replies[1])])
    assert not [name for name in figures if name.startswith("sampled_")]
    assert measured_metrics("self_certainty", [None, None]) == {}


def test_tokens_count_sampling_and_the_reference_as_often_as_a_model_read_them(tiny, monkeypatch):
    read = {"policy": 0, "reference": 0}

    def counted(name: str, model: Any) -> Any:
        def count(module: Any, given: Any, named: Any) -> None:
            read[name] += named["input_ids"].numel()

        model.get_decoder().register_forward_pre_hook(count, with_kwargs=True)
        return model

    def count_sampled(layers: Any, tokens: Tensor, *arguments: Any) -> Any:
        read["policy"] += tokens.numel()
        return logits(layers, tokens, *arguments)

    model, reference = own_model(tiny), own_model(tiny)
    LocalEngine(Policy(model)).generate([[1]], SamplingConfig(0, 1, -1), seed=0)  # its layers are tried once
    logits = DecoderLayers.logits
    monkeypatch.setattr(DecoderLayers, "logits", count_sampled)
    config = changed(CONFIG, num_iterations=2, filter_zero_variance=False, max_new_tokens=4)
    trainer = trainer_of(counted("policy", model), counted("reference", reference), tiny, config)
    metrics = trainer.step(0)
    assert metrics["tokens"] == sum(read.values())
    assert min(read.values()) > 0
    weights = sum(m.weight.numel() for m in model.get_decoder().modules() if isinstance(m, torch.nn.Linear))
    assert metrics["flops"] > 2 * weights * (metrics["tokens"] + 2 * read["reference"])  # two updates go backward


def test_used_groups_are_dealt_again_so_that_processes_have_as_many_tokens(tiny):
    groups = hand_made_groups(tiny)
    by_rank = [groups, []]

    class Other(Ranks):
        def all_gather(self, own: Any) -> list[list[Any]]:
            return by_rank

    dealt = [deal_groups(by_rank[rank], Other(rank, 2)) for rank in range(2)]
    assert sorted(map(id, [*dealt[0], *dealt[1]])) == sorted(map(id, groups)), "each group once"
    sessions = [{id(group.trunk) for group in own} for own in dealt]
    assert sessions[0] and sessions[1] and not sessions[0] & sessions[1], "a session's together"
    assert deal_groups(groups, Ranks()) == groups
