"""The exact policy gradient against a sum over the enumerated actions of a page, and GRPO's estimate of it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from shop_env.observation import ContextConfig, observe
from shop_env.prompts import PromptConfig
from shop_env.replies import format_reply
from shop_env.reward import RewardConfig, reward_preset
from shop_env.reward.score import score_action
from tests.agents.local.test_decoding import taught
from tests.stores import store_at
from tests.train.conftest import Tiny, own_model, prompt_tokens
from tests.train.test_candidates import CLICKS, COMPACT, PAGE, SILENT, TYPED, enumerated
from train.candidates import CandidateTries, StepCandidates
from train.config import OptimizerConfig
from train.grpo.config import GrpoConfig
from train.grpo.groups import micro_batches
from train.objectives.expected_reward import ExpectedReward
from train.objectives.grpo import GrpoTrainer
from train.policy import Policy
from train.tokens import reply_tokens, tokenize_session

TEMPERATURE, BETA = 0.7, 0.3


def session_of(*actions: Action, rationale: str) -> Session:
    steps = tuple(Step(page=PAGE, action=action, rationale=rationale or None) for action in (Terminate(), *actions))
    return Session(session_id="s", user_id="u", source="test", steps=steps)


def trainer_of(
    tiny: Tiny,
    path: Path,
    session: Session,
    prompt: PromptConfig,
    reward: RewardConfig,
    models: tuple[Any, Any],
    beta: float = BETA,
    temperature: float = TEMPERATURE,
) -> ExpectedReward:
    config = GrpoConfig(optimizer=OptimizerConfig(lr=1e-3), steps=2, temperature=temperature, beta=beta)
    trunks = tokenize_session(tiny.tokenizer, session, ContextConfig(), prompt, 4096)
    steps = StepCandidates(store_at(path, [session]), CandidateTries(tiny.tokenizer, prompt), ContextConfig())
    policy, reference = (Policy(model) for model in models)
    return ExpectedReward(policy, reference, tiny.tokenizer, trunks, config, reward, seed=0, candidates=steps)


def in_float64(tiny: Tiny, *, shift: float = 0.0) -> Any:
    model = own_model(tiny).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1 + shift)
    return model


@pytest.mark.parametrize(("rationale", "reward"), [("", "shop_r1"), ("I like it.", "customer_r1")])
def test_the_gradient_is_that_of_a_sum_over_the_enumerated_actions(tiny, tmp_path, rationale, reward):
    prompt = COMPACT if rationale else SILENT
    session = session_of(CLICKS[1], TYPED, CLICKS[3], rationale=rationale)
    config = reward_preset(reward)
    trainer = trainer_of(tiny, tmp_path, session, prompt, config, (in_float64(tiny), in_float64(tiny, shift=0.1)))
    trainer.optimizer.step = lambda step: {}  # the gradient stays
    metrics = trainer.step(0)
    models = [model.double() for model in (tiny.plain_model(), tiny.plain_model())]
    with torch.no_grad():
        for parameter in models[1].parameters():
            parameter.mul_(1.1)
    losses, exact = [], []
    for index, step in enumerate(session.steps[1:], 1):
        tokens = prompt_tokens(tiny.tokenizer, observe(session, index), prompt)
        probabilities = []
        for model in models:
            offered = [
                enumerated(
                    model, tiny.tokenizer, tokens, [*CLICKS, TYPED], action, rationale,
                    temperature=TEMPERATURE, writes_rationale=False,
                )
                for action in (*CLICKS, TYPED)
            ]  # fmt: skip
            typed, text = (each.exp() for each in offered[-1])
            split = [typed * text, typed * (1 - text)] if step.action == TYPED else [typed]
            probabilities.append(torch.stack([*(chosen.exp() for chosen, _ in offered[:-1]), *split]))
        actions = [*CLICKS, *([TYPED] if step.action == TYPED else []), TypeAndSubmit(name="search", text="")]
        rewards = torch.tensor([score_action(action, step.action, config).total for action in actions])
        now, before = probabilities
        assert now.sum().item() == pytest.approx(1)
        kl = (now * (now / before.detach()).log()).sum()
        losses.append(BETA * kl - (now * rewards).sum())
        exact.append(now[actions.index(step.action)].item())
    loss = torch.stack(losses).mean()
    loss.backward()
    assert metrics["loss"] == pytest.approx(loss.item(), rel=1e-6)
    assert metrics["exact"] == pytest.approx(sum(exact) / 3, rel=1e-6)
    for (name, ours), theirs in zip(trainer.policy.model.named_parameters(), models[0].parameters(), strict=True):
        assert (ours.grad - theirs.grad).abs().max() <= 1e-6 * theirs.grad.abs().max(), name


@pytest.mark.long
def test_grpo_s_gradient_goes_to_the_exact_one_with_many_replies(tiny, tmp_path):
    """With replies of equal length, β 0, no scale, all groups, and weights that write little else than the actions."""
    clicks = [Click(name=name) for name in ("xa", "xb", "yc")]
    page = "".join(f'<a name="{click.name}">x</a>' for click in clicks)
    steps = (Step(page=page, action=Terminate()), Step(page=page, action=clicks[0]))
    session = Session(session_id="s", user_id="u", source="test", steps=steps)
    replies = [format_reply("", clicks[number]) for number in (0, 0, 0, 1, 1, 2)]
    shopper = taught(tiny, observe(session, 1), replies)
    (length,) = {len(tokens) for tokens in reply_tokens(tiny.tokenizer, replies)}
    reward = reward_preset("binary")
    models = own_model(shopper), own_model(shopper)
    exact = trainer_of(tiny, tmp_path, session, SILENT, reward, models, beta=0.0, temperature=1.0)
    exact.optimizer.step = lambda step: {}
    assert exact.step(0)["action_reward"] > 0.2
    config = msgspec.structs.replace(
        exact.config, num_generations=1200, scale_rewards="none", filter_zero_variance=False, max_new_tokens=length
    )
    trunks = tokenize_session(tiny.tokenizer, session, ContextConfig(), SILENT, 4096)
    policies = Policy(own_model(shopper)), Policy(own_model(shopper))
    grpo = GrpoTrainer(*policies, tiny.tokenizer, trunks, config, reward, seed=0)
    grpo.learn(list(micro_batches(grpo.groups(0), 10**6)), None)
    ours, estimate = (
        torch.cat([parameter.grad.flatten() for parameter in trainer.policy.model.parameters()])
        for trainer in (exact, grpo)
    )
    assert (length * estimate - ours).norm() < 0.15 * ours.norm()
