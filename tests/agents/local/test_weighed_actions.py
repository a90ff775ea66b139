"""Probabilities of actions by a language model: a policy's equal those of plain forward passes."""

import numpy as np
import pytest

from agents.local.weighed_actions import compute_shares, weigh_actions
from replay_sessions.schema import Action, TypeAndSubmit
from shop_env.candidates import candidate_actions
from shop_env.observation import observe_session
from shop_env.prompts import PromptConfig
from tests.agents.local.test_decoding import plain_shares
from tests.train.conftest import prompt_tokens
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
    _, (shares, _) = compute_shares(Policy(tiny.model), tiny.tokenizer, pages)
    for rationale, row in zip(rationales, shares, strict=True):
        expected = plain_shares(plain, tiny.tokenizer, prompt, rationale, candidates)
        assert row.tolist() == pytest.approx(expected.tolist(), rel=1e-3)


def test_draws_that_cannot_be_read_favour_no_action(tiny):
    observation = observe_session(tiny.sessions[0])[1]
    prompt = prompt_tokens(tiny.tokenizer, observation, PromptConfig(style="compact"))
    uniforms = draw_uniforms([np.random.default_rng(0)], 2, 4)
    # Untrained weights write no JSON.
    (page,) = weigh_actions(Policy(tiny.model), tiny.tokenizer, [prompt], [observation], uniforms)
    candidates = candidate_actions(observation)
    assert page.probabilities(2) == pytest.approx(dict.fromkeys(candidates, 1 / len(candidates)))
