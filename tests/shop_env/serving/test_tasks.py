"""Sessions as single-turn tasks: one for each step, with the env's prompt and the env's reward."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import gymnasium
import msgspec
import pytest

import shop_env  # noqa: F401 - registers ShopR1-v0
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Click, Session, Step, Terminate
from shop_env.episodes import EpisodeCache
from shop_env.metrics.step_record import record_step
from shop_env.observation import ContextConfig
from shop_env.prompts import PromptConfig, render_prompt
from shop_env.reward.score import reward_preset
from shop_env.serving.__main__ import main
from shop_env.serving.tasks import StepTask, StepTasks, score_step
from tests.json_files import read_json_lines
from tests.shop_env.memory_store import MemoryStore
from tests.shop_env.serving.contract import paid_by_gym, paid_by_score, reply_of_kind


@pytest.mark.parametrize("first_action", [False, True])
@pytest.mark.parametrize("split", ["train", "test", "all"])
def test_each_step_is_one_task(store, split, first_action):
    tasks = StepTasks(store, first_action=first_action)
    steps = [
        f"{session.session_id}#{index}"
        for session in store.sessions(split)
        for index in range(0 if first_action else 1, len(session.steps))
    ]
    assert [task.task_id for task in tasks.tasks(split)] == steps
    assert tasks.count(split) == len(steps)


@pytest.mark.parametrize("context", [{}, {"scope": "latest_step", "persona": "shuffled"}, {"budget": 900}])
def test_a_task_shows_the_observation_of_the_env(store_path, store, context):
    env = gymnasium.make("ShopR1-v0", store=store_path, split="all", context=context).unwrapped
    prompt = PromptConfig(style="compact")
    tasks = StepTasks(store, context=ContextConfig(**context), prompt=prompt)
    for task in tasks.tasks("all"):
        if task.step_index == 1:
            observation, _ = env.reset(options={"session_id": task.session_id})
        assert task.observation == observation
        assert task.messages == render_prompt(observation, prompt)
        observation, *_ = env.step("")


def test_a_task_comes_back_from_json_as_it_was(tasks):
    for task in tasks.tasks("test"):
        assert msgspec.json.decode(msgspec.json.encode(task), type=StepTask) == task


def session_of(*steps: Step) -> StepTasks:
    session = Session(session_id="s", user_id="u", source="test", steps=steps)
    return StepTasks(MemoryStore([session], fingerprint=str(len(steps))))


def test_a_task_hides_its_answer_and_later_steps():
    first = Step(page="<p>home</p>", action=Click(name="menu"), rationale="I begin.")
    page = '<a name="cart">Cart</a>'
    bought = session_of(
        first,
        Step(page=page, action=Click(name="cart"), rationale="I buy."),
        Step(page="<p>cart</p>", action=Terminate()),
    )
    left = session_of(first, Step(page=page, action=Terminate(), rationale="Too dear."))
    assert bought.task("all", 0) == left.task("all", 0)
    assert bought.answer("all", 0) != left.answer("all", 0)


@pytest.mark.parametrize(
    ("reward", "extraction"), [("shop_r1", "strict"), ("shop_r1", "lenient"), ("customer_r1", "strict")]
)
def test_a_reply_earns_the_reward_of_the_env(store_path, store, reward, extraction):
    tasks = StepTasks(store, reward=reward_preset(reward), extraction=extraction)
    expected = paid_by_gym(store_path, reward=reward, extraction=extraction)
    assert len({paid.reward for paid in expected.values()}) > 4
    indices = {task.task_id: task.index for task in tasks.tasks("test")}
    for (task_id, kind), paid in expected.items():
        reply = reply_of_kind(kind, paid.logged_action)
        score = tasks.score("test", indices[task_id], reply)
        assert paid_by_score(score) == paid
        session_id, _, step_index = task_id.rpartition("#")
        record = record_step(
            tasks.store.session(session_id), int(step_index), reply, tasks.reward, extraction=extraction
        )
        assert score.exact_match == (record.predicted == record.logged)


def test_a_reply_to_an_action_that_the_log_does_not_fully_know_is_neither_exact_nor_not():
    score = score_step(
        '{"rationale": "", "action": {"type": "click", "name": "x"}}',
        {"type": "click", "name": ""},
        reward_preset("shop_r1"),
        "strict",
    )
    assert (score.exact_match, score.reward) == (None, 0.8)


@pytest.mark.parametrize("index", [-1, 10_000, 1.0, "1", None, True])
def test_an_invalid_index_lists_the_valid_ones(tasks, index):
    with pytest.raises(BadConfig, match=f"from 0 to {tasks.count('test') - 1}"):
        tasks.task("test", index)


def test_an_unknown_split_is_told_with_the_nearest(tasks):
    with pytest.raises(BadConfig, match="Did you mean 'test'"):
        tasks.count("tset")


def test_sessions_of_one_step_have_no_task_unless_first_actions_are_asked_for():
    tasks = session_of(Step(page="", action=Terminate()))
    assert tasks.count("all") == 0
    with pytest.raises(BadConfig, match="no step to ask about"):
        tasks.task("all", 0)


def test_many_threads_are_told_the_same_as_one(tasks):
    expected = [task.messages for task in tasks.tasks("all")]
    tasks._episodes = EpisodeCache(max_characters=1)  # so that each reads from the disk again
    with ThreadPoolExecutor(4) as threads:
        orders = [range(len(expected)), range(len(expected) - 1, -1, -1)] * 2
        for order, found in zip(
            orders, threads.map(lambda order: [tasks.task("all", i) for i in order], orders), strict=True
        ):
            assert [task.messages for task in found] == [expected[index] for index in order]


@pytest.mark.parametrize("answers", [False, True])
def test_the_file_holds_a_line_for_each_task(store_path, tasks, tmp_path, answers):
    out = tmp_path / "tasks.jsonl"
    words = ["tasks", "--store", store_path, "--split", "test", "--out", str(out), *(["--answers"] if answers else [])]
    assert main(words) == 0
    lines = read_json_lines(out)
    assert [line["index"] for line in lines] == list(range(tasks.count("test")))
    for line in lines:
        if answers:
            score = score_step(
                reply_of_kind("logged", tasks.score("test", line["index"], "").logged_action),
                line.pop("answer"),
                tasks.reward,
                "strict",
            )
            assert score.reward == score.best_reward
        assert msgspec.convert(line, StepTask) == tasks.task("test", line["index"])


def test_a_file_that_is_there_is_replaced_only_when_told(store_path, tmp_path, capsys):
    out = tmp_path / "tasks.jsonl"
    out.write_text("mine")
    assert main(["tasks", "--store", store_path, "--out", str(out)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert main(["tasks", "--store", store_path, "--out", str(out), "--overwrite"]) == 0
    assert out.read_text() != "mine"


def test_a_stopped_export_leaves_nothing_behind(store_path, tmp_path, monkeypatch):
    def stopped(self: StepTasks, split: str) -> Iterator[StepTask]:
        yield self.task(split, 0)
        raise KeyboardInterrupt

    monkeypatch.setattr(StepTasks, "tasks", stopped)
    assert main(["tasks", "--store", store_path, "--out", str(tmp_path / "tasks.jsonl")]) == 130
    assert list(tmp_path.iterdir()) == []
