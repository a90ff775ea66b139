"""Probabilities of actions by a language model: a policy's equal those of plain forward passes."""

import numpy as np
import pytest

from agents.local.weighed_actions import compute_shares, weigh_actions, weigh_without_draws
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit
from shop_env.candidates import candidate_actions
from shop_env.observation import observe_session
from shop_env.prompts import PromptConfig
from shop_env.replies import format_reply
from tests.agents.local.test_decoding import plain_shares, taught
from tests.train.conftest import COMPACT, prompt_tokens
from tests.train.conftest import tiny as tiny
from train.policy import Policy
from train.rollouts.sampling import draw_uniforms


def test_a_policy_s_shares_equal_those_of_one_forward_pass_per_candidate(tiny):
    observation = observe_session(tiny.sessions[0])[1]
    prompt = prompt_tokens(tiny.tokenizer, observation, PromptConfig(style="compact"))
    candidates: list[Action] = [*candidate_actions(observation, 12), TypeAndSubmit(name="search", text="an odd text")]
    rationales = ["I look at it.", "Too dear."]
    plain = tiny.plain_model()
    pages = [(prompt[: len(prompt) // 2], ["Yes."], candidates[:1], None), (prompt, rationales, candidates, None)]
    _, (shares, *_) = compute_shares(Policy(tiny.model), tiny.tokenizer, pages)
    for rationale, row in zip(rationales, shares, strict=True):
        expected = plain_shares(plain, tiny.tokenizer, prompt, rationale, candidates)
        assert row.tolist() == pytest.approx(expected.tolist(), rel=1e-3)


@pytest.mark.parametrize(
    ("action", "is_listed"), [(Terminate(), True), (TypeAndSubmit(name="search", text="an odd text"), False)]
)
def test_a_page_needs_a_greedy_reply_if_it_is_no_candidate(tiny, action, is_listed):
    observation = observe_session(tiny.sessions[0])[1]
    policy = taught(tiny, observation, [format_reply("", action)])
    prompt = prompt_tokens(tiny.tokenizer, observation, COMPACT)
    arguments = Policy(policy.model), tiny.tokenizer, [prompt], [observation]
    found = weigh_without_draws(*arguments, 0, COMPACT)
    (drawn,) = weigh_actions(*arguments, draw_uniforms([np.random.default_rng(0)], 0, 40), COMPACT)
    assert (action in candidate_actions(observation)) == is_listed == (0 in found)
    assert action in drawn.candidates
    if is_listed:
        assert found[0].probabilities(0) == pytest.approx(drawn.probabilities(0))


def test_all_elements_of_a_long_list_have_a_probability(tiny):
    seen = observe_session(tiny.sessions[0])[1]
    prompt = prompt_tokens(tiny.tokenizer, seen, COMPACT)
    names = [f"results.item_{number}.view" for number in range(170)]
    observation = {**seen, "page": "".join(f'<a name="{name}">View</a>' for name in names)}
    draw = draw_uniforms([np.random.default_rng(0)], 0, 40)
    (page,) = weigh_actions(Policy(tiny.model), tiny.tokenizer, [prompt], [observation], draw, COMPACT)
    probabilities = page.probabilities(0)
    assert all(probabilities[Click(name=name)] > 0 for name in names)
    assert sum(probabilities.values()) == pytest.approx(1)


def test_draws_that_cannot_be_read_favour_no_action(tiny):
    observation = observe_session(tiny.sessions[0])[1]
    prompt = prompt_tokens(tiny.tokenizer, observation, PromptConfig(style="compact"))
    uniforms = draw_uniforms([np.random.default_rng(0)], 2, 4)
    # Untrained weights write no JSON.
    (page,) = weigh_actions(Policy(tiny.model), tiny.tokenizer, [prompt], [observation], uniforms)
    candidates = candidate_actions(observation)
    assert page.probabilities(2) == pytest.approx(dict.fromkeys(candidates, 1 / len(candidates)))
