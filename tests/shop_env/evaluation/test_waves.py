"""The one way to ask an agent: what a failure costs, what a reply depends on, and who waits for whom."""

import json
import math
import random
import threading
import time
from asyncio import CancelledError
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from replay_sessions.foundation.errors import AgentFailed, PromptTooLong
from replay_sessions.schema import Action, Click, Terminate
from replay_sessions.store import SessionStore
from shop_env.evaluation.answering import Reason, generate_batch
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.results import ERRORS_AS_MISSES, sorted_rows, summarise
from shop_env.evaluation.steps_file import StepsFile, prepare, read_lines
from shop_env.metrics.step_record import TOO_LONG, StepRecord
from shop_env.observation import Observation
from shop_env.replies import format_reply
from tests.scored_steps import generate_replies, scored_steps

RED = format_reply("red", Click(name="results.red"))


class Draws:
    """Says a number that it draws."""

    def reset(self, *, seed: int | None = None) -> None:
        self.random = random.Random(seed)

    def act(self, observation: Observation) -> str:
        return format_reply(str(self.random.random()), Terminate())


class DrawsInBatches(Draws):
    def act_batch(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> Sequence[str | Exception]:
        return [format_reply(str(random.Random(seed).random()), Terminate()) for seed in seeds]


def evaluate_twice(agent: Draws, store: SessionStore, path: Path, *, likelihood: bool = False) -> list[StepRecord]:
    """The records from the file that the agent's steps were written to."""
    for each in (agent, Draws()):
        prepare(path, {}, {}, fresh=False, retry_errors=False)
        with StepsFile(path) as steps:
            records = evaluate(each, store, "test", likelihood=likelihood, steps=steps)
    return records


class FailsAtTwo(Draws):
    """Returns an exception in the place of the step with index 2; counts what it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def act_batch(self, observations: Sequence[Observation]) -> list[str | Exception]:
        self.asked += len(observations)
        return [AgentFailed("not this one") if one["step"] == 2 else RED for one in observations]


@pytest.mark.parametrize("batch_size", [1, 3, 1000])
def test_draws_do_not_depend_on_order_batch_size_or_resuming(demo_store, batch_size):
    steps = list(scored_steps(demo_store, "test"))
    alone = {step.key: answer for step, answer in generate_replies(Draws(), steps, seed=4)}
    backwards = generate_replies(DrawsInBatches(), steps[::-1], seed=4, batch_size=batch_size)
    assert {step.key: answer for step, answer in backwards} == alone
    rest = generate_replies(Draws(), steps[5:], seed=4)
    assert {step.key: answer for step, answer in rest} == {step.key: alone[step.key] for step in steps[5:]}
    assert len(set(alone.values())) == len(alone)


def test_a_failure_in_a_batch_costs_one_step_and_no_second_question(planted_store):
    agent = FailsAtTwo()
    records = evaluate(agent, planted_store, "test")
    assert [record.step_index for record in records if record.error] == [2, 2]
    assert [record.reply for record in records if not record.error] == [RED] * 3
    assert agent.asked == 5


def test_a_batch_that_raises_is_asked_once(planted_store):
    class Raises(FailsAtTwo):
        def act_batch(self, observations: Sequence[Observation]) -> list[str | Exception]:
            self.asked += len(observations)
            raise AgentFailed("server down")

    agent = Raises()
    assert {record.error for record in evaluate(agent, planted_store, "test")} == {"AgentFailed: server down"}
    assert agent.asked == 5


def test_an_answer_that_is_no_text_is_an_error_of_its_step(planted_store):
    class Odd(Draws):
        def act_batch(self, observations: Sequence[Observation]) -> list[object]:
            return [RED, None, 3, RED][: len(observations)]

    steps = list(scored_steps(planted_store, "test"))
    observations = [step.observation for step in steps]
    answers = generate_batch(Odd(), observations[:3], [None] * 3)
    assert [str(answer) for answer in answers] == [
        RED,
        "act_batch returned NoneType, not the text of a reply",
        "act_batch returned int, not the text of a reply",
    ]
    assert {str(answer) for answer in generate_batch(Odd(), observations, [None] * 5)} == {
        "act_batch gave 4 answers to 5 observations"
    }


def test_no_call_waits_for_the_slowest_of_a_batch(demo_store):
    """The first step is answered only when all other sessions have been: a barrier would never let that happen."""
    steps = list(scored_steps(demo_store, "test"))
    of_others = sum(step.key[0] != steps[0].key[0] for step in steps)
    others_done = threading.Event()

    class Slow(Draws):
        concurrency = 2
        answered = 0

        def act_batch(self, observations: Sequence[Observation]) -> list[str]:
            assert len(observations) == 1
            if observations[0] == steps[0].observation:
                assert others_done.wait(timeout=60)
                return [RED]
            self.answered += 1  # by the other thread alone
            if self.answered == of_others:
                others_done.set()
            return [RED]

    came = [step.key for step, answer in generate_replies(Slow(), steps, batch_size=64) if answer == RED]
    first = [key for key in came if key[0] == steps[0].key[0]]
    assert came.index(first[0]) >= of_others - 1  # the last two may end at once
    assert first == sorted(first), "a step waits for the one before it in its session"
    assert sorted(came) == sorted(step.key for step in steps)
    others_done.clear()
    records = evaluate(Slow(), demo_store, "test")
    assert [(record.session_id, record.step_index) for record in records] == [step.key for step in steps]


def test_an_agent_that_answers_only_where_it_is_right_ranks_below_one_that_always_answers(
    planted_store,
):
    class OnlyIfRed(Draws):
        """Knows the answers, and answers only where it is right."""

        def act(self, observation: Observation) -> str:
            if len(observation["history"]) != 1:
                raise AgentFailed("I would rather not say")
            return RED

    class AlwaysRed(Draws):
        def act(self, observation: Observation) -> str:
            return RED

    silent = summarise(evaluate(OnlyIfRed(), planted_store, "test"), label="silent")
    honest = summarise(evaluate(AlwaysRed(), planted_store, "test"), label="honest")
    assert silent.figures["exact_accuracy"].value == 1.0 > honest.figures["exact_accuracy"].value
    assert [row.label for row in sorted_rows([silent, honest])] == ["honest", "silent"]
    assert silent.figures["coverage"].value == pytest.approx(2 / 5)
    assert silent.figures[ERRORS_AS_MISSES].value == honest.figures["exact_accuracy"].value == pytest.approx(2 / 5)


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SystemExit(0), "SystemExit: 0"),
        (CancelledError(), "CancelledError: "),
        (GeneratorExit(), "GeneratorExit: "),
        (ValueError("half a pair: \ud800"), "ValueError: half a pair: \\ud800"),
        (_Unprintable(), "_Unprintable: its message cannot be formatted (ValueError)"),
    ],
)
@pytest.mark.parametrize("in_batches", [False, True])
def test_any_exception_of_an_agent_is_an_error_of_its_step(planted_store, tmp_path, error, text, in_batches):

    class Raises(Draws):
        def act(self, observation: Observation) -> str:
            if observation["step"] == 2:
                raise error
            return RED

    class RaisesInBatches(Raises):
        def act_batch(self, observations: Sequence[Observation]) -> list[str]:
            return [self.act(observation) for observation in observations]

    agent = RaisesInBatches() if in_batches else Raises()
    records = evaluate_twice(agent, planted_store, tmp_path / "steps.jsonl")
    assert [record.error for record in records] == [None, text, None, None, text]


def test_a_step_is_too_long_by_its_reason_and_not_by_the_name_of_its_error(planted_store, tmp_path):
    theirs = type("PromptTooLong", (Exception,), {})

    class TooLong(Draws):
        def act(self, observation: Observation) -> str:
            raise PromptTooLong("a long page") if observation["step"] == 2 else theirs("not ours")

    for records in (
        evaluate(TooLong(), planted_store, "test"),
        evaluate_twice(TooLong(), planted_store, tmp_path / "steps.jsonl"),
    ):
        assert [record.problem for record in records] == [None, TOO_LONG, None, None, TOO_LONG]
        assert [record.error for record in records if not record.problem] == ["PromptTooLong: not ours"] * 3


def test_a_file_of_before_reasons_still_says_which_steps_are_too_long(tmp_path):
    errors = ("PromptTooLong: a long page", "AgentFailed: down")
    lines = [{"session_id": "s", "step_index": n, "observation": "", "error": text} for n, text in enumerate(errors)]
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in ({"version": 1, "identity": {}}, *lines)))
    assert [line.reason for line in read_lines(path).values()] == [Reason.TOO_LONG, Reason.FAILED]


def test_ctrl_c_is_not_an_agent_s_error(planted_store):
    class Stopped(Draws):
        def act(self, observation: Observation) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(Stopped(), planted_store, "test")


@pytest.mark.parametrize(
    "weights", [math.nan, math.inf, -1.0, None, "much", 1e400], ids=["nan", "inf", "negative", "none", "text", "huge"]
)
def test_probabilities_that_are_none_cost_their_own_step_and_no_other_line(planted_store, tmp_path, weights):

    class Odd(Draws):
        def act(self, observation: Observation) -> str:
            return RED

        def probabilities(self, observations: Sequence[Observation]) -> list[dict[Any, Any]]:
            return [{Terminate(): weights if one["step"] == 2 else 1.0} for one in observations]

    class WrongKeys(Odd):
        def probabilities(self, observations: Sequence[Observation]) -> list[dict[Any, Any]]:
            return [{"terminate" if one["step"] == 2 else Terminate(): 1.0} for one in observations]

    for number, agent in enumerate((Odd(), WrongKeys())):
        records = evaluate_twice(agent, planted_store, tmp_path / f"{number}.jsonl", likelihood=True)
        assert [record.error is None for record in records] == [True, False, True, True, False]
        assert [record.reply for record in records if record.error is None] == [RED] * 3


class _CoClick(Draws):
    """Clicks what others in this batch clicked."""

    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        clicked = Counter(past["action"] for one in observations for past in one["history"])
        reply = f'{{"rationale": "", "action": {clicked.most_common(1)[0][0]}}}' if clicked else RED
        return [reply] * len(observations)


def test_batch_size_does_not_change_which_steps_share_a_batch(demo_store):
    """Once 39.6% of an agent's clicks were right at batch size 64, and 10.1% at 1."""
    records = [evaluate(_CoClick(), demo_store, "test", batch_size=size) for size in (1, 3, 64)]
    assert records[0] == records[1] == records[2]
    assert len({record.reply for record in records[0]}) > 2  # it does see what the others in its batch clicked


class _LooksAhead(Draws):
    """Remembers every history that it sees and answers what stands there, in whatever form it is asked (A1, A2)."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[str, str]] = {}
        self.copied = 0

    def _read(self, observations: Sequence[Observation]) -> None:
        for observation in observations:
            for past, page in enumerate(observation["history"]):
                self.seen[f"{observation['goal']} {past} {page['page']}"] = page["action"]

    def act(self, observation: Observation) -> str:
        self._read([observation])
        return self._reply(observation)

    def _reply(self, observation: Observation) -> str:
        action = self.seen.get(f"{observation['goal']} {observation['step']} {observation['page']}")
        self.copied += action is not None
        return RED if action is None else f'{{"rationale": "", "action": {action}}}'


class _LooksAheadInBatches(_LooksAhead):
    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        self._read(observations)
        return [self._reply(observation) for observation in observations]

    def probabilities(self, observations: Sequence[Observation]) -> list[dict[Action, float]]:
        """Asked after all replies, it would know every action but a session's last."""
        for observation in observations:
            self._reply(observation)
        return [{Terminate(): 1.0} for _ in observations]


class _LooksAheadInThreads(_LooksAheadInBatches):
    concurrency = 8

    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        self._read(observations)
        time.sleep(0.005)  # while the others are told
        return [self._reply(observation) for observation in observations]


@pytest.mark.parametrize("agent", [_LooksAhead(), _LooksAheadInBatches(), _LooksAheadInThreads()])
def test_no_agent_sees_the_history_of_a_later_step_before_it_answered(demo_store, agent):
    evaluate(agent, demo_store, "test", likelihood=True)
    assert agent.copied == 0 < len(agent.seen)
