"""Agents that walk by themselves: one by one and side by side alike, failures counted, everything repeatable."""

from collections.abc import Sequence

from agents.baselines.rules import OracleAgent
from agents.registry import make_agent
from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.schema import Terminate
from shop_env.evaluation.free_run import free_run
from shop_env.observation import Observation
from shop_env.replies import Reply, format_reply, parse_reply


class Batched:
    """The greedy oracle for many visits at once."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self._oracle = OracleAgent()

    def reset(self, *, seed: int | None = None) -> None:
        self._oracle.reset(seed=seed)

    def act(self, observation: Observation) -> str:
        return self._oracle.act(observation)

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str]:
        self.batches.append(len(observations))
        return [self.act(observation) for observation in observations]


class Stubborn:
    """Says the same unreadable thing, or fails on the second page of every visit to a kettle."""

    def reset(self, *, seed: int | None = None) -> None:
        pass

    def act(self, observation: Observation) -> str:
        if observation["step"] == 1:
            raise AgentFailed("connection refused")
        if "kettle" in observation["goal"]:
            return format_reply("", {"type": "click", "name": "departments.kitchen"})
        return "no"


def test_side_by_side_equals_one_by_one():
    batched = Batched()
    assert free_run(batched, 30, population=5) == free_run(OracleAgent(), 30, population=5)
    assert max(batched.batches) == 30


def test_visits_come_in_order_and_end():
    visits = free_run(make_agent("random"), 30, population=5)
    assert [visit.session_id for visit in visits] == [f"live-5-{number:06}" for number in range(30)]
    assert [visit.user_id for visit in visits[3:5]] == ["shopper-5-00000", "shopper-5-00001"]
    for visit in visits:
        last = parse_reply(visit.replies[-1])
        assert (visit.ending == "terminate") == (isinstance(last, Reply) and last.action == Terminate())
    assert visits == free_run(make_agent("random"), 30, population=5)
    assert visits != free_run(make_agent("random"), 30, population=5, seed=1)


def test_a_failure_is_no_ending():
    visits = free_run(Stubborn(), 60, population=5, max_steps=4)
    assert {visit.ending for visit in visits} == {"limit", "error"}
    for visit in visits:
        if visit.ending == "error":
            assert visit.error == "AgentFailed: connection refused" and len(visit.replies) == 1
        else:
            assert visit.replies == ("no",) * 4


def test_a_reset_that_fails_is_an_error_of_each_visit():
    class Broken(Stubborn):
        def reset(self, *, seed: int | None = None) -> None:
            raise AgentFailed("no licence")

    assert {(visit.ending, len(visit.replies)) for visit in free_run(Broken(), 3, population=0)} == {("error", 0)}


def test_leaving_at_once_is_a_visit_of_one_step():
    class Leaver(Stubborn):
        def act(self, observation: Observation) -> str:
            return format_reply("No.", Terminate())

    assert [len(visit.replies) for visit in free_run(Leaver(), 3, population=0)] == [1, 1, 1]
