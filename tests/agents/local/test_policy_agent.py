"""A trained policy's replies depend on the observation and the seed, and on nothing that is asked beside it."""

from typing import Any

import pytest
import torch

from agents.local import policy_agent as module
from agents.local.policy_agent import PolicyAgent
from replay_sessions.foundation.errors import DeviceFailed, PromptTooLong
from shop_env.evaluation.evaluate import evaluate
from shop_env.metrics import checked_distribution
from shop_env.observation import ContextConfig
from tests.scored_steps import generate_replies, scored_steps
from tests.train.conftest import Tiny, checkpoint_info
from tests.train.conftest import tiny as tiny


def policy_agent(tiny: Tiny, max_tokens: int = 4096, **fields: Any) -> PolicyAgent:
    info = checkpoint_info(temperature=1.0, max_new_tokens=6, max_tokens=max_tokens, **fields)
    return PolicyAgent(policy=(tiny.model, tiny.tokenizer, info), rationales=2)


def test_sampled_replies_are_the_same_in_any_batch_order_and_resume(tiny, demo_store):
    steps = list(scored_steps(demo_store, "test", sessions=3))
    agent = policy_agent(tiny)
    together = {step.key: reply for step, reply in generate_replies(agent, steps, seed=3, batch_size=1000)}
    assert len(set(together.values())) > 1
    for asked, batch_size in ((steps, 1), (steps[::-1], 7), (steps[9:], 4)):
        for step, reply in generate_replies(agent, asked, seed=3, batch_size=batch_size):
            assert reply == together[step.key]
    assert {step.key: reply for step, reply in generate_replies(agent, steps, seed=4, batch_size=1000)} != together


def test_a_reset_and_one_question_equal_a_batch(tiny, demo_store):
    observation = next(scored_steps(demo_store, "test")).observation
    agent = policy_agent(tiny)
    agent.reset(seed=11)
    assert [agent.act(observation)] == agent.act_batch([observation], seeds=[11])


@pytest.mark.parametrize("rationales", [True, False])
def test_past_rationales_are_in_the_prompt_only_of_a_policy_trained_with_them(tiny, demo_store, *, rationales):
    agent = policy_agent(tiny, context=ContextConfig(rationales=rationales))
    observation = [step.observation for step in scored_steps(demo_store, "test", sessions=1)][-1]
    text = tiny.tokenizer.decode(agent.prompt_tokens(observation))
    shown = [past["rationale"] in text for past in observation["history"]]
    assert shown == [rationales] * len(observation["history"])


def test_a_policy_is_shown_the_marks_that_it_was_trained_with(tiny, demo_store):
    marked, plain, tables = ContextConfig(marks=True), ContextConfig(), []
    for trained, asked in ((marked, plain), (marked, marked), (plain, marked), (plain, plain)):
        agent = policy_agent(tiny, max_tokens=150, context=trained)  # so that windows of pages are shown
        records = evaluate(agent, demo_store, "test", context=asked, sessions=3)
        tables.append([(record.reply, record.page_cut, record.target_shown) for record in records])
    assert tables[0] == tables[1] and tables[2] == tables[3]
    assert any(cut and shown for _, cut, shown in tables[0]) and not all(shown for *_, shown in tables[0])


def test_a_page_that_is_too_long_costs_its_own_step(tiny, demo_store):
    observation = next(scored_steps(demo_store, "test")).observation
    long = {**observation, "page": observation["page"] * 200}
    agent = policy_agent(tiny, max_tokens=2000, long_pages="skip")
    fits, too_long, again = agent.act_batch([observation, long, observation], seeds=[1, 2, 1])
    assert isinstance(too_long, PromptTooLong)
    assert fits == again and isinstance(fits, str)


def test_probabilities_are_distributions_and_do_not_depend_on_the_batch(tiny, demo_store):
    steps = list(scored_steps(demo_store, "test"))[:3]
    agent = policy_agent(tiny)
    observations = [step.observation for step in steps]
    together = agent.probabilities(observations, seeds=[1, 2, 3])
    for observation, seed, found in zip(observations, (1, 2, 3), together, strict=True):
        assert not isinstance(found, Exception)
        checked_distribution(found)
        (alone,) = agent.probabilities([observation], seeds=[seed])
        assert found == pytest.approx(alone)


def with_memory_for(monkeypatch: pytest.MonkeyPatch, steps: int, error: Exception) -> None:
    """The device fails where more prompts than these are read at once."""
    generate = module.generate

    def limited(policy: Any, prompts: Any, *arguments: Any, **options: Any) -> Any:
        if len(prompts) > steps:
            raise error
        return generate(policy, prompts, *arguments, **options)

    monkeypatch.setattr(module, "generate", limited)


def test_a_batch_that_does_not_fit_the_device_is_read_in_parts(tiny, demo_store, monkeypatch):
    whole = evaluate(policy_agent(tiny), demo_store, "test", sessions=4)
    with_memory_for(monkeypatch, 3, torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert evaluate(policy_agent(tiny), demo_store, "test", sessions=4) == whole
    assert not any(record.error for record in whole)


@pytest.mark.parametrize(
    ("steps", "error"),
    [(0, torch.OutOfMemoryError("CUDA out of memory")), (5, RuntimeError("CUDA error: device-side assert triggered"))],
)
def test_a_device_that_fails_ends_the_evaluation_and_is_no_error_of_a_step(tiny, demo_store, monkeypatch, steps, error):
    with_memory_for(monkeypatch, steps, error)
    with pytest.raises(DeviceFailed, match="CUDA"):
        evaluate(policy_agent(tiny), demo_store, "test", sessions=4)


def test_an_error_that_is_not_the_device_s_is_one_of_its_steps(tiny, demo_store, monkeypatch):
    with_memory_for(monkeypatch, 0, RuntimeError("shapes do not match"))
    records = evaluate(policy_agent(tiny), demo_store, "test", sessions=2)
    assert {record.error for record in records} == {"RuntimeError: shapes do not match"}
