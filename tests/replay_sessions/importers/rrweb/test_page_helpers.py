"""Pages that other processes simplify are those that this one would have made, and no process outlives its work."""

import json
import multiprocessing
from pathlib import Path

import pytest

from replay_sessions import SessionStore
from replay_sessions.foundation.errors import BadSession
from replay_sessions.importers.rrweb import importer as rrweb
from replay_sessions.importers.rrweb.page_writer import MARK
from replay_sessions.importers.rrweb.pages import ActedPage, PageHelpers, Settler, View
from replay_sessions.importers.running import run_import as running
from replay_sessions.importers.running.engines import WorkerDied
from tests.replay_sessions.importers.rrweb.made_recordings import Recorded

pytestmark = pytest.mark.long

LINKS = "".join(f"<a id='l{number}' href='/{number}'>Kettle number {number}</a>" for number in range(6))
PAGE = f"<title>Kettles</title><a class='{MARK}' href='/red'>Red kettle</a><p>Call Anna Lindqvist on +49 30 901820</p>"


def test_a_store_is_the_same_whoever_simplifies_its_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rrweb, "_WORTH_HELPERS_BYTES", 0)
    tab = Recorded().tab(f"<title>Shop</title><p id=text>Welcome</p>{LINKS}")
    for number in range(6):
        tab.click(f"l{number}", changes={"texts": [{"id": tab.id("text"), "value": f"{number} seen"}]}).click("text")
    recording = tmp_path / "visit.json"
    recording.write_text(json.dumps(tab.recorded.events))
    stores = []
    for workers in (1, 2):
        importer = rrweb.RrwebImporter(recording, rrweb.RrwebOptions())
        running.run_import(importer, tmp_path / f"store{workers}", workers=workers)
        assert importer.helpers == workers - 1
        stores.append(SessionStore.open(tmp_path / f"store{workers}"))
    alone, helped = stores
    assert alone.fingerprint == helped.fingerprint
    assert alone.session("visit") == helped.session("visit")
    assert len(alone.session("visit").steps) == 6
    assert multiprocessing.active_children() == []


def test_pages_count_as_if_nobody_had_helped() -> None:
    with (
        PageHelpers(None, (), private_data=True, helpers=1) as helpers,
        PageHelpers(None, (), private_data=True, helpers=0) as nobody,
    ):
        alone = Settler(nobody, longest=10_000)
        settler = Settler(helpers, longest=10_000)
        views = [View(PAGE) for _ in range(5)]  # more than a helper is given at a time
        for view in views:
            settler.begin(view)
        settler.finish()
        assert all(view.page == alone.page(View(PAGE)) for view in views)
        page = views[0].page
        assert isinstance(page, ActedPage)
        assert page.name == "red_kettle"
        assert "901820" not in page.page.html
        too_short = Settler(helpers, longest=len(page.page.html))
        too_short.begin(View(PAGE))
        with pytest.raises(BadSession, match="max-session-mib"):
            too_short.page(View(PAGE))


def test_helpers_end_with_a_stop_and_one_that_is_killed_is_told() -> None:
    def stopped() -> None:
        with PageHelpers(None, (), private_data=True, helpers=1) as helpers:
            Settler(helpers, longest=10_000).begin(View(PAGE))
            raise KeyboardInterrupt

    def killed() -> None:
        with PageHelpers(None, (), private_data=True, helpers=1) as helpers:
            settler = Settler(helpers, longest=10_000)
            settler.page(View(PAGE))
            for child in multiprocessing.active_children():
                child.kill()
                child.join()
            settler.page(View(PAGE))

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert multiprocessing.active_children() == []
    with pytest.raises(WorkerDied, match="run the same command again"):
        killed()
    assert multiprocessing.active_children() == []
