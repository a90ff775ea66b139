"""The recording that the speed of `import rrweb` is measured on is one, of about the length that was asked for."""

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.studies.speed.import_recording import events, main

pytestmark = pytest.mark.long


def page(links: int) -> bytes:
    words = "<p>x</p>" * 20
    cards = (f"<div><h2>Kettle {number}</h2>{words}<a href='/{number}'>View</a></div>" for number in range(links))
    return f"<title>Shop</title><body>{''.join(cards)}</body>".encode()


def test_it_holds_as_many_clicks_and_bytes_as_were_asked_for() -> None:
    made = list(events(page(20), 300_000, 7))
    assert sum(event["data"].get("source") == 2 and event["data"]["type"] == 2 for event in made) == 7
    assert 300_000 <= sum(len(json.dumps(event)) + 1 for event in made) < 400_000
    assert made == list(events(page(20), 300_000, 7))


def test_the_command_imports_it_and_writes_its_figures(tmp_path: Path) -> None:
    (tmp_path / "raw_pages").mkdir()
    (tmp_path / "raw_pages" / "mock_parse_item_page_amz.html.gz").write_bytes(gzip.compress(page(20)))
    asked = ["--megabytes", "1", "--clicks", "5", "2", "--runs", "2", "--out", str(tmp_path / "figures.json")]
    assert main(["--data", str(tmp_path), *asked]) == 0
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert [(recording["steps"], recording["clicks"]) for recording in figures["recordings"]] == [(5, 5), (2, 2)]
    for recording in figures["recordings"]:
        assert recording["stores_are_equal"]
        assert recording["one_process"]["megabytes_per_processor_s"] > 0
        assert recording["each_core"]["peak_memory_mib"] > 0
        speeds = recording["each_core"]["megabytes_per_s_of_all"]
        assert len(speeds) == 2
        assert recording["each_core"]["megabytes_per_s"] in speeds
    assert main(["--data", str(tmp_path / "gone"), *asked]) == 2
    assert main(["--data", str(tmp_path), *asked, "--runs", "0"]) == 2
