"""ShopLive-v0: the demo shop answers what an agent does; what cannot be done does nothing and is counted."""

import gymnasium
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import shop_env  # noqa: F401 - registers the envs
from replay_sessions.demo_shop import action_probabilities, generate_sessions
from replay_sessions.elements import find_elements
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Click, Terminate, TypeAndSubmit
from shop_env.live import VISIT_CONTEXT, LiveEnv
from shop_env.observation import Observation, observe
from shop_env.replies import format_reply
from shop_env.wrappers import DiscreteActions

LEAVE = format_reply("Enough.", Terminate())


def likeliest(observation: Observation) -> str:
    return format_reply("As ever.", next(iter(action_probabilities(observation))))


def click_on(observation: Observation, start: str) -> str:
    """A click on the first element whose name begins so."""
    names = [element.name for element in find_elements(observation["page"])]
    return format_reply("This.", Click(name=next(name for name in names if name.startswith(start))))


def buy(env: LiveEnv) -> list[tuple[float, bool]]:
    """Searches, opens the first product and buys it; rewards and ends of the three steps and a click on nothing."""
    observation, _ = env.reset(seed=3)
    done = []
    for reply in (
        lambda seen: format_reply("Search.", TypeAndSubmit(name="search_input", text="kettle")),
        lambda seen: click_on(seen, "search_results."),
        lambda seen: format_reply("Oops.", Click(name="product.free_money")),
        lambda seen: click_on(seen, "product.buy_now"),
    ):
        observation, reward, terminated, _, _ = env.step(reply(observation))
        done.append((reward, terminated))
    return done


@pytest.mark.parametrize("page_size", ["small", "compact", "realistic"])
@pytest.mark.parametrize("persona", ["matched", "none"])
def test_check_env_passes(page_size, persona):
    check_env(gymnasium.make("ShopLive-v0", page_size=page_size, context={"persona": persona}).unwrapped)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.parametrize("view", ["flat", "dict"])
def test_check_env_passes_on_the_discrete_view(view):
    env = DiscreteActions(gymnasium.make("ShopLive-v0").unwrapped, view=view)
    check_env(env, skip_render_check=True)


def test_visits_are_those_of_the_generated_population():
    """Same shoppers, goals and first pages, one after the other; a named visit does not disturb the order."""
    env = LiveEnv("realistic")
    for number, session in enumerate(generate_sessions(9, seed=42, page_size="realistic")):
        observation, info = env.reset(seed=42 if number == 0 else None)
        assert observation == observe(session, 0, VISIT_CONTEXT)
        assert info["user_id"] == session.user_id
        again, named = env.reset(options={"session_id": info["session_id"]})
        assert (again, named) == (observation, info)


def test_a_click_leads_to_the_page_it_leads_to():
    env = LiveEnv()
    observation, _ = env.reset(seed=3)
    before = observation
    observation, reward, terminated, truncated, info = env.step(click_on(observation, "departments."))
    assert (reward, terminated, truncated) == (0, False, False)
    assert "<title>results</title>" in observation["page"]
    past = {"page": before["page"], "rationale": "This.", "action": '{"type": "click", "name": "departments.kitchen"}'}
    assert observation["history"] == (past,)
    assert observation["step"] == 1
    assert info["action"] == {"type": "click", "name": "departments.kitchen"}
    assert {key: info[key] for key in ("step_index", "idle_replies")} == {"step_index": 0, "idle_replies": 0}
    assert "problem" not in info and "outcome" not in info


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("I would rather not say.", "not_json"),
        (format_reply("", Click(name="cart.checkout")), "no_such_element"),  # the shop would sell, the page does not
        (format_reply("", Click(name="")), "no_such_element"),
        (format_reply("", TypeAndSubmit(name="departments.office", text="lamp")), "not_an_input"),
    ],
)
def test_an_impossible_action_changes_nothing(reply, problem):
    env = LiveEnv(reward="shopper")
    before, _ = env.reset(seed=3)
    for count in (1, 2):
        observation, reward, terminated, truncated, info = env.step(reply)
        assert observation == before
        assert (reward, terminated, truncated) == (0, False, False)
        assert (info["problem"], info["idle_replies"]) == (problem, count)
        assert info["problem_detail"] and "action" not in info


def test_a_fenced_reply_is_done_where_extraction_is_lenient():
    env = LiveEnv(extraction="lenient")
    env.reset(seed=3)
    assert env.step(f"I leave.\n```json\n{LEAVE}\n```")[4]["outcome"] == "terminate"


