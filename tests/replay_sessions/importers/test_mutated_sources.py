"""Mutated logs of every importer, a few at once and 50,000 in the slow test; and logs of 50 MB."""

from pathlib import Path

import pytest

from tests.replay_sessions.importers.large_files import KINDS, cost_of
from tests.replay_sessions.importers.mutated_sources import SOURCES, Batch, run_batch

pytestmark = pytest.mark.long

CASES = -(-50_000 // len(SOURCES))


@pytest.mark.parametrize("name", SOURCES)
def test_some_mutated_files_are_imported_or_refused_in_one_line(tmp_path: Path, name: str) -> None:
    batch = Batch(name, tmp_path)
    for number in range(1_000_000, 1_000_020):
        batch.run(number)
    assert batch.tally.failures == {}
    assert batch.tally.imported > 0
    assert batch.tally.refused > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_fifty_thousand_mutated_files_raise_nothing_else_in_bounded_time_and_memory(name: str) -> None:
    tally = run_batch(name, 0, CASES)
    assert tally.failures == {}
    assert tally.cases == CASES
    assert min(tally.imported, tally.refused) > CASES // 20
    assert tally.slowest_ms < 10_000
    assert tally.peak_memory_mib < 512


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_50_mb_takes_bounded_time_and_memory(kind: str) -> None:
    cost = cost_of(kind)
    assert cost.exit_code in (0, 2), cost.told
    assert cost.seconds < 600
    assert cost.peak_memory_mib < 2048
