"""ShopR1-v0 as Gymnasium's users meet it."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import shop_env
from replay_sessions.foundation.errors import BadConfig, StoreNotFound
from replay_sessions.schema import Click, Persona, Session, Step, Terminate
from replay_sessions.store import SessionStore
from shop_env.env import ReplayEnv
from shop_env.observation import ContextConfig, observe
from shop_env.replies import format_reply
from shop_env.reward import REWARD_PRESETS, RewardConfig, best_breakdown, score_reply
from tests.processes import run_python
from tests.scored_steps import GOAL_SHOWN
from tests.shop_env.memory_store import MemoryStore


def make(**options: Any) -> gymnasium.Env:
    return gymnasium.make("ShopR1-v0", **options)


@pytest.fixture
def env(kettle_session) -> ReplayEnv:
    return ReplayEnv(MemoryStore([kettle_session], "kettle"), "all")


def odd_text_store() -> MemoryStore:
    """Pages, personas, names and typed texts in scripts and signs that break simpler spaces."""
    odd = "红色水壶 🫖 \u0000\u202e Ä\u0301 \U0010ffff </script> \\u0041"
    steps = tuple(Step(page=odd * 3, action=Click(name=odd), rationale=odd) for _ in range(4))
    persona = Persona(text=odd)
    sessions = [
        Session(session_id=f"s{i}{odd}", user_id=odd, source="t", steps=steps, persona=persona, goal=odd)
        for i in range(9)
    ]
    return MemoryStore(sessions, "odd")


def test_check_env_passes_on_any_unicode():
    check_env(ReplayEnv(odd_text_store(), "all"), skip_render_check=True)


@pytest.mark.parametrize("preset", sorted(REWARD_PRESETS))
def test_replaying_the_log_earns_the_best_reward_at_every_step(demo_store, preset):
    env = make(store=str(demo_store), split="all", reward=preset, order="storage", first_action=True)
    for session in SessionStore.open(demo_store).sessions():
        _, info = env.reset()
        assert info["session_id"] == session.session_id
        for index, step in enumerate(session.steps):
            _, reward, terminated, truncated, info = env.step(format_reply("Because.", step.action))
            assert reward == info["best_reward"] == best_breakdown(step.action, REWARD_PRESETS[preset]).total
            assert (terminated, truncated) == (index == len(session.steps) - 1, False)


def test_observations_and_rewards_are_those_of_observe_and_score_reply(kettle_session):
    context = {"scope": "latest_step", "rationales": False, "persona": "none"}
    env = ReplayEnv(MemoryStore([kettle_session], "kettle"), "all", context=context)
    expected = ContextConfig(scope="latest_step", rationales=False, persona="none")
    observation, info = env.reset(seed=0)
    assert observation == observe(kettle_session, 1, expected)
    assert info == {"session_id": "kettle-1", "user_id": "user-1", "step_index": 1}
    reply = format_reply("Cheap.", Click(name="search_results.red_kettle_2_l.view_product"))
    observation, reward, _, _, info = env.step(reply)
    breakdown = score_reply(reply, kettle_session.steps[1].action, REWARD_PRESETS["shop_r1"])
    assert observation == observe(kettle_session, 2, expected)
    assert reward == breakdown.total
    assert info["reward_breakdown"] == msgspec.structs.asdict(breakdown)
    assert info["step_index"] == 1
    assert "problem" not in info


def test_behind_the_last_step_the_page_is_empty_and_the_history_whole(kettle_session, env):
    env.reset(seed=0)
    for _ in range(3):
        observation, _, terminated, _, _ = env.step("x")
    assert terminated
    assert observation["page"] == ""
    assert [past["page"] for past in observation["history"]] == [step.page for step in kettle_session.steps]
    assert observation in env.observation_space
    with pytest.raises(ResetNeeded, match=r"call env\.reset\(\)"):
        env.step("x")


def test_stepping_before_a_reset_is_an_error():
    with pytest.raises(ResetNeeded):
        ReplayEnv(odd_text_store(), "all").step("x")


def test_an_unreadable_reply_is_explained_and_earns_nothing(env):
    env.reset(seed=0)
    _, reward, _, _, info = env.step("I would click.")
    assert reward == info["reward_breakdown"]["format"] == 0
    assert info["problem"] == "not_json"
    assert info["problem_detail"]


@pytest.mark.parametrize("reply", [None, 7, b"{}", ["x"], {"rationale": "x"}])
def test_a_reply_that_is_no_text_is_a_bug_of_the_caller(env, reply):
    env.reset(seed=0)
    with pytest.raises(TypeError, match=type(reply).__name__):
        env.step(reply)


def test_the_first_action_is_given_and_sessions_without_another_are_left_out(kettle_session):
    short = msgspec.structs.replace(kettle_session, session_id="short", steps=kettle_session.steps[:1])
    store = MemoryStore([kettle_session, short], "short")
    env = ReplayEnv(store, "all")
    assert (env.session_ids, env.left_out_sessions) == (["kettle-1"], 1)
    assert env.reset()[0]["step"] == 1
    with pytest.raises(BadConfig, match=r"'short' has no step to score.*first_action=True"):
        env.reset(options={"session_id": "short"})
    whole = ReplayEnv(store, "all", first_action=True)
    assert (whole.session_ids, whole.left_out_sessions) == (["kettle-1", "short"], 0)
    observation, _ = whole.reset(options={"session_id": "short"})
    assert (observation["step"], observation["history"]) == (0, ())
    assert whole.step("x")[2] is True


def test_gymnasium_s_own_limit_truncates_and_does_not_terminate(demo_store):
    limited = {"store": str(demo_store), "split": "all", "max_episode_steps": 2}
    for made in (make(**limited), gymnasium.make_vec("ShopR1-v0", num_envs=1, **limited).envs[0]):
        whole = made.unwrapped
        longest = max(whole.session_ids, key=whole.store.step_count)
        made.reset(seed=0, options={"session_id": longest})
        assert made.step("x")[2:4] == (False, False)
        assert made.step("x")[2:4] == (False, True)
        assert made.spec.max_episode_steps == 2


def _order(env: gymnasium.Env, seed: int, count: int) -> list[str]:
    first = env.reset(seed=seed)[1]["session_id"]
    return [first, *(env.reset()[1]["session_id"] for _ in range(count - 1))]


def test_the_seed_decides_the_order_and_every_session_comes_once_a_round(demo_store):
    env = make(store=str(demo_store), split="all")
    count = len(env.unwrapped.session_ids)
    two_rounds = _order(env, 5, 2 * count)
    assert two_rounds == _order(make(store=str(demo_store), split="all"), 5, 2 * count)
    assert set(two_rounds[:count]) == set(two_rounds[count:]) == set(env.unwrapped.session_ids)
    assert two_rounds[:count] != two_rounds[count:]
    assert two_rounds[:count] != _order(env, 6, count)


def test_naming_a_session_does_not_disturb_the_order(demo_store):
    plain, disturbed = (make(store=str(demo_store), split="all") for _ in range(2))
    expected = _order(plain, 5, 4)
    disturbed.reset(seed=5, options={"session_id": expected[0]})
    assert [disturbed.reset()[1]["session_id"] for _ in range(3)] == expected[:3]


def test_options_are_json_values_and_a_spec_survives_json(demo_store):
    options = {
        "store": str(demo_store),
        "split": "all",
        "context": {"scope": "latest_step", "persona": "none"},
        "reward": {"preset": "no_dars", "threshold": 0.5},
        "extraction": "lenient",
        "max_episode_steps": 3,
    }
    env = make(**options)
    spec = gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json())
    again = gymnasium.make(spec)
    assert again.unwrapped.reward == env.unwrapped.reward
    assert (again.unwrapped.reward.dars, again.unwrapped.reward.threshold) == (1.0, 0.5)
    assert again.unwrapped.context == ContextConfig(scope="latest_step", persona="none")
    assert again.reset(seed=1)[0] == env.reset(seed=1)[0]


def test_the_goal_is_hidden_unless_asked_for_and_a_spec_of_classes_saves_as_json(demo_store):
    store = str(demo_store)
    assert gymnasium.make("ShopR1-v0", store=store).reset(seed=0)[0]["goal"] == ""
    env = gymnasium.make("ShopR1-v0", store=store, context=GOAL_SHOWN, reward=RewardConfig(dars=1.0))
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.context == GOAL_SHOWN and again.unwrapped.reward == RewardConfig(dars=1.0)
    assert again.reset(seed=0)[0]["goal"].startswith("Buy a ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "random"}, "order is 'random'; it must be one of shuffled, storage"),
        ({"render_mode": "rgb"}, "render_mode is 'rgb'; it must be one of None, ansi"),
        ({"context": {"scop": "latest_step"}}, "context: unknown key 'scop'. Did you mean 'scope'?"),
        ({"context": {"scope": "none"}}, r"context\.scope is 'none'; it must be one of whole_session, latest_step"),
        ({"context": {"budget": "many"}}, r"context: Expected `int \| null`.* at `\$\.budget`"),
        ({"context": "whole_session"}, "context is 'whole_session'; it must be a dict of some of scope, marks"),
        ({"context": {"persona": "mine"}}, r"context\.persona is 'mine'; it must be one of matched, none, shuffled"),
        ({"reward": 3}, "reward is 3; it must be the name of a preset or a dict of some of kind, format"),
        ({"first_action": "no"}, "first_action is 'no'; it must be one of True, False"),
        ({"store": 3}, "store is 3; it must be the path of a session store, 'demo', or an opened SessionStore"),
        ({"extraction": "loose"}, "extraction is 'loose'; it must be one of strict, strict_input, strict_scroll"),
        ({"reward": "shop_r"}, "Unknown reward preset 'shop_r'"),
        ({"reward": {"preset": "shop_r"}}, "Unknown reward preset 'shop_r'"),
        ({"reward": {"dars": "many"}}, r"reward: .*`\$\.dars`"),
        ({"reward": {"threshold": 2.0}}, r"reward\.threshold is 2\.0"),
        ({"split": "tests"}, "unknown split 'tests'"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named_with_its_remedy(demo_store, options, message):
    with pytest.raises(BadConfig, match=message):
        ReplayEnv(**{"store": str(demo_store), "split": "all", **options})


@pytest.mark.parametrize("kind", [Path, SessionStore.open])
def test_a_store_that_no_spec_could_save_is_refused_with_the_remedy(demo_store, kind):
    with pytest.raises(BadConfig, match=r"store is .*; gymnasium\.make takes a path as str.*ReplayEnv\(store, …\)"):
        make(store=kind(demo_store), split="all")
    with pytest.raises(BadConfig, match=r"give str\(path\)"):
        gymnasium.make_vec("ShopR1-v0", num_envs=2, store=kind(demo_store), split="all")
    assert ReplayEnv(kind(demo_store), "all").session_ids


def test_everything_in_an_info_is_json(env):
    infos = [env.reset(seed=0)[1], env.step("x")[4], env.step(format_reply("", Click(name="reviews.read_all")))[4]]
    assert [json.loads(json.dumps(info)) for info in infos] == infos
    assert infos[2]["reward_breakdown"]["name_similarity"] == 1000


def test_a_session_of_another_split_is_not_served(demo_store):
    whole = SessionStore.open(demo_store)
    named = next(name for name in whole.session_ids("test") if whole.step_count(name) > 1)
    env = make(store=str(demo_store), split="train")
    with pytest.raises(BadConfig, match=f"Session '{named}' is not in split 'train'.* or with 'all'"):
        env.reset(options={"session_id": named})
    for split in ("test", "all"):
        env = make(store=str(demo_store), split=split)
        assert env.reset(options={"session_id": named})[1]["session_id"] == named


def test_a_missing_store_or_session_is_named(demo_store):
    with pytest.raises(StoreNotFound, match="no session store at"):
        make(store="no/such/store")
    env = make(store=str(demo_store), split="all")
    with pytest.raises(StoreNotFound, match="no session 'nobody'"):
        env.reset(options={"session_id": "nobody"})
    with pytest.raises(BadConfig, match="session_id is 3; it must be a text"):
        env.reset(options={"session_id": 3})
    with pytest.raises(BadConfig, match="Unknown reset option 'session'; known: session_id"):
        env.reset(options={"session": "x"})


def test_a_split_without_a_step_to_score_is_an_error():
    steps = (Step(page="p", action=Terminate()),)
    store = MemoryStore([Session(session_id="s", user_id="u", source="t", steps=steps)], "single")
    with pytest.raises(BadConfig, match="has 1 sessions, and none of them has a step to score after its first"):
        ReplayEnv(store, "all")


def test_changing_an_observation_does_not_change_the_next_episode(kettle_session, env):
    first, _ = env.reset(seed=0)
    first["history"][0]["page"] = "changed"
    first["page"] = "changed"
    info = env.step("x")[4]
    info["logged_action"]["name"] = "changed"
    assert env.reset()[0] == observe(kettle_session, 1)
    assert env.step("x")[4]["logged_action"]["name"] != "changed"


def test_ansi_shows_elements_and_no_control_characters(kettle_session):
    env = ReplayEnv(MemoryStore([kettle_session], "kettle"), "all", context=GOAL_SHOWN, render_mode="ansi")
    env.reset(seed=0)
    env.step("\x1b[31mred\x07")
    shown = env.render()
    assert "session kettle-1, step 3 of 4" in shown
    assert '[click] buy_now "Buy"' in shown
    assert "persona: Ada, 36, counts her money." in shown and "goal: a red kettle" in shown
    assert "reward: 0" in shown
    assert not any(ord(sign) < 32 and sign != "\n" for sign in shown)


def test_rendering_without_a_mode_warns(env):
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


MODEL_LIBRARIES = ("torch", "transformers", "peft", "rouge_score", "sklearn")
OTHERS = ("selectolax", "tinycss2", "phonenumbers", "stdnum", "scipy", "tyro", "rich", "pandas")


@pytest.mark.parametrize(
    ("modules", "packages"),
    [
        ("shop_env", (*MODEL_LIBRARIES, *OTHERS, "replay_sessions.simplify", "replay_sessions.private_data")),
        ("shop_env.env, shop_env.metrics, shop_env.reward", MODEL_LIBRARIES),
    ],
)
def test_importing_the_env_loads_no_library_that_it_does_not_need(modules, packages):
    code = f"import sys, {modules}; print([name for name in {packages} if name in sys.modules])"
    assert run_python("-c", code).stdout.strip() == "[]"


def test_the_package_lists_its_public_names():
    assert all(hasattr(shop_env, name) for name in shop_env.__all__)


def test_an_env_shows_its_sessions_and_takes_its_own_configurations(kettle_session):
    context, reward = ContextConfig(persona="none"), RewardConfig(dars=1.0)
    env = ReplayEnv(MemoryStore([kettle_session], "kettle"), "all", context=context, reward=reward)
    assert "1 sessions, split 'all'" in repr(env)
    assert (env.context, env.reward) == (context, reward)


def test_a_misspelt_option_of_gymnasium_make_is_named():
    with pytest.raises(BadConfig, match=r"spilt.*'split'"):
        gymnasium.make("ShopR1-v0", spilt="test")
