"""Every action type of the schema is known everywhere: what to change for a new one fails here, or is named by mypy."""

import re
import shutil

import msgspec
import pytest

from replay_sessions.schema import ACTION_CLASSES, Action, ActionType, Session, Step, describe_action
from shop_env.candidates import candidate_actions
from shop_env.metrics import step_metrics
from shop_env.metrics.step_record import record_step
from shop_env.observation import observe_session
from shop_env.prompts import PromptConfig, prompt_of, render_prompt
from shop_env.replies import Reply, format_reply, needed_extraction, parse_reply
from shop_env.reward import best_breakdown, reward_preset, score_reply
from shop_env.reward.matching import exact_match
from tests.processes import ROOT, run_python
from tests.stores import store_at

PAGE = '<html><body><input name="field" type="text"/><a name="link">cart</a></body></html>'
FIELDS = {"name": "field", "text": "a kettle"}


def example(kind: ActionType) -> Action:
    """An action of this type, each required field filled."""
    fields = {
        field.name: FIELDS[field.name] for field in msgspec.structs.fields(ACTION_CLASSES[kind]) if field.required
    }
    return ACTION_CLASSES[kind](**fields)


def session_of(kind: ActionType) -> Session:
    return Session(
        session_id=kind,
        user_id=kind,
        source="example",
        steps=tuple(Step(page=PAGE, action=example(kind)) for _ in "ab"),
    )


@pytest.mark.parametrize("kind", ACTION_CLASSES)
@pytest.mark.parametrize("preset", ["shop_r1", "customer_r1", "binary"])
def test_a_perfect_reply_is_read_matches_and_earns_the_most(kind, preset):
    action, reward = example(kind), reward_preset(preset)
    reply = parse_reply(format_reply("I want this.", action), needed_extraction(action))
    assert isinstance(reply, Reply)
    assert reply.action == action
    assert exact_match(reply.action, action)
    earned = score_reply(reply, action, reward).total
    assert earned == best_breakdown(action, reward).total
    other = example("click" if kind != "click" else "terminate")
    assert earned > score_reply(Reply(rationale="I want this.", action=other), action, reward).total


@pytest.mark.parametrize("kind", ACTION_CLASSES)
def test_metrics_count_it(kind):
    reply, extraction = format_reply("", example(kind)), needed_extraction(example(kind))
    record = record_step(session_of(kind), 1, reply, reward_preset("shop_r1"), extraction=extraction)
    figures = step_metrics([record])
    assert figures["exact_accuracy"] == figures[f"exact_accuracy_{kind}"] == figures["type_f1_macro"] == 1


@pytest.mark.parametrize("kind", ACTION_CLASSES)
def test_it_is_described_asked_for_offered_and_stored(kind, tmp_path):
    assert describe_action(example(kind))
    session = session_of(kind)
    store = store_at(tmp_path / "store", [session])
    (read,) = store.sessions("all")
    assert read.steps == session.steps
    *_, observation = observe_session(session)
    for style in ("full", "shop_r1", "customer_r1"):
        instructions = render_prompt(observation, prompt_of(store, PromptConfig(style=style)))[0]["content"]
        assert f'"type": "{kind}"' in instructions
    offered = candidate_actions({**observation, "goal": "a kettle"}, scrolls=store.scrolls)
    assert ACTION_CLASSES[kind] in map(type, offered)


@pytest.mark.long
def test_mypy_names_the_modules_that_a_new_action_type_concerns(tmp_path):
    for package in ("replay_sessions", "shop_env", "train", "agents", "benchmarks"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("results", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    schema = tmp_path / "replay_sessions" / "schema.py"
    new = 'class Hover(Record, frozen=True, kw_only=True, tag_field="type", tag="hover"):\n    """New."""\n\n\n'
    text = schema.read_text(encoding="utf-8").replace("Action = Click", f"{new}Action = Hover | Click")
    schema.write_text(text.replace('ActionType = Literal["click"', 'ActionType = Literal["hover", "click"'))
    done = run_python("-m", "mypy", "--no-incremental", folder=tmp_path)
    named = set(re.findall(r"^([\w/]+\.py):\d+: error", done.stdout, re.MULTILINE))
    assert named >= {
        "replay_sessions/schema.py",
        "replay_sessions/demo_shop/shop.py",
        "shop_env/live.py",
        "shop_env/replies.py",
        "shop_env/reward/score.py",
        "shop_env/choices/reader.py",
        "agents/baselines/rules.py",
        "benchmarks/ab/pages/kinds.py",
    }
