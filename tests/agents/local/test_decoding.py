"""Decoding by the most probable action, or by one drawn from the distribution over actions, against unpacked rows."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch

from agents.local import policy_agent
from agents.local.policy_agent import PolicyAgent
from agents.local.weighed_actions import WeighedActions, stratified_uniforms
from agents.registry import make_agent
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Click, Terminate
from shop_env.candidates import candidate_actions
from shop_env.observation import Observation, observe_session
from shop_env.prompts import PromptConfig
from shop_env.replies import Reply, format_reply, parse_reply
from tests.train.conftest import COMPACT, Tiny, checkpoint_info, prompt_tokens
from tests.train.conftest import tiny as tiny
from train.chat_template import stop_token
from train.checkpoints import save_checkpoint
from train.config import SamplingConfig
from train.policy import Policy
from train.rollouts.engine import generate
from train.session_tree import SessionTree, pack
from train.tokens import decode_replies, reply_tokens

MAX_NEW_TOKENS = 24
RATIONALES = ("", "Too dear.", "I look.")


@pytest.fixture(scope="module")
def observation(tiny) -> Observation:
    return observe_session(tiny.sessions[0])[0]


@pytest.fixture(scope="module")
def shopper(tiny, observation) -> Tiny:
    """The tiny policy, taught to terminate in 2 of 6 replies and to click on another element in each of the others."""
    clicks = [action for action in candidate_actions(observation) if isinstance(action, Click)][:4]
    actions: list[Action] = [Terminate(), Terminate(), *clicks]
    replies = [format_reply(rationale, action) for rationale in RATIONALES for action in actions]
    return taught(tiny, observation, replies)


@pytest.fixture(scope="module")
def closed(observation) -> Observation:
    """On which nothing can be typed."""
    return {**observation, "page": '<html><body><a name="cart">cart</a><a name="home">home</a></body></html>'}


@pytest.fixture(scope="module")
def wordless(tiny, closed) -> Tiny:
    """The tiny policy, taught to write no rationale on that page."""
    return taught(tiny, closed, [format_reply("", action) for action in (*candidate_actions(closed), Terminate())])


def taught(tiny: Tiny, observation: Observation, replies: list[str]) -> Tiny:
    model = copy.deepcopy(tiny.model)
    policy = Policy(model)
    prompt = prompt_tokens(tiny.tokenizer, observation, COMPACT)
    packed = pack([SessionTree(prompt, [len(prompt)], [reply_tokens(tiny.tokenizer, replies)])])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(80):
        optimizer.zero_grad()
        (-policy.log_probs(packed).sum() / len(replies)).backward()
        optimizer.step()
    return Tiny(model, tiny.tokenizer, tiny.sessions, tiny.trunks)


def agent(policy: Tiny, **arguments: object) -> PolicyAgent:
    info = checkpoint_info(temperature=1.0, max_new_tokens=MAX_NEW_TOKENS)
    return PolicyAgent(policy=(policy.model, policy.tokenizer, info), **arguments)


def reply_of(policy: Tiny, observation: Observation, seed: int = 0, **arguments: object) -> Reply:
    (text,) = agent(policy, **arguments).act_batch([observation], seeds=[seed])
    assert isinstance(text, str)
    reply = parse_reply(text)
    assert isinstance(reply, Reply)
    return reply


def test_the_likeliest_tokens_click_where_the_most_probable_action_terminates(shopper, observation):
    assert isinstance(reply_of(shopper, observation, temperature=0.0).action, Click)
    for rationales in (0, 1, 8):
        reply = reply_of(shopper, observation, decode="most_probable_action", rationales=rationales)
        assert reply.action == Terminate()
        assert reply.rationale == "" if rationales == 0 else reply.rationale in RATIONALES


@pytest.mark.parametrize("rationales", [0, 4])
def test_the_most_probable_action_is_that_of_unpacked_rows(shopper, tiny, observation, rationales):
    plain = shopper.plain_model()
    tokenizer, seen = tiny.tokenizer, [observation, *(observe_session(session)[1] for session in tiny.sessions[:3])]
    seeds = [5, 6, 7, 8]
    found = agent(shopper, decode="most_probable_action", rationales=rationales).act_batch(seen, seeds=seeds)
    for observation, seed, reply in zip(seen, seeds, found, strict=True):
        prompt = prompt_tokens(tokenizer, observation, COMPACT)
        sampling = SamplingConfig(
            temperature=1.0 if rationales else 0.0,
            max_new_tokens=MAX_NEW_TOKENS,
            end_token=stop_token(tokenizer),
            num_generations=rationales or 1,
        )
        uniforms = stratified_uniforms([np.random.default_rng(seed)], rationales or 1, MAX_NEW_TOKENS)
        (drawn,) = generate(Policy(shopper.model), [prompt], sampling, uniforms=uniforms)
        texts = map(parse_reply, decode_replies(tokenizer, [sample.tokens for sample in drawn]))
        readable = [text for text in texts if isinstance(text, Reply)]
        candidates = list(dict.fromkeys([*candidate_actions(observation), *(text.action for text in readable)]))
        behind = [text.rationale for text in readable] if rationales else [""]
        shares = torch.stack(
            [plain_shares(plain, tokenizer, prompt, rationale, candidates) for rationale in behind or [""]]
        )
        best = int(shares.mean(dim=0).argmax())
        rationale = (behind or [""])[int(shares[:, best].argmax())]
        assert reply == format_reply(rationale, candidates[best])


def plain_shares(
    model: object, tokenizer: object, prompt: list[int], rationale: str, actions: list[Action]
) -> torch.Tensor:
    """(actions,), summing to 1."""
    return plain_log_probs(model, tokenizer, prompt, rationale, actions).softmax(dim=0)


@torch.no_grad()
def plain_log_probs(
    model: object, tokenizer: object, prompt: list[int], rationale: str, actions: list[Action]
) -> torch.Tensor:
    """(actions,), one pass for each row."""
    totals = []
    for tokens in reply_tokens(tokenizer, [format_reply(rationale, action) for action in actions]):
        logits = model(input_ids=torch.tensor([[*prompt, *tokens]])).logits[0].double()
        log_probs = logits[len(prompt) - 1 : -1].log_softmax(dim=-1)
        totals.append(log_probs.gather(1, torch.tensor(tokens)[:, None]).sum())
    return torch.stack(totals)


def test_one_of_a_page_s_draws_falls_into_each_part():
    drawn = stratified_uniforms([np.random.default_rng(seed) for seed in range(3)], 8, 5)
    assert drawn.shape == (3, 8, 5) and drawn.max() < 1
    parts = (drawn * 8).floor().sort(dim=1).values
    assert (parts == torch.arange(8.0)[None, :, None]).all()
    assert not torch.equal(drawn[0].argsort(dim=0)[:, 0], drawn[0].argsort(dim=0)[:, 1])


def test_of_equally_probable_actions_the_first_is_chosen_and_of_rationales_the_one_that_favours_it():
    actions: list[Action] = [Terminate(), Click(name="a"), Click(name="b")]
    shares = torch.tensor([[0.2, 0.3, 0.5], [0.2, 0.5, 0.3]], dtype=torch.float64)
    page = WeighedActions(actions, {"first": 2, "second": 2}, shares)
    assert page.reply() == format_reply("second", Click(name="a"))


def test_draws_that_cannot_be_read_leave_the_action_after_an_empty_rationale(tiny, observation):
    """Untrained weights write no JSON."""
    drawn = reply_of(tiny, observation, decode="most_probable_action", rationales=2)
    assert drawn == reply_of(tiny, observation, decode="most_probable_action", rationales=0)


def test_nothing_is_drawn_where_a_policy_writes_no_rationale_and_nothing_can_be_typed(wordless, closed, monkeypatch):
    expected = reply_of(wordless, closed, decode="most_probable_action", rationales=0)
    asked = []
    monkeypatch.setattr(
        "agents.local.weighed_actions.generate", lambda *args, **_: asked.append(args) or generate(*args)
    )
    for rationales in (0, 8):
        reply = reply_of(wordless, closed, decode="most_probable_action", rationales=rationales)
        assert reply == expected and reply.action == Terminate()
    assert not any(prompts for _, prompts, *_ in asked)


def test_a_reply_and_its_probabilities_come_from_one_pass(shopper, observation, monkeypatch):
    passes = []
    weigh = policy_agent.weigh_actions
    monkeypatch.setattr(
        policy_agent, "weigh_actions", lambda *args, **names: passes.append(args) or weigh(*args, **names)
    )
    choosing = agent(shopper, decode="most_probable_action", rationales=2)
    (one, first, _), (other, second, _) = choosing.answer([observation] * 2, [1, 2], True)
    replies = [one, other]
    assert len(passes) == 1
    assert isinstance(first, dict) and math.fsum(first.values()) == pytest.approx(1)
    assert choosing.probabilities([observation], seeds=[2]) == [pytest.approx(second)]
    assert len(passes) == 2  # another call is another pass
    assert choosing.act_batch([observation] * 2, seeds=[1, 2]) == replies
    for text, held in zip(replies, (first, second), strict=True):
        reply = parse_reply(str(text))
        assert isinstance(reply, Reply) and isinstance(held, dict)
        assert held[reply.action] == max(held.values())


def test_no_drawn_rationale_gives_the_probabilities_of_empty_ones(wordless, closed):
    shares, smoothed = (
        agent(wordless, decode="most_probable_action", rationales=rationales).probabilities([closed], seeds=[0])[0]
        for rationales in (0, 3)
    )
    assert isinstance(shares, dict) and isinstance(smoothed, dict) and len(shares) == 3
    assert math.fsum(shares.values()) == pytest.approx(1)
    assert smoothed == pytest.approx({action: (3 * share + 1 / 3) / 4 for action, share in shares.items()})


def test_without_draws_probabilities_are_the_shares_after_an_empty_rationale_and_a_remark_tells_the_rest(
    shopper, observation
):
    shopping = agent(shopper, rationales=0)
    (probabilities,) = shopping.probabilities([observation], seeds=[0])
    assert isinstance(probabilities, dict) and math.fsum(probabilities.values()) == pytest.approx(1)
    prompt = prompt_tokens(shopper.tokenizer, observation, COMPACT)
    log_probs = plain_log_probs(shopper.plain_model(), shopper.tokenizer, prompt, "", list(probabilities))
    assert list(probabilities.values()) == pytest.approx(log_probs.softmax(dim=0).tolist(), rel=1e-3)
    total = float(log_probs.exp().sum())  # a third of the replies that it was taught have no rationale
    assert 0.2 < total < 0.5
    (remark,) = shopping.remarks()
    assert float(remark.partition("%")[0]) == pytest.approx(100 * total, abs=0.1)
    assert agent(shopper, rationales=2).remarks() == []


@pytest.mark.parametrize(
    "info", [{"writes_rationales": False}, {"prompt": PromptConfig(style="compact", rationales=False)}]
)
def test_a_policy_that_writes_no_rationale_replies_with_its_most_probable_action_unless_a_temperature_is_named(
    shopper, observation, info
):
    policy = shopper.model, shopper.tokenizer, checkpoint_info(max_new_tokens=MAX_NEW_TOKENS, **info)

    def reply_and_shares(**arguments: Any) -> tuple[object, object]:
        agent = PolicyAgent(policy=policy, **arguments)
        replies = agent.act_batch([observation], seeds=[0])
        return replies[0], agent.probabilities([observation], seeds=[0])[0]

    by_action, shares = reply_and_shares()
    assert (by_action, shares) == reply_and_shares(decode="most_probable_action", rationales=0)
    assert parse_reply(str(by_action)).action == Terminate()
    greedy, again = reply_and_shares(temperature=0.0)
    assert (greedy, again) == reply_and_shares(temperature=0.0, decode="tokens", rationales=0)
    assert isinstance(parse_reply(str(greedy)).action, Click)
    assert again == pytest.approx(shares)
    sampled = reply_and_shares(decode="tokens")[0]  # at the checkpoint's temperature
    assert sampled == reply_and_shares(temperature=0.6)[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("decode=beam", "'beam'"),
        ("rationales=few", "'few'"),
        ("decode=most_probable_action&temperature=0.6", "0.6"),
    ],
)
def test_options_that_exclude_each_other_are_named(tiny, tmp_path, arguments, message):
    save_checkpoint(tmp_path / "sft", tiny.model, tiny.tokenizer, checkpoint_info())
    with pytest.raises(BadConfig, match=message):
        make_agent(f"{tmp_path / 'sft'}?{arguments}")
