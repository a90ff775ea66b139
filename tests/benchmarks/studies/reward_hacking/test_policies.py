"""Policies of no worth: agents like any other, each as simple as it says."""

import pytest

from agents.conformance import check_agent
from agents.registry import make_agent
from benchmarks.studies.reward_hacking import policies
from benchmarks.studies.reward_hacking.policies import POLICIES, common_name, every_name, invented_name
from replay_sessions.schema import Click, Terminate, TypeAndSubmit
from shop_env.observation import History, Observation
from shop_env.replies import MalformedReply, Reply, parse_reply
from shop_env.reward import rouge_l

KETTLES = (*(f"results.{own}_kettle.view_product" for own in ("red_steel", "blue_tin", "old_iron")), "cart")


def page(*names: str, typed: str | None = None) -> Observation:
    elements = "".join(f'<a name="{name}">x</a>' for name in names)
    elements += f'<input name="{typed}">' if typed else ""
    return {"page": elements, "history": History(), "persona": "", "goal": "Buy a red kettle.", "step": 0}


def action(reply: str) -> object:
    parsed = parse_reply(reply)
    assert isinstance(parsed, Reply)
    return parsed.action


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.__name__)
def test_every_policy_keeps_the_contract_of_an_agent(policy: object) -> None:
    name = policy.__name__  # type: ignore[attr-defined]
    report = check_agent(make_agent(f"benchmarks.studies.reward_hacking.policies:{name}"))
    assert report.passed, report


def test_each_does_what_it_says() -> None:
    shown = page(*KETTLES, typed="search")
    assert action(policies.always_terminate(shown)) == Terminate()
    silent, sure = (parse_reply(function(shown)) for function in (policies.empty_rationale, policies.certain_rationale))
    assert isinstance(silent, Reply)
    assert isinstance(sure, Reply)
    assert (silent.rationale, silent.action) == ("", Terminate())
    assert set(sure.rationale.split()) == {"done"}
    assert action(policies.first_element(shown)) == Click(name=KETTLES[0])
    assert action(policies.echo_goal(shown)) == TypeAndSubmit(name="search", text="Buy a red kettle.")
    assert isinstance(parse_reply(policies.echo_prompt(shown)), MalformedReply)
    assert "Buy a red kettle." in policies.echo_prompt(shown)
    assert action(every_name(shown)) == Click(name=".".join(KETTLES))


def test_the_first_element_of_a_long_page_is_its_first() -> None:
    names = ["menu", *(f"results.red_kettle_{number}.view" for number in range(200))]
    assert action(policies.first_element(page(*names))) == Click(name="menu")
    assert len(policies.clickable_names(page(*names))) < 64


def test_where_there_is_nothing_to_click_they_leave() -> None:
    for policy in (policies.first_element, common_name, invented_name, every_name, policies.echo_goal):
        assert action(policy(page())) == Terminate()


def test_an_invented_name_is_paid_as_a_guess_at_names_that_no_name_of_the_page_is() -> None:
    """The shared words alone: 4 against 6, F = 2·4 / (4 + 6) = 0.8; the names among themselves have 4 of 6."""
    named = action(invented_name(page(*KETTLES)))
    assert named == Click(name="results kettle view product")
    assert [rouge_l("results kettle view product", name) for name in KETTLES[:3]] == pytest.approx([0.8] * 3)
    assert rouge_l(KETTLES[0], KETTLES[1]) == pytest.approx(4 / 6)


def test_the_common_name_is_the_one_that_most_others_are_like() -> None:
    near = ("a.b.c.d.one", "a.b.c.d.two", "a.b.c.d.three")  # 4 of 5 words
    assert action(common_name(page("cart", *near))) == Click(name="a.b.c.d.one")
