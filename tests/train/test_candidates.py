"""Restricted policies against an oracle that lists a page's replies and takes a softmax over what may follow."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agents.local.policy_agent import PolicyAgent
from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from shop_env.observation import ContextConfig, Observation, observe
from shop_env.prompts import PromptConfig
from shop_env.replies import Reply, format_reply, parse_reply
from tests.stores import store_at
from tests.train.conftest import Tiny, checkpoint_info, own_model, prompt_tokens
from train import candidates
from train.candidates import CandidateTries, StepCandidates
from train.chat_template import stop_token
from train.config import OptimizerConfig, SamplingConfig, SftConfig, SftStage
from train.objectives.candidate_likelihood import CandidateLikelihood
from train.policy import Policy
from train.rollouts.engine import generate
from train.rollouts.sampling import draw_uniforms
from train.tokens import decode_replies, reply_tokens, tokenize_session

COMPACT, SILENT = (PromptConfig(style="compact", rationales=rationales) for rationales in (True, False))
LINKS = '<a name="tea_1">Tea</a><a name="tea_12">Tea</a><a name="cart">Cart</a>'
PAGE = LINKS + '<input name="search">'
CLICKS: list[Action] = [Terminate(), Click(name="tea_1"), Click(name="tea_12"), Click(name="cart")]
TYPED = TypeAndSubmit(name="search", text="tea")


def enumerated(
    model: Any,
    tokenizer: Any,
    prompt: Sequence[int],
    actions: Sequence[Action],
    action: Action,
    rationale: str = "",
    *,
    temperature: float = 1.0,
    writes_rationale: bool = True,
) -> tuple[Tensor, Tensor]:
    """The log-probability of a reply among those with these actions, and that of its rationale and text.

    With `writes_rationale`, tokens that begin before the rationale's last quote are drawn from the whole vocabulary if
    it has one; those that reach into a text always are.
    """
    texts = [format_reply(rationale, each) for each in (action, *actions)]
    reply, *others = reply_tokens(tokenizer, texts)
    first = texts[0].index('", "action"') + 1 if rationale and writes_rationale else 0
    last = texts[0].index('"text": "') + 9 if isinstance(action, TypeAndSubmit) else len(texts[0])
    logits = model(torch.tensor([[*prompt, *reply]])).logits[0, len(prompt) - 1 : -1].double() / temperature
    chosen, free = logits.new_zeros(2)
    for place, token in enumerate(reply):
        begin, end = (len(tokenizer.decode(reply[:n], skip_special_tokens=True)) for n in (place, place + 1))
        if begin >= first and end <= last:
            follow = sorted({other[place] for other in others if other[:place] == reply[:place]})
            chosen = chosen + logits[place, token] - logits[place, follow].logsumexp(dim=0)
        else:
            free = free + logits[place].log_softmax(dim=0)[token]
    return chosen, free


def session_of(*actions: Action, rationale: str = "") -> Session:
    steps = tuple(Step(page=PAGE, action=action, rationale=rationale or None) for action in actions)
    return Session(session_id="s", user_id="u", source="test", steps=steps)


def trainer_of(tiny: Tiny, session: Session, prompt: PromptConfig, path: Path) -> CandidateLikelihood:
    context = ContextConfig()
    trunks = tokenize_session(tiny.tokenizer, session, context, prompt, 4096)
    config = SftConfig(optimizer=OptimizerConfig(lr=1e-2), stages=(SftStage(steps=60),), max_batch_tokens=8)
    steps = StepCandidates(store_at(path, [session]), CandidateTries(tiny.tokenizer, prompt), context)
    return CandidateLikelihood(Policy(own_model(tiny)), trunks, config, candidates=steps, seed=0)


def test_the_probabilities_of_a_page_s_actions_sum_to_1_and_are_those_of_the_agent(tiny):
    observation: Observation = {"page": LINKS, "history": (), "persona": "", "goal": "", "step": 0}
    prompt = prompt_tokens(tiny.tokenizer, observation, SILENT)
    plain = tiny.plain_model()
    expected = {each: enumerated(plain, tiny.tokenizer, prompt, CLICKS, each)[0].exp().item() for each in CLICKS}
    assert sum(expected.values()) == pytest.approx(1)
    info = checkpoint_info(restricted=True, prompt=SILENT)
    agent = PolicyAgent(policy=(tiny.model, tiny.tokenizer, info), rationales=0)
    (probabilities,) = agent.probabilities([observation], seeds=[0])
    assert probabilities == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("rationale", ["", "I like it."])
def test_the_loss_is_the_sum_over_the_branches_of_whole_replies(tiny, tmp_path, rationale):
    prompt = COMPACT if rationale else SILENT
    elsewhere = Click(name="not_on_the_page")
    session = session_of(CLICKS[1], TYPED, elsewhere, CLICKS[3], CLICKS[0], rationale=rationale)
    trainer = trainer_of(tiny, session, prompt, tmp_path)
    plain, losses = tiny.plain_model(), []
    for index, step in enumerate(session.steps):
        tokens = prompt_tokens(tiny.tokenizer, observe(session, index), prompt)
        offered = [*CLICKS, TYPED, *([elsewhere] if step.action == elsewhere else [])]
        losses.append(-sum(enumerated(plain, tiny.tokenizer, tokens, offered, step.action, rationale)).item())
    metrics = trainer.step(0)
    assert metrics["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-4)
    assert metrics["flops"] > 0


def test_a_page_s_only_action_has_no_loss(tiny, tmp_path):
    steps = (Step(page="<p>The end.</p>", action=Terminate()),)
    session = Session(session_id="s", user_id="u", source="test", steps=steps)
    assert trainer_of(tiny, session, SILENT, tmp_path).step(0)["loss"] == 0


def test_untrained_weights_write_a_page_s_actions_alone_as_often_as_their_probabilities(tiny):
    observation: Observation = {"page": LINKS, "history": (), "persona": "", "goal": "", "step": 0}
    prompt = prompt_tokens(tiny.tokenizer, observation, SILENT)
    number = 300
    sampling = SamplingConfig(1.0, 24, stop_token(tiny.tokenizer), number)
    (replies,) = generate(
        Policy(own_model(tiny)),
        [prompt],
        sampling,
        uniforms=draw_uniforms([np.random.default_rng(0)], number, 24),
        tries=[CandidateTries(tiny.tokenizer, SILENT).of_page(LINKS)],
    )
    parsed = [parse_reply(text) for text in decode_replies(tiny.tokenizer, [reply.tokens for reply in replies])]
    counts = Counter(reply.action if isinstance(reply, Reply) else None for reply in parsed)
    plain = tiny.plain_model()
    for action in CLICKS:
        expected = enumerated(plain, tiny.tokenizer, prompt, CLICKS, action)[0].exp().item()
        assert counts[action] / number == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / number))
    assert sum(counts[action] for action in CLICKS) == number
    assert isinstance(parsed[0], Reply)
    log_prob, _ = enumerated(plain, tiny.tokenizer, prompt, CLICKS, parsed[0].action)
    assert sum(replies[0].log_probs) == pytest.approx(log_prob.item(), rel=1e-4)


@pytest.mark.long
def test_it_learns_rationales_clicks_and_typed_texts_and_the_agent_writes_them(tiny, tmp_path):
    session = session_of(CLICKS[1], TYPED, CLICKS[3], rationale="I like it.")
    trainer = trainer_of(tiny, session, COMPACT, tmp_path)
    for step in range(trainer.total_steps):
        loss = trainer.step(step)["loss"]
    assert loss < 0.2
    info = checkpoint_info(restricted=True, max_new_tokens=40)
    observations = [observe(session, index) for index in range(3)]
    expected = [format_reply("I like it.", step.action) for step in session.steps]
    for options in ({"temperature": 0.0}, {"decode": "most_probable_action", "rationales": 2}):
        agent = PolicyAgent(policy=(trainer.policy.model.eval(), tiny.tokenizer, info), **options)
        assert agent.act_batch(observations, seeds=[0, 1, 2]) == expected


def test_a_long_backward_pass_is_cut_into_parts_with_the_same_gradient(tiny, tmp_path, monkeypatch):
    gradients = []
    for most in (candidates.LOGITS_BYTES, 4 * 5 * 32):
        monkeypatch.setattr(candidates, "LOGITS_BYTES", most)
        trainer = trainer_of(tiny, session_of(*CLICKS), SILENT, tmp_path / str(most))
        gradients.append(trainer.step(0)["grad_norm"])
    assert gradients[0] == pytest.approx(gradients[1], rel=1e-5)
