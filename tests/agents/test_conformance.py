"""The checks for authors of agents find what breaks the contract, and only that."""

import random
import time
from collections.abc import Sequence

import pytest

from agents.__main__ import main
from agents.conformance import Report, check_agent
from replay_sessions.elements import find_elements
from replay_sessions.errors import AgentFailed
from replay_sessions.schema import Action, Click, Terminate
from shop_env.observation import Observation
from shop_env.replies import format_reply

LEAVE = format_reply("done", Terminate())


class Good:
    def reset(self, *, seed: int | None = None) -> None:
        self.random = random.Random(seed)

    def act(self, observation: Observation) -> str:
        return format_reply(str(self.random.random()), Terminate())


class Forgetless(Good):
    def reset(self, *, seed: int | None = None) -> None:
        pass

    def act(self, observation: Observation) -> str:
        return format_reply(str(time.perf_counter_ns()), Terminate())


class FirstElement(Good):
    def act(self, observation: Observation) -> str:
        return format_reply("first", Click(name=find_elements(observation["page"])[0].name))


class LastAction(Good):
    def act(self, observation: Observation) -> str:
        return observation["history"][-1]["action"]


class Silent(Good):
    def act(self, observation: Observation) -> str:
        return None  # type: ignore[return-value]


class Chatty(Good):
    def act(self, observation: Observation) -> str:
        return "I would click on the cart."


class Offline(Good):
    def act(self, observation: Observation) -> str:
        raise AgentFailed("no server at localhost:8000")


class ShortBatch(Good):
    def act(self, observation: Observation) -> str:
        return LEAVE

    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        return [LEAVE]


class GoodBatch(ShortBatch):
    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        return [LEAVE] * len(observations)


class Remembers(Good):
    def reset(self, *, seed: int | None = None) -> None:
        self.asked = getattr(self, "asked", 0) + 1

    def act(self, observation: Observation) -> str:
        return format_reply(str(self.asked), Terminate())


class OwnDraws(GoodBatch):
    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        self.drawn = getattr(self, "drawn", 0) + 1
        return [format_reply(str(self.drawn), Terminate())] * len(observations)


class FailsTogether(GoodBatch):
    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        for observation in observations:
            if not find_elements(observation["page"]):
                raise AgentFailed("an empty page")
        return [LEAVE] * len(observations)


class CertainOfAll(GoodBatch):
    def probabilities(self, observations: Sequence[Observation]) -> list[dict[Action, float]]:
        return [{Terminate(): 1.0, Click(name="cart"): 1.0}] * len(observations)


class GivesNoProbabilities(GoodBatch):
    def probabilities(self, observations: Sequence[Observation]) -> None:
        return None


def faults(report: Report) -> dict[str, str]:
    return {finding.check: finding.detail for finding in report.findings if finding.kind == "fault"}


@pytest.mark.parametrize("agent", [Good(), GoodBatch(), GivesNoProbabilities()])
def test_a_good_agent_passes_without_a_note(agent: Good) -> None:
    assert {finding.kind for finding in check_agent(agent).findings} == {"ok"}


@pytest.mark.parametrize(
    ("agent", "check", "said"),
    [
        (object(), "protocol", "no method reset or act"),
        (Forgetless(), "same seed, same replies", "differ after reset"),
        (FirstElement(), "survives any page", "on empty page: IndexError"),
        (LastAction(), "answers sessions", "IndexError"),
        (Silent(), "replies are text", "NoneType"),
        (Offline(), "answers sessions", "no server at localhost:8000"),
        (ShortBatch(), "a batch equals single answers", "gave 1 answers to"),
        (Remembers(), "same seed, same replies", "in another order"),
        (OwnDraws(), "a batch equals single answers", "draw from `seeds` alone"),
        (FailsTogether(), "one failure costs one step", "an empty page"),
        (CertainOfAll(), "probabilities sum to 1", "sum to 2"),
    ],
)
def test_each_breach_is_a_fault_that_says_what_happened(agent: Good, check: str, said: str) -> None:
    found = faults(check_agent(agent))
    assert said in found[check]


def test_unreadable_replies_are_a_note_and_no_fault() -> None:
    report = check_agent(Chatty())
    assert report.passed
    assert [finding.check for finding in report.findings if finding.kind == "note"] == ["replies are readable"]


def test_the_command_says_what_it_found_and_exits_with_one_on_faults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "random"]) == 0
    assert "random: passed" in capsys.readouterr().out
    assert main(["check", f"{__file__}:FirstElement"]) == 1
    assert "fault  survives any page" in capsys.readouterr().out
    assert main(["check", "radnom"]) == 2
    assert capsys.readouterr().err == (
        "error: Unknown agent 'radnom'. Did you mean 'random'? "
        "Or give MODULE:CLASS, FILE.py:CLASS or a checkpoint folder.\n"
    )


def test_the_list_names_every_registered_agent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert listed >= {"random", "majority", "repeat_last", "copy_match", "oracle"}
