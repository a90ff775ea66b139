"""Every action type of the schema is known everywhere: what to change for a new one fails here, or is named by mypy."""

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from replay_sessions.schema import ACTION_CLASSES, Action, ActionType, Session, Step, describe_action
from shop_env.candidates import candidate_actions
from shop_env.metrics import step_metrics
from shop_env.metrics.step_record import record_step
from shop_env.observation import observe_session
from shop_env.prompts import STYLES
from shop_env.replies import Reply, format_reply, parse_reply
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
def test_a_perfect_reply_is_read_matches_and_earns_the_most(kind: ActionType, preset: str) -> None:
    action, reward = example(kind), reward_preset(preset)
    reply = parse_reply(format_reply("I want this.", action))
    assert isinstance(reply, Reply)
    assert reply.action == action
    assert exact_match(reply.action, action)
    earned = score_reply(reply, action, reward).total
    assert earned == best_breakdown(action, reward).total
    other = example("click" if kind == "terminate" else "terminate")
    assert earned > score_reply(Reply(rationale="I want this.", action=other), action, reward).total


@pytest.mark.parametrize("kind", ACTION_CLASSES)
def test_metrics_count_it(kind: ActionType) -> None:
    record = record_step(session_of(kind), 1, format_reply("", example(kind)), reward_preset("shop_r1"))
    figures = step_metrics([record])
    assert figures["exact_accuracy"] == figures[f"exact_accuracy_{kind}"] == figures["type_f1_macro"] == 1


@pytest.mark.parametrize("kind", ACTION_CLASSES)
def test_it_is_described_asked_for_offered_and_stored(kind: ActionType, tmp_path: Path) -> None:
    assert describe_action(example(kind))
    assert f'"type": "{kind}"' in STYLES["full"]["actions"] + STYLES["full"]["typing"]["type_and_submit"]
    session = session_of(kind)
    *_, observation = observe_session(session)
    offered = {type(action) for action in candidate_actions({**observation, "goal": "a kettle"})}
    assert ACTION_CLASSES[kind] in offered
    (read,) = store_at(tmp_path / "store", [session]).sessions("all")
    assert read.steps == session.steps


@pytest.mark.long
def test_mypy_names_the_modules_that_a_new_action_type_concerns(tmp_path: Path) -> None:
    for package in ("replay_sessions", "shop_env", "train", "agents", "benchmarks"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("results", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    schema = tmp_path / "replay_sessions" / "schema.py"
    scroll = 'class Scroll(Record, frozen=True, kw_only=True, tag_field="type", tag="scroll"):\n    """New."""\n\n\n'
    text = schema.read_text(encoding="utf-8").replace("Action = Click", f"{scroll}Action = Scroll | Click")
    schema.write_text(text.replace('ActionType = Literal["click"', 'ActionType = Literal["scroll", "click"'))
    done = run_python("-m", "mypy", "--no-incremental", folder=tmp_path)
    named = set(re.findall(r"^([\w/]+\.py):\d+: error", done.stdout, re.MULTILINE))
    assert named >= {
        "replay_sessions/schema.py",
        "replay_sessions/demo_shop/shop.py",
        "replay_sessions/store/audit/scan.py",
        "shop_env/live.py",
        "shop_env/replies.py",
        "shop_env/reward/score.py",
        "shop_env/choices/reader.py",
        "agents/baselines/rules.py",
        "benchmarks/ab/pages/shifts.py",
    }
