"""The collector is measured on whole visits, each batch acknowledged and found again; a refusal is no figure."""

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.studies.speed.collect import collecting, main, post_visits, visit_bodies
from replay_sessions.foundation.errors import ShopR1Error

pytestmark = pytest.mark.long


def test_a_visit_is_a_page_and_then_what_happens_on_it() -> None:
    visit = visit_bodies(4)
    first, *others = [json.loads(body) for body, _ in visit]
    assert [event["type"] for event in first] == [4, 2]
    assert len(visit[0][0]) > 100_000
    assert [len(batch) for batch in others] == [22, 22, 22]
    assert all(event["type"] == 3 for batch in others for event in batch)
    assert [count for _, count in visit] == [2, 22, 22, 22]
    assert visit == visit_bodies(4)


def test_the_command_measures_both_ways_and_finds_every_batch_again(tmp_path: Path) -> None:
    out = tmp_path / "collect.json"
    words = ["--browsers", "3", "--batches", "2", "--pause-s", "0.6", "--folder", str(tmp_path), "--out", str(out)]
    assert main(words) == 0
    figures = json.loads(out.read_text())
    assert (figures["batches"], figures["events"]) == (6, 3 * 24)
    for name in ("saturated", "paced"):
        found = figures[name]
        assert found["events_per_s"] == pytest.approx(3 * 24 / found["seconds"], rel=0.2, abs=1)
        for waited in found["latency_ms"].values():
            assert 0 < waited["p50"] <= waited["p99"] <= waited["most"]
    assert figures["paced"]["seconds"] >= 0.4 + 0.6 + 0.6  # the last begins two thirds of a pause late
    assert main([*words, "--browsers", "0"]) == 2


def test_a_batch_that_is_refused_stops_the_measurement(tmp_path: Path) -> None:
    refused = pytest.raises(ShopR1Error, match=r"not acknowledged: http/1\.1 400")
    with collecting(tmp_path / "recordings") as (address, _), refused:
        asyncio.run(post_visits(address, [(b"[]", 0)], 2, 0.0, "empty batches"))
