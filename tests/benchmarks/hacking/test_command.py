"""The command: what it leaves follows from its figures, and its sentences turn where the figures do."""

import json
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.hacking.__main__ import main
from benchmarks.hacking.answer import answer
from benchmarks.hacking.guesses import GUESSES, Guess
from benchmarks.hacking.leaving import RIGHT, TOLD, leaving
from benchmarks.hacking.mixes import PAPER_MIXES, PAPER_ROWS
from benchmarks.hacking.record import Arithmetic, OfStore
from shop_env.reward import REWARD_PRESETS

RECORDED = Path(__file__).parents[3] / "benchmarks" / "results" / "hacking" / "hacking.json"


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    """The recorded run on the demo shop."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


@pytest.mark.slow
def test_the_command_leaves_figures_tables_and_pictures(store_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    call = ["--store", str(store_path), "--sessions", "8", "--samples", "50", "--resolution", "12"]
    assert main([*call, "--out", str(out)]) == 0
    record = json.loads((out / "hacking.json").read_text())
    assert record["provenance"]["config"]["resolution"] == 12
    assert record["training"] is None
    store, found = (
        msgspec.convert(record[part], kind) for part, kind in (("store", OfStore), ("arithmetic", Arithmetic))
    )
    assert answer(store, found) == record["answer"]
    labels = [row["label"] for row in record["store"]["earned"]]
    assert {"always_terminate", "invented_name", "random", "majority", "repeat_last", "copy_match", "oracle"} <= set(
        labels
    )
    assert all(set(row["paid"]) == set(REWARD_PRESETS) for row in record["store"]["earned"])
    assert len(record["arithmetic"]["leavings"]) == 4 * len(TOLD) * 2
    text = (out / "hacking.md").read_text()
    assert all(sentence in text for sentence in record["answer"])
    pictures = sorted(path.name for path in out.glob("*.png"))
    assert len(pictures) == 7
    for name in pictures:
        assert f"({name})" in text
        width, height = struct.unpack(">II", (out / name).read_bytes()[16:24])
        assert width > 1000 < 2 * height
        assert (out / name).with_suffix(".svg").read_text().startswith("<?xml")


def test_the_recorded_answer_is_what_its_figures_say(record: dict[str, Any]) -> None:
    store, found = msgspec.convert(record["store"], OfStore), msgspec.convert(record["arithmetic"], Arithmetic)
    assert answer(store, found) == record["answer"]
    assert not record["provenance"]["dirty"]
    text = RECORDED.with_name("hacking.md").read_text()
    assert all(sentence in text for sentence in record["answer"])


def test_the_recorded_figures_follow_from_the_code(record: dict[str, Any]) -> None:
    """Some of them, made anew from the recorded mix alone: those that need no guesses of a store."""
    reward = REWARD_PRESETS["binary"]
    nothing = {name: Guess() for name in GUESSES}
    mix = PAPER_MIXES[0]
    anew = leaving(mix, "binary", reward, nothing, "none", tuple(record["arithmetic"]["beliefs"]))
    recorded = next(
        row
        for row in record["arithmetic"]["leavings"]
        if (row["mix"], row["reward"], row["scale"]) == (mix.name, "binary", "none")
    )
    assert anew.leaves_from[2:] == tuple(recorded["leaves_from"][2:])  # where the first element is no better


def test_rewards_of_the_log_itself_are_the_most(record: dict[str, Any]) -> None:
    for row in record["store"]["earned"]:
        for paid in row["paid"].values():
            assert paid["of_best"] <= 1.0 + 1e-12
            assert sum(paid["terms"].values()) == pytest.approx(paid["reward"]["value"])


def test_without_division_grpo_leaves_where_the_expected_reward_says(record: dict[str, Any]) -> None:
    step = record["arithmetic"]["beliefs"][0]
    compared = 0
    for row in record["arithmetic"]["leavings"]:
        if row["scale"] == "none":
            for paid, leaves in zip(row["paid_from"], row["leaves_from"], strict=True):
                assert paid - 1e-9 <= (1.0 if leaves is None else leaves) <= paid + step + 1e-9
                compared += 1
    assert compared == 4 * len(TOLD) * len(RIGHT)


def test_the_sentences_turn_where_the_figures_do(record: dict[str, Any]) -> None:
    store = msgspec.convert(record["store"], OfStore)
    found = msgspec.convert(record["arithmetic"], Arithmetic)
    said = " ".join(answer(store, found))
    assert "It does not under GRPO" in said
    assert "what drives spam out is the reward for the type of action" in said
    assert "no more is paid than it is worth" in said
    moved = [msgspec.structs.replace(row, leaves_from=row.paid_from) if row.dars > 1 else row for row in found.by_scale]
    said = " ".join(answer(store, msgspec.structs.replace(found, by_scale=moved)))
    assert "It does not under GRPO" not in said
    assert "Scaling moves the belief from which on leaving is GRPO's end by up to" in said
    never = [msgspec.structs.replace(row, leaves_from=(0.9,) * len(RIGHT)) for row in found.leavings]
    said = " ".join(answer(store, msgspec.structs.replace(found, leavings=never)))
    assert "what drives spam out" not in said
    assert "no more is paid than it is worth" not in said
    agreeing = [msgspec.structs.replace(row, opposite=[]) for row in store.disagreements]
    said = " ".join(answer(msgspec.structs.replace(store, disagreements=agreeing), found))
    assert "None of" in said


def test_always_leaving_on_the_paper_s_test_set_has_the_exact_accuracy_that_follows_from_its_mix() -> None:
    mix = PAPER_MIXES[0]
    assert mix.steps == 1879
    assert 100 * mix.leaving == pytest.approx(27.25, abs=0.005)
    assert PAPER_ROWS["Shop-R1"][0] - 100 * mix.leaving < 0.5


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--store", "nowhere/at/all"], "nowhere/at/all"),
        (["--agents", "radnom"], "Did you mean 'random'?"),
        (["--agents", "first_element"], "among the trivial policies already"),
        (["--sessions", "-1"], "--sessions is -1"),
        (["--samples", "0"], "--samples is 0"),
        (["--resolution", "3"], "--resolution is 3"),
        (["--share", "1.5"], "--share is 1.5"),
        (["--spam", "always_terminat"], "Did you mean 'always_terminate'?"),
        (["--rewards", "shop_r2"], "Did you mean 'shop_r1'?"),
        (["--seeds", "1", "1"], "--seeds is 1 1"),
        (["--dry-run"], "give --train too"),
        (["--train", "--preset", "tiny_cpo"], "Did you mean 'tiny_cpu'?"),
        (["--sesions", "3"], "--sessions"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(
    words: list[str], told: str, store_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = words if words[0] == "--store" else ["--store", str(store_path), *words]
    assert main(["--out", str(tmp_path), *given]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert len(error.splitlines()) == 1
