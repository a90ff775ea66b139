"""The lab by its own command: visits that were walked are not walked again, failures are errors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from agents.baselines.rules import OracleAgent
from benchmarks.ab.__main__ import main
from benchmarks.ab.config import AGAIN
from benchmarks.ab.walks import OTHER_NUMBERS, walk
from replay_sessions.store import SessionStore
from shop_env.evaluation.free_run import free_run
from shop_env.observation import Observation
from tests.json_files import read_json

pytestmark = pytest.mark.long

# Leaves at once, or buys the first thing; counts how often it is asked.
AGENTS = """\
import pathlib
from replay_sessions.elements import find_elements
from replay_sessions.schema import Click, Terminate
from shop_env.replies import format_reply

ASKED = pathlib.Path(__file__).with_name("asked.txt")

def leaves(observation):
    with ASKED.open("a") as file:
        file.write("x")
    return format_reply("", Terminate())

def hates_checkout(observation):
    names = [element.name for element in find_elements(observation["page"])]
    if "checkout.place_order" in names:
        return format_reply("", Terminate())
    for start in ("product.buy_now", "search_results.", "nav_bar.tent"):
        for name in names:
            if name.startswith(start):
                return format_reply("", Click(name=name))
    return format_reply("", Terminate())

def fails(observation):
    raise OSError("server down")
"""


@pytest.fixture
def agents(tmp_path) -> Path:
    file = tmp_path / "agents_of_mine.py"
    file.write_text(AGENTS, encoding="utf-8")
    return file


def call(
    agents: Path, *names: str, variants: str = "checkout_page placebo A_again", more: tuple[str, ...] = ()
) -> list[str]:
    given = [f"{name}={agents}:{name}" for name in names]
    sizes = ["--visits", "24", "--true-visits", "24", "--logs", "60", "--seeds", "0", "1"]
    return ["--agents", *given, "--variants", *variants.split(), "--out", str(agents.parent / "ab"), *sizes, *more]


def read(agents: Path) -> Any:
    return read_json(agents.parent / "ab/ab.json")["results"]


def test_the_lab_tells_effects_beside_the_truth_and_asks_nothing_twice(agents):
    assert main(call(agents, "hates_checkout", "leaves")) == 0
    first = read(agents)
    rows = {row["label"]: row for row in first["rows"]}
    assert list(rows) == ["hates_checkout", "leaves", "no effect"]
    effect = rows["hates_checkout"]["predictions"]["checkout_page"]["bought"]["effect"]
    assert effect["difference"] == pytest.approx(-effect["before"])  # all that bought before leave at the checkout
    assert effect["visits"] == 48
    steps = rows["hates_checkout"]["predictions"]["checkout_page"]["steps"]["effect"]
    assert steps["difference"] == pytest.approx(effect["before"])  # and they see one page more
    for name in ("placebo", "A_again"):
        assert rows["hates_checkout"]["predictions"][name]["bought"]["effect"]["difference"] == 0
        assert first["true"][name]["bought"]["difference"] == 0
    assert rows["leaves"]["predictions"]["checkout_page"]["bought"]["effect"]["before"] == 0
    text = (agents.parent / "ab/ab.md").read_text(encoding="utf-8")
    assert "- no effect: the right direction in 0 of" in text
    assert "- hates_checkout (48 visits to each): the right direction in" in text

    asked = agents.with_name("asked.txt").stat().st_size
    assert asked == 24 * 2 * 4  # one reply a visit, two seeds, A and three changes
    assert main(call(agents, "hates_checkout", "leaves")) == 0
    assert agents.with_name("asked.txt").stat().st_size == asked
    assert read(agents) == first
    assert main(call(agents, "leaves", more=("--max-steps", "3"))) == 0
    assert read(agents)["true"] != first["true"]


def test_logs_and_truth_follow_the_utility(agents):
    """Dearer goods are better: the cheapest first sells less, and who knows that predicts it."""
    knows = "knows=oracle?temperature=1&utility=hidden_quality"
    sizes = ("--utility", "hidden_quality", "--visits", "60", "--true-visits", "200")
    assert main([*call(agents, variants="cheapest_first", more=sizes), "--agents", knows, "oracle?temperature=1"]) == 0
    found = read(agents)
    assert found["true"]["cheapest_first"]["bought"]["difference"] < -0.03
    errors = [row["predictions"]["cheapest_first"]["bought"]["error"] for row in found["rows"]]
    assert errors[0] < errors[1]
    store = SessionStore.open(agents.parent / "ab/logs-hidden_quality-60")
    assert store.manifest.options["utility"] == "hidden_quality"


def test_a_longer_list_walks_new_changes_and_an_edited_agent_all(agents):
    assert main(call(agents, "leaves", variants="placebo")) == 0
    assert main(call(agents, "leaves", variants="placebo,no_badges")) == 0
    assert agents.with_name("asked.txt").stat().st_size == 24 * 2 * 3
    agents.write_text(AGENTS + "\n# another agent now\n", encoding="utf-8")
    assert main(call(agents, "leaves", variants="placebo")) == 0
    assert agents.with_name("asked.txt").stat().st_size == 24 * 2 * 5


def test_an_agent_that_fails_is_told_and_never_counts_as_a_visit_that_bought_nothing(agents, capsys):
    assert main(call(agents, "fails", variants="placebo")) == 2
    assert "no visit is left of which both ends are known" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--variants", "checkout"), "Unknown variant 'checkout'. Did you mean 'checkout_page'?"),
        (("--visits", "0"), "--visits is 0"),
        (("--agents", "nobody"), "Unknown agent 'nobody'"),
    ],
)
def test_a_wrong_call_is_told_before_anything_is_walked(more, said, agents, capsys):
    assert main([*call(agents, "leaves"), *more]) == 2
    assert said in capsys.readouterr().err
    assert not agents.with_name("asked.txt").exists()


class Refitted(OracleAgent):
    """The known shoppers, with refits of which the second holds what they do for likelier, the more they write."""

    refits = 2

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str]:
        return [(self.reset(seed=seed), self.act(seen))[1] for seen, seed in zip(observations, seeds, strict=True)]

    def log_ratios(self, observations: Sequence[Observation], replies: Sequence[str]) -> NDArray[np.float64]:
        assert len(observations) == len(replies)
        return np.array([(0.0, len(reply)) for reply in replies])


def test_a_visit_has_the_sum_of_its_steps_log_ratios_and_is_otherwise_the_same():
    sizes: dict[str, Any] = {"visits": 12, "population": 3, "max_steps": 25}
    plain, refitted = (walk(agent, "x", AGAIN, **sizes) for agent in (OracleAgent(1.0), Refitted(1.0)))
    assert [replace(visit, log_ratios=()) for visit in refitted] == plain
    visits = free_run(OracleAgent(1.0), 12, population=3, page_size="compact", max_steps=25, seed=3 + OTHER_NUMBERS)
    expected = [(0.0, float(sum(len(reply) for reply in visit.replies))) for visit in visits]
    assert [visit.log_ratios for visit in refitted] == expected