def test_buying_and_leaving_end_a_visit():
    env = LiveEnv()
    assert [over for _, over in buy(env)] == [False, False, False, True]
    with pytest.raises(ResetNeeded):
        env.step(LEAVE)
    env.reset()
    observation, _, terminated, truncated, info = env.step(LEAVE)
    assert (terminated, truncated, info["outcome"]) == (True, False, "terminate")
    assert (observation["page"], observation["step"], len(observation["history"])) == ("", 1, 1)


def test_an_endless_visit_is_truncated_by_gymnasium():
    env = gymnasium.make("ShopLive-v0")
    env.reset(seed=0)
    assert [env.step("?")[2:4] for _ in range(20)] == [(False, False)] * 19 + [(False, True)]
    env = gymnasium.make("ShopLive-v0", max_episode_steps=2)
    env.reset(seed=0)
    assert [env.step("?")[2:4] for _ in range(2)] == [(False, False), (False, True)]


def test_rewards_match_their_names():
    assert [reward for reward, _ in buy(LiveEnv())] == [0, 0, 0, 0]
    env = LiveEnv(reward="shopper", context={"persona": "none"})
    observation, _ = env.reset(seed=3)
    over = False
    own = LiveEnv()  # the shopper's own persona tells the true probabilities, whatever the agent is shown
    knows, _ = own.reset(seed=3)
    while not over:
        action, probability = next(iter(action_probabilities(knows).items()))
        observation, reward, over, _, _ = env.step(format_reply("", action))
        knows = own.step(format_reply("", action))[0]
        assert reward == probability
        assert observation["persona"] == ""


def test_the_context_decides_the_shown_parts():
    shown = {}
    for persona in ("matched", "none", "generic"):
        env = LiveEnv(context={"scope": "latest_step", "rationales": False, "persona": persona})
        observation, _ = env.reset(seed=5)
        shown[persona] = observation["persona"]
        observation = env.step(click_on(observation, "departments."))[0]
        assert observation["persona"] == shown[persona]
        (past,) = observation["history"]
        assert (past["page"], past["rationale"]) == ("", "")
    assert len(set(shown.values())) == 3 and shown["none"] == ""


def test_without_a_seed_populations_differ():
    assert len({LiveEnv().reset()[0]["goal"] for _ in range(4)}) > 1


def test_a_variant_is_the_page_of_its_visitors():
    visits = [
        LiveEnv("compact", variant=variant).reset(seed=1)[0]
        for variant in (None, {"wording": "warm"}, {"badges": True})
    ]
    assert visits[0] == visits[2]
    env = LiveEnv("compact", variant={"checkout_page": True})
    env.reset(seed=1)
    for name in ("nav_bar.tent", "search_results", "product.buy_now"):
        page = env.step(click_on(env._visit.observation(env.context), name))[0]["page"]
    assert "<h1>Checkout</h1>" in page


def test_the_spec_survives_json():
    context = {"rationales": False, "persona": "none"}
    env = gymnasium.make("ShopLive-v0", page_size="realistic", variant={"price_factor": 1.2}, context=context)
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.reset(seed=1)[0] == env.reset(seed=1)[0]


def test_a_visit_can_be_rendered_before_and_after_its_end():
    env = LiveEnv(render_mode="ansi")
    env.reset(seed=0)
    assert "live-0-000000, step 1" in env.render()
    env.step(LEAVE)
    assert "ended after 1 steps" in env.render()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"page_size": "huge"}, "page_size is 'huge'; it must be one of small, compact, realistic"),
        ({"variant": {"price_facto": 2}}, "variant: unknown key 'price_facto'. Did you mean 'price_factor'?"),
        ({"variant": {"order": "luck"}}, "variant"),
        ({"reward": "shop_r1"}, "reward is 'shop_r1'; it must be one of none, shopper"),
        ({"context": {"persona": "shuffled"}}, "persona is 'shuffled'"),
        ({"context": {"persona": "alien"}}, "persona is 'alien'; it must be one of matched, none, shuffled, generic"),
    ],
)
def test_a_wrong_option_is_named(options, message):
    with pytest.raises(BadConfig, match=message):
        LiveEnv(**options)


def test_a_wrong_reset_option_is_named():
    with pytest.raises(BadConfig, match="Unknown reset option 'visit'; known: session_id"):
        LiveEnv().reset(options={"visit": 3})
    with pytest.raises(BadConfig, match="session_id is 'a'; a visit is called live-POPULATION-NUMBER"):
        LiveEnv().reset(options={"session_id": "a"})
    with pytest.raises(BadConfig, match="session_id is 3; it must be a text"):
        LiveEnv().reset(options={"session_id": 3})
