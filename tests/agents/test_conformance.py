"""The checks for authors of agents find what breaks the contract, each fault by its name, and only that."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agents.__main__ import main
from agents.conformance import Report, check_agent
from replay_sessions.elements import find_elements
from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.schema import Action, Click, Terminate
from shop_env.observation import Observation
from shop_env.replies import format_reply
from shop_env.train_view import TrainView

LEAVE = format_reply("done", Terminate())


class Good:
    def reset(self, *, seed: int | None = None) -> None:
        self.random = random.Random(seed)

    def act(self, observation: Observation) -> str:
        return format_reply(str(self.random.random()), Terminate())


class GoodBatch(Good):
    def act(self, observation: Observation) -> str:
        return LEAVE

    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        return [LEAVE] * len(observations)


class GivesNoProbabilities(GoodBatch):
    def probabilities(self, observations: Sequence[Observation]) -> None:
        return None


class GoodWithStore(Good):
    def __init__(self, store: TrainView) -> None:
        self.known = [step.action for session in store.sessions() for step in session.steps]


class Changes(Good):
    def act(self, observation: Observation) -> str:
        for past in observation["history"]:
            past["page"] = ""
        return LEAVE


class ChangesInBatches(GoodBatch):
    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        for observation in observations:
            observation["page"] += " "
        return [LEAVE] * len(observations)


class CertainOfAll(GoodBatch):
    def probabilities(self, observations: Sequence[Observation]) -> list[dict[Action, float]]:
        return [{Terminate(): 1.0, Click(name="cart"): 1.0}] * len(observations)


class Slow(Good):
    def act(self, observation: Observation) -> str:
        if not observation["page"]:
            time.sleep(0.3)
        return LEAVE


class RemembersTheSession(Good):
    def act(self, observation: Observation) -> str:
        if observation["step"] == 0:
            self.goal = observation["goal"]
        return format_reply(self.goal, Terminate())


class RemembersThePage(Good):
    before = ""

    def act(self, observation: Observation) -> str:
        reply = format_reply(self.before, Terminate())
        self.before = observation["page"]
        return reply


class DrawsAnew(Good):
    def reset(self, *, seed: int | None = None) -> None:
        self.random = random.Random(time.perf_counter_ns())


class CountsPlaces(GoodBatch):
    def act(self, observation: Observation) -> str:
        return self.act_batch([observation])[0]

    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        return [format_reply(str(place), Terminate()) for place in range(len(observations))]


class CountsCompany(CountsPlaces):
    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        return [format_reply(str(len(observations)), Terminate())] * len(observations)


class ShortBatch(GoodBatch):
    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        return [LEAVE]


class FailsTogether(GoodBatch):
    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        for observation in observations:
            if not find_elements(observation["page"]):
                raise AgentFailed("an empty page")
        return [LEAVE] * len(observations)


class FirstElement(Good):
    def act(self, observation: Observation) -> str:
        return format_reply("first", Click(name=find_elements(observation["page"])[0].name))


class Exits(Good):
    def act(self, observation: Observation) -> str:
        raise SystemExit(3)


class Offline(Good):
    def act(self, observation: Observation) -> str:
        raise AgentFailed("no server at localhost:8000")


class Says(Good):
    """An agent that replies as a function of the observation does."""

    def __init__(self, act: Callable[[Observation], Any]) -> None:
        self.act = act


def faults(report: Report) -> dict[str, str]:
    return {finding.check: finding.detail for finding in report.findings if finding.kind == "fault"}


@pytest.mark.parametrize("agent", [Good(), GoodBatch(), GivesNoProbabilities()])
def test_a_good_agent_passes_without_a_note(agent):
    assert {finding.kind for finding in check_agent(agent).findings} == {"ok"}


def test_a_good_agent_that_learns_from_a_store_passes(demo_store):
    assert {f.kind for f in check_agent(f"{__file__}:GoodWithStore", store=demo_store).findings} == {"ok"}


@pytest.mark.parametrize(
    ("agent", "check", "said"),
    [
        (object(), "protocol", "no method 'reset' or 'act'"),
        (Changes(), "does not modify observations", "act changed an observation"),
        (ChangesInBatches(), "does not modify observations", "act_batch changed an observation"),
        (CertainOfAll(), "probabilities sum to 1", "sum to 2"),
        (Slow(), "replies in time", "the limit is 0.2 s"),
        (RemembersTheSession(), "independent of earlier calls", "in another order"),
        (RemembersThePage(), "independent of earlier calls", "in another order"),
        (DrawsAnew(), "same seed, same reply", "when repeated after reset"),
        (CountsPlaces(), "independent of the batch", "of the replies differ"),
        (CountsCompany(), "independent of the batch", "100% of the replies differ"),
        (ShortBatch(), "one reply per observation", "gave 1 answers to"),
        (FailsTogether(), "a failure costs one step only", "an empty page"),
        (Says(lambda seen: None), "replies to sessions", "NoneType"),
        (FirstElement(), "handles any page", "on empty page: IndexError"),
        (
            Says(lambda seen: str(seen["page"].encode("ascii"))),
            "handles any page",
            "on many scripts: UnicodeEncodeError",
        ),
        (Exits(), "replies to sessions", "SystemExit"),
        (Offline(), "replies to sessions", "no server at localhost:8000"),
    ],
)
def test_each_fault_is_found_by_its_name_and_no_other_is(agent, check, said):
    found = faults(check_agent(agent, time_limit_s=0.2 if isinstance(agent, Slow) else 60))
    assert found.keys() == {check}
    assert said in found[check]


def test_unreadable_replies_are_a_note_and_no_fault():
    report = check_agent(Says(lambda seen: "I would click on the cart."))
    assert report.passed
    assert [finding.check for finding in report.findings if finding.kind == "note"] == ["replies parse"]


def test_the_command_prints_its_findings_and_exits_with_1_on_faults(capsys):
    assert main(["check", "random"]) == 0
    assert "random: passed" in capsys.readouterr().out
    assert main(["check", f"{__file__}:FirstElement"]) == 1
    assert "fault  handles any page" in capsys.readouterr().out
    assert main(["check", "radnom"]) == 2
    assert capsys.readouterr().err == (
        "error: Unknown agent 'radnom'. Did you mean 'random'? "
        "Or give MODULE:CLASS, FILE.py:CLASS or a checkpoint folder.\n"
    )


def test_the_list_names_every_registered_agent(capsys):
    assert main(["list"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert listed >= {"random", "majority", "repeat_last", "copy_match", "oracle"}
