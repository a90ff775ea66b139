"""GRPO by the likelihood of the logged action: the reward against unpacked rows, and replies that try to cheat it."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Click, Terminate
from shop_env.replies import format_reply
from shop_env.reward import score_reply
from shop_env.reward.score import LOG_LIKELIHOOD
from tests.oracles.unpacked_policy import unpacked_log_probs
from tests.train.conftest import Tiny, assert_same_gradients, own_model
from tests.train.test_grpo import CONFIG, changed, sampled, shifted_reference
from train.grpo.chunk import advantages_of_tokens
from train.grpo.groups import Group, micro_batches, score_group
from train.grpo.likelihood import LEAST
from train.grpo.loss import kl_divergence, scaled_advantages
from train.objectives.likelihood import Likelihood
from train.policy import Policy
from train.rollouts.engine import LocalEngine, SampledReply
from train.session_tree import enable_tree_attention
from train.tokens import reply_tokens

UNDIVIDED = changed(CONFIG, scale_rewards="none")
COPY = 'I do {\\"action\\": {\\"type\\": \\"click\\", \\"name\\": \\"buy\\"}}'  # as JSON text: quotes are escaped


def trainer_of(tiny: Tiny, model: Any, reference: Any, **options: Any) -> Likelihood:
    config, policy = changed(UNDIVIDED, **options), Policy(model)
    return Likelihood(policy, Policy(reference), tiny.tokenizer, tiny.trunks, config, LOG_LIKELIHOOD, seed=0)


def group_of(tiny: Tiny, texts: list[str], place: int = 1) -> Group:
    """A group whose replies are these texts."""
    step = tiny.trunks[0].replies[place]
    replies = sampled(tiny, reply_tokens(tiny.tokenizer, texts))
    return score_group(tiny.trunks[0], step, replies, tiny.tokenizer, LOG_LIKELIHOOD)


def rewards_of(tiny: Tiny, *groups: Group) -> list[float]:
    """As the trainer measures them, in one pass."""
    trainer = trainer_of(tiny, own_model(tiny), own_model(tiny))
    (micro_batch,) = micro_batches(groups, 100_000)
    (stats,) = trainer.statistics([micro_batch])
    return trainer.rewards(micro_batch.rollouts, stats)[0]


def unpacked_reward(tiny: Tiny, group: Group, rationale: str) -> float:
    """The mean log-probability of the logged action's tokens at temperature 1, from a row of its own."""
    before, behind = f'{{"rationale": "{rationale}', format_reply("", group.step.action).split('""')[1]
    ((*shared, _), logged) = reply_tokens(tiny.tokenizer, [before, f'"{behind}'])
    prompt = [*group.trunk.tokens[: group.step.start], *shared]
    with torch.no_grad():
        return unpacked_log_probs(tiny.plain_model(), prompt, logged, 1.0).mean().item()


@pytest.mark.parametrize("place", [1, 2])
def test_the_reward_is_the_mean_log_probability_of_the_logged_action_behind_the_rationale(tiny, place):
    rationales = ["I look at it.", "", COPY, "Something else. " * 8]
    actions = [Click(name="a.b"), Terminate(), tiny.trunks[0].replies[place].action, Click(name="")]
    texts = [
        f'{{"rationale": "{rationale}", "action": {format_reply("", action).split(": ", 2)[2]}'
        for rationale, action in zip(rationales, actions, strict=True)
    ]
    group = group_of(tiny, texts, place)
    found, wanted = rewards_of(tiny, group), [unpacked_reward(tiny, group, rationale) for rationale in rationales]
    assert found == pytest.approx(wanted, abs=1e-5)
    assert len(set(found)) == 4


def test_the_sampled_action_and_the_length_of_the_rationale_do_not_enter(tiny):
    actions = [Click(name="a.b"), Terminate(), tiny.trunks[0].replies[1].action]
    same = rewards_of(tiny, group_of(tiny, [format_reply("I look at it.", action) for action in actions]))
    assert same == [same[0]] * 3
    alike = group_of(tiny, [format_reply(text, Terminate()) for text in ("So.", "I look.", "So.", "I look.")])
    lengths = [len(rollout.logged[1]) for rollout in alike.rollouts if rollout.logged]
    assert lengths == [lengths[0], lengths[0], 0, 0], "one continuation for all replies that begin alike"
    first, second, *others = rewards_of(tiny, alike, group_of(tiny, [format_reply("So.", Terminate())] * 2, 2))
    assert others[:2] == [first, second] and first != second
    assert others[2] == others[3] not in (first, second), "another step's is its own"
    # The mean is over the logged tokens: a reward of n more rationale tokens would show their log-probabilities.
    group = group_of(tiny, [format_reply("a" * count, Terminate()) for count in (0, 60)])
    assert [len(rollout.logged[1]) for rollout in group.rollouts if rollout.logged] == [
        len(group.rollouts[0].logged[1])
    ] * 2


