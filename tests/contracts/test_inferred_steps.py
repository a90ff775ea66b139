"""Actions that an import inferred stay in the history; env, training, tasks and scores pass over them, by one word."""

from random import Random

import pytest

from agents.baselines.rules import MajorityAgent
from replay_sessions import Click, Session, SessionStore, Step
from replay_sessions.store.splits import SplitPlan
from shop_env.choices.reader import Reader
from shop_env.env import ReplayEnv
from shop_env.evaluation.scored_steps import EvaluationConfig
from shop_env.observation import ContextConfig
from shop_env.prompts import PromptConfig
from shop_env.replies import format_reply
from shop_env.serving.tasks import StepTasks
from shop_env.train_view import TrainView
from tests.scored_steps import first_seen
from tests.stores import store_at
from train.config import TinyTokenizerConfig
from train.tiny import train_tokenizer
from train.tokens import tokenize_session

Keys = list[tuple[str, int]]


def session(number: int, inferred: list[bool]) -> Session:
    steps = [
        Step(
            page=f'<a name="a">A</a><a name="b">B {number} {index}</a>',
            action=Click(name="ab"[is_inferred]),
            is_inferred=is_inferred,
        )
        for index, is_inferred in enumerate(inferred)
    ]
    return Session(session_id=f"s{number}", user_id=f"u{number}", source="test", steps=tuple(steps))


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SessionStore:
    random = Random(0)
    flags = [[random.random() < 0.5 for _ in range(random.randint(1, 6))] for _ in range(40)]
    flags += [[False, True, True], [True, True, False], [True], [False]]
    path = tmp_path_factory.mktemp("stores") / "store"
    return store_at(path, map(session, range(len(flags)), flags), splits=SplitPlan(validation=0, test=0))


def asked_by_env(store: SessionStore, *, first_action: bool, inferred: bool) -> Keys:
    env = ReplayEnv(store, "train", order="storage", first_action=first_action, inferred=inferred)
    keys = []
    for _ in env.session_ids:
        observation, info = env.reset()
        ended = False
        while not ended:
            keys.append((info["session_id"], observation["step"]))
            logged = env.store.session(info["session_id"]).steps
            assert observation["page"] == logged[observation["step"]].page
            assert [past["page"] for past in observation["history"]] == [s.page for s in logged[: observation["step"]]]
            observation, reward, ended, _, _ = env.step(format_reply("", logged[observation["step"]].action))
            assert reward > 0
        assert observation["page"] == ""
    assert env.left_out_sessions == len(store) - len(env.session_ids)
    return keys


@pytest.mark.parametrize("first_action", [False, True])
@pytest.mark.parametrize("inferred", [False, True])
def test_all_ask_about_the_same_steps(store, first_action, inferred):
    expected = [
        (session.session_id, index)
        for session in store.sessions()
        for index, step in enumerate(session.steps)
        if (index or first_action) and (inferred or not step.is_inferred)
    ]
    assert asked_by_env(store, first_action=first_action, inferred=inferred) == expected
    config = EvaluationConfig(split="train", first_action=first_action, inferred=inferred)
    assert config.keys(store) == expected
    tasks = StepTasks(store, first_action=first_action, inferred=inferred)
    assert [(task.session_id, task.step_index) for task in tasks.tasks("train")] == expected
    view = TrainView(store)
    reader = Reader(view, first_action=first_action, max_steps=1000, inferred=inferred)
    examples = list(reader.examples(view))
    assert len(examples) == len(expected)
    assert [example.user_id[1:] for example in examples] == [session_id[1:] for session_id, _ in expected]


@pytest.mark.parametrize("inferred", [False, True])
def test_training_passes_over_them_and_shows_them(store, inferred):
    compact = PromptConfig(style="compact")
    tokenizer = train_tokenizer(list(store.sessions()), TinyTokenizerConfig(min_count=2), compact)
    for session in store.sessions():
        trunks = tokenize_session(tokenizer, session, ContextConfig(), compact, 100_000, inferred=inferred)
        taught = [reply.step_index for trunk in trunks for reply in trunk.replies]
        assert taught == [n for n, step in enumerate(session.steps) if inferred or not step.is_inferred]
        if taught and not inferred:
            (every,) = tokenize_session(tokenizer, session, ContextConfig(), compact, 100_000, inferred=True)
            (trunk,) = trunks
            assert list(every.tokens)[: len(trunk.tokens)] == list(trunk.tokens)


def test_majority_counts_scored_steps(store):
    view = TrainView(store)
    steps = [step for session in store.sessions() for step in session.steps[1:]]
    assert 0 < sum(not step.is_inferred for step in steps) < len(steps)
    assert '"a"' in MajorityAgent(view).act(first_seen(""))


def test_the_index_knows_them(store, tmp_path):
    for row in store.index():
        flags = [step.is_inferred for step in store.session(row.session_id).steps]
        assert list(row.inferred) == [index for index, flag in enumerate(flags) if flag]
    assert store_at(tmp_path / "none", [session(1, [False, False])]).inferred_steps("s1") == ()
