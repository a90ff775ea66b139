"""The contract of the reward: each other element of a page, in place of the logged one, earns less."""

import msgspec
import pytest

from agents.conformance import check_agent
from agents.llm_grpo.data import tie_lines
from agents.llm_grpo.presets import load_preset
from benchmarks.leaderboard.__main__ import main
from replay_sessions import demo_shop
from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from shop_env.reward import REWARD_PRESETS, RewardConfig
from shop_env.reward.score import LOG_LIKELIHOOD
from shop_env.reward.ties import OWN_ELEMENTS, OWN_STEPS, Ties, count_ties
from tests.shop_env.reward.test_score import SHOPS
from tests.stores import store_at

OWN = """
from pathlib import Path
def any_element(reply, logged):
    with Path(__file__).with_suffix(".calls").open("a") as calls:
        calls.write("x")
    return float(type(reply.action) is type(logged))
"""
BY_PACKAGE = RewardConfig(similarity="rouge_score")


def shop(products: tuple[str, ...], sessions: int = 6) -> list[Session]:
    """Sessions on one page of products, of which each third is clicked."""
    page = "".join(f'<a name="results.{product}.view_product">x</a>' for product in products)
    return [
        Session(
            session_id=f"s{number}",
            user_id=f"u{number}",
            source="test",
            steps=(
                Step(page='<input name="search">', action=TypeAndSubmit(name="search", text="x")),
                Step(page=page, action=Click(name=f"results.{products[number % len(products)]}.view_product")),
                Step(page=page, action=Terminate()),
            ),
        )
        for number in range(sessions)
    ]


def ties_of(page: str, action: Action, reward: RewardConfig | None = None) -> Ties:
    session = Session(session_id="s", user_id="u", source="test", steps=(Step(page=page, action=action),))
    ties = count_ties([(session, 0)], reward or RewardConfig())
    assert ties is not None
    return ties


@pytest.mark.parametrize("page_size", ["small", "realistic"])
def test_no_other_element_of_a_demo_shop_earns_the_full_reward(page_size):
    sessions = demo_shop.generate_sessions(3, seed=4, page_size=page_size)
    steps = [(session, index) for session in sessions for index in range(len(session.steps))]
    for reward in REWARD_PRESETS.values():
        ties = count_ties(steps, reward)
        assert ties is not None and ties.steps > 10
        assert (ties.tied, ties.example) == (0, "")


def test_the_text_names_both_elements_and_where_they_are():
    text = ties_of('<a name="cart.pay">x</a><a name="cart_pay">y</a>', Click(name="cart.pay")).text
    assert text == (
        "At 1 of 1 sampled steps another element of the page earns as much as the logged one: "
        "'cart_pay' for 'cart.pay' (1,001 points; session 's', step 0)."
    )


def test_only_elements_that_take_the_action_are_tried_with_the_logged_text():
    page = (
        '<input name="search"><input name="email"><a name="red">x</a><div name="list"><a name="list.blue">y</a></div>'
    )
    blind = RewardConfig(typing_name_similarity=0.0)  # pays typing by its text alone
    typed = TypeAndSubmit(name="search", text="kettle")
    assert ties_of(page, typed) == Ties(steps=1, tied=0)
    assert ties_of(page, typed, blind).example.startswith("'email' for 'search' (1,001 points")
    assert ties_of('<input name="search"><a name="red">x</a>', typed, blind).steps == 0  # there is no other input
    assert ties_of(page, Click(name="red"), RewardConfig(dars=0.0)).example.startswith("'list.blue' for 'red'")
    for action in (Click(name=""), TypeAndSubmit(name="search", text=""), Terminate()):
        assert ties_of(page, action, RewardConfig(dars=0.0)).steps == 0


def test_a_required_rationale_makes_no_ties():
    assert not ties_of(
        '<a name="a">x</a><a name="b">y</a>', Click(name="a"), RewardConfig(requires_rationale=True)
    ).tied


def test_five_percent_of_ties_are_no_warning():
    assert [Ties(steps=40, tied=tied).are_many for tied in (0, 2, 3)] == [False, False, True]
    assert not Ties(steps=0, tied=0).are_many
    assert count_ties([], LOG_LIKELIHOOD) is None


def test_a_function_is_called_for_few_elements(tmp_path):
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    reward = RewardConfig(kind=f"{tmp_path}/own.py:any_element")
    sessions = shop(tuple(f"product_{number}" for number in range(30)), sessions=2 * OWN_STEPS)
    ties = count_ties([(session, 1) for session in sessions], reward)
    assert ties is not None and (ties.steps, ties.tied) == (OWN_STEPS, OWN_STEPS)
    assert len((tmp_path / "own.calls").read_text()) <= OWN_STEPS * (1 + OWN_ELEMENTS)


def test_rank_training_and_the_check_of_an_agent_name_the_share_of_ties(tmp_path, capsys):
    right, wrong, *_ = SHOPS["Japanese"]
    store = store_at(tmp_path / "store", shop((right, wrong), sessions=20))
    free = "of {} sampled steps another element of the page earns as much as the logged one"
    assert main(f"--agents random --split all --store {store.path} --out {tmp_path}/board".split()) == 0
    assert f"At 0 {free.format(20)}." in " ".join(capsys.readouterr().out.split())
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    own = f"--reward {tmp_path}/own.py:any_element --out {tmp_path}/other"
    assert main(f"--agents random --split all --store {store.path} {own}".split()) == 0
    board = (tmp_path / "other" / "leaderboard.md").read_text(encoding="utf-8")
    assert f"Warning: At 20 {free.format(20)}: " in board and wrong in board
    (line,) = tie_lines(load_preset("tiny_cpu"), store)
    trained = len(store.session_ids("train"))
    assert line.startswith(f"shop_r1: At 0 {free.format(trained)}.")
    (line,) = tie_lines(msgspec.structs.replace(load_preset("tiny_cpu"), reward=BY_PACKAGE), store)
    assert line.startswith(f"warning: shop_r1: At {trained} {free.format(trained)}: ")
    assert f"At 0 {free.format(20)}" in str(check_agent("random", store=store))
    note = check_agent("random", store=store, reward=BY_PACKAGE)
    assert note.passed and "note   the reward names the element  At 20 of 20 " in str(note)