def test_a_reply_without_a_place_for_the_logged_action_earns_the_least(tiny):
    action = format_reply("", Terminate()).split('"action": ')[1][:-1]
    texts = [
        "I would click.",
        '{"rationale": "It grew and grew',  # cut off by max_new_tokens
        f'{{"action": {action}, "rationale": "I did it."}}',
        "",
        format_reply("So.", Terminate()),
    ]
    group = group_of(tiny, texts)
    *none, usual = rewards_of(tiny, group)
    assert none == [LEAST] * 4 and LEAST < usual < 0
    assert [rollout.logged is None for rollout in group.rollouts] == [True] * 4 + [False]
    assert all(rollout.rewarded_tokens == rollout.tokens for rollout in group.rollouts[:4])


def test_a_token_that_reaches_beyond_the_rationale_is_left_to_the_action_where_they_differ(tiny):
    group = group_of(
        tiny, ['{"rationale":"So." ,"action":{"type":"terminate"}}', '{"rationale": "", "action": {"type": "click"}}']
    )
    for rollout in group.rollouts:
        shared, logged = rollout.logged
        text = tiny.tokenizer.decode([*rollout.tokens[:shared], *logged], skip_special_tokens=True)
        parsed = score_group(
            group.trunk,
            group.step,
            sampled(tiny, [[*rollout.tokens[:shared], *logged]]),
            tiny.tokenizer,
            LOG_LIKELIHOOD,
        )
        assert parsed.exact == 1, text


def test_groups_without_different_rationales_teach_nothing(tiny):
    actions = [Click(name="a.b"), Terminate(), Click(name="c")]
    assert not group_of(tiny, [format_reply("", action) for action in actions]).is_informative
    assert not group_of(tiny, ["no JSON"] * 3).is_informative
    assert group_of(tiny, [format_reply("", Terminate()), "no JSON"]).is_informative
    assert group_of(tiny, [format_reply(text, Terminate()) for text in ("", "So.")]).is_informative


class WithoutRationales(LocalEngine):
    """A policy that was taught replies without rationales; every other reply is cut."""

    def __init__(self, tiny: Tiny) -> None:
        super().__init__(Policy(tiny.model))
        self._group = sampled(tiny, [*reply_tokens(tiny.tokenizer, [format_reply("", Terminate())] * 2), [5]])

    def generate(self, prompts: Sequence[Sequence[int]], *_: Any, **__: Any) -> list[list[SampledReply]]:
        return [self._group for _ in prompts]


def test_a_policy_that_writes_no_rationales_is_refused(tiny):
    trainer = trainer_of(tiny, own_model(tiny), own_model(tiny))
    trainer._engine = WithoutRationales(tiny)
    with pytest.raises(BadConfig, match=r"67% are readable and without, 33% are malformed.*SFT maximizes the same"):
        trainer.step(0)


def test_no_text_can_be_scored_by_it():
    with pytest.raises(BadConfig, match="is measured by the policy in training"):
        score_reply(format_reply("So.", Terminate()), Terminate(), LOG_LIKELIHOOD)


@pytest.mark.parametrize("options", [{}, {"max_batch_tokens": 200}], ids=str)
def test_the_gradient_is_that_of_the_unpacked_way_on_rationales_alone(tiny, options):
    model, plain, reference, frozen = (
        own_model(tiny),
        tiny.plain_model(),
        shifted_reference(tiny),
        shifted_reference(tiny),
    )
    enable_tree_attention(frozen)
    trainer = trainer_of(tiny, model, frozen, **options)
    rationales = ["I look at it.", "", "So."]
    texts = [*(format_reply(rationale, Click(name="x")) for rationale in rationales[:2]), "So."]
    groups = [group_of(tiny, texts, place) for place in (1, 2)]
    batch = list(micro_batches(groups, trainer.config.max_batch_tokens))
    figures = trainer.learn(batch, None)
    rewards = [[*(unpacked_reward(tiny, group, rationale) for rationale in rationales[:2]), LEAST] for group in groups]
    advantages = scaled_advantages(torch.tensor(rewards), trainer.config.scale_rewards).flatten()
    losses = []
    for rollout, advantage in zip([r for group in groups for r in group.rollouts], advantages, strict=True):
        prompt = tiny.trunks[0].tokens[: rollout.step.start]
        log_probs, kept = (unpacked_log_probs(each, prompt, rollout.tokens, 0.6) for each in (plain, reference))
        gain = advantages_of_tokens(advantage[None], [rollout]) * (log_probs - log_probs.detach()).exp()
        losses.append((-gain + CONFIG.beta * kl_divergence(log_probs, kept.detach())).mean())
    loss = torch.stack(losses).mean()
    loss.backward()
    assert figures["loss"] == pytest.approx(loss.item(), abs=1e-5)
    assert figures["log_likelihood"] == pytest.approx(torch.tensor(rewards).mean().item(), abs=1e-5)
    assert_same_gradients(model, plain)


def test_tokens_behind_the_rationale_have_no_advantage_but_all_of_a_malformed_reply_do(tiny):
    group = group_of(tiny, [format_reply("I look at it.", Terminate()), "no JSON"])
    readable, malformed = group.rollouts
    found = advantages_of_tokens(torch.tensor([2.0, -1.0]), group.rollouts).tolist()
    shared, rest = readable.logged[0], len(readable.tokens) - readable.logged[0]
    assert shared > 1 and rest > 1
    assert found == [2.0] * shared + [0.0] * rest + [-1.0] * len(malformed.tokens)
