"""Captured pages, found by address and time: in four forms, what cannot be joined, and files that are damaged."""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replay_sessions import Click, SessionStore, TypeAndSubmit
from replay_sessions.__main__ import main
from replay_sessions.foundation.errors import ImportFailed, ShopR1Error
from replay_sessions.importers.raw.captured_pages import Joining
from replay_sessions.importers.raw.importer import RawImporter, RawOptions
from replay_sessions.importers.raw.page_files import open_page_file
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.importers.sources import captures
from replay_sessions.importers.sources.captures import BadBody, Cause
from tests.replay_sessions.importers.raw.captured import (
    SHOP,
    START,
    VISIT,
    Shown,
    Writer,
    add_response,
    base64_entry,
    entry,
    page,
    write_form,
    write_har,
    write_list,
    write_mhtml,
    write_warc,
)

FORMS = ("har", "har.gz", "warc", "warc.gz", "mhtml", "list")
ACTIONS: list[dict[str, Any]] = [
    {"type": "type_and_submit", "selector": "[type=search]", "text": "kettle", "url": f"{SHOP}/", "timestamp": 5},
    {"type": "click", "link_url": "/kettle", "url": f"{SHOP}/search?q=kettle&utm_source=mail#top", "timestamp": 15},
    {"type": "view", "url": f"{SHOP}/kettle", "timestamp": 21},
    {"type": "click", "element_id": "to_buy", "url": f"{SHOP}/kettle", "timestamp": 25},
]
DONE = [
    TypeAndSubmit(name="q", text="kettle"),
    Click(name="kettle"),
    Click(name="buy"),
]


def at(second: float) -> str:
    return datetime.fromtimestamp(START + second, UTC).isoformat()


def write_actions(path: Path, rows: list[dict[str, Any]], session: str = "v1") -> Path:
    lines = [{"session_id": session, **row, "timestamp": at(row["timestamp"])} for row in rows]
    if path.suffix == ".parquet":
        columns = dict.fromkeys(key for line in lines for key in line)
        pq.write_table(pa.table({name: [line.get(name) for line in lines] for name in columns}), path)
    elif path.suffix == ".csv":
        columns = dict.fromkeys(key for line in lines for key in line)
        table = [",".join(columns), *(",".join(str(line.get(name, "")) for name in columns) for line in lines)]
        path.write_text("\n".join(table))
    else:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def imported(source: Path, rows: list[dict[str, Any]], **joining: Any) -> SessionStore:
    folder = source.parent
    actions = write_actions(folder / "done.jsonl", rows)
    run_import(
        RawImporter(source, RawOptions(actions=actions, joining=Joining(**joining))), folder / "store", overwrite=True
    )
    return SessionStore.open(folder / "store")


def reasons(store: SessionStore) -> list[str]:
    path = store.path / "rejected.jsonl"
    return [json.loads(line)["reason"] for line in path.read_text().splitlines()] if path.exists() else []


def click(at_second: float, path: str = "/", **more: Any) -> dict[str, Any]:
    return {"type": "click", "element_text": "Sale", "url": SHOP + path, "timestamp": at_second, **more}


class TestForms:
    @pytest.mark.parametrize("table", ["done.jsonl", "done.csv", "done.parquet"])
    def test_the_real_command_line_reads_a_visit(
        self, tmp_path: Path, table: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source = write_form("har", tmp_path / "pages", VISIT)
        actions = write_actions(tmp_path / table, ACTIONS)
        call = ["import", "raw", str(source), "--actions", str(actions), "--out", str(tmp_path / "store")]
        assert main([*call, "--terminate-at-end"]) == 0
        assert "3 of 3 actions (100%) have a page among 3 captures" in capsys.readouterr().out
        session = SessionStore.open(tmp_path / "store").session("v1")
        assert [(step.action, step.gap) for step in session.steps] == [(action, 0) for action in DONE]
        assert "Kettle für 2 l" in session.steps[2].page

    @settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        titles=st.lists(st.text("abz üß漢🛒", min_size=1, max_size=8), min_size=1, max_size=4),
        gaps=st.lists(st.integers(0, 3), min_size=4, max_size=4),
        same=st.booleans(),
    )
    def test_all_forms_of_one_recording_give_the_same_store(
        self, tmp_path_factory: pytest.TempPathFactory, titles: list[str], gaps: list[int], same: bool
    ) -> None:
        folder = tmp_path_factory.mktemp("forms")
        times = [sum(gaps[: number + 1]) for number in range(len(titles))]
        pages = [Shown("/" if same else f"/{n}", times[n], page(title, "sale")) for n, title in enumerate(titles)]
        rows = [click(times[n], pages[n].path) for n in range(len(titles))]
        stores = [imported(write_form(form, folder / form, pages), rows) for form in FORMS]
        assert len({store.fingerprint for store in stores}) == 1
        assert stores[0].manifest.steps == len(rows)

    def test_a_folder_may_mix_forms_and_a_row_may_name_the_file_to_look_in(self, tmp_path: Path) -> None:
        folder = tmp_path / "pages"
        (folder / "ada").mkdir(parents=True)
        write_har(folder / "ada" / "first.har", [Shown("/", 0, page("Of Ada", "sale"))])
        write_warc(folder / "second.warc.gz", [Shown("/", 1, page("Of Bob", "sale"))])
        rows = [click(5, page="first"), click(6, page="second.warc.gz"), click(7), click(8, page="third.har")]
        store = imported(folder, rows)
        titles = [step.page.partition("<h1>")[2].partition("<")[0] for step in store.session("v1").steps]
        assert titles == ["Of Ada", "Of Bob", "Of Bob"]
        assert reasons(store) == ["no page: no such file of captures [third.har]"]

    def test_each_session_may_have_a_file_of_its_own(self, tmp_path: Path) -> None:
        folder = tmp_path / "pages"
        folder.mkdir()
        write_har(folder / "v1.har", [Shown("/", 0, page("Of v1", "sale"))])
        write_har(folder / "v2.har", [Shown("/", 1, page("Of v2", "sale"))])
        assert "Of v2" in imported(folder, [click(5)]).session("v1").steps[0].page
        assert "Of v1" in imported(folder, [click(5)], pages_by_session=True).session("v1").steps[0].page

    def test_an_import_by_two_processes_is_the_same(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("replay_sessions.importers.raw.importer._PART_ROWS", 1)
        source = write_form("warc.gz", tmp_path / "pages", VISIT)
        actions = write_actions(tmp_path / "done.jsonl", ACTIONS)
        for workers, out in ((1, "one"), (2, "two")):
            run_import(RawImporter(source, RawOptions(actions=actions)), tmp_path / out, workers=workers)
        one, two = (SessionStore.open(tmp_path / out) for out in ("one", "two"))
        assert one.fingerprint == two.fingerprint


class TestWhatIsShown:
    def test_it_is_the_newest_capture_at_or_before_the_action(self, tmp_path: Path) -> None:
        pages = [Shown("/", second, page(f"At {second}", "sale")) for second in (30, 10, 20)]
        store = imported(write_form("har", tmp_path / "pages", pages), [click(10), click(29), click(1000)])
        assert [title for step in store.session("v1").steps for title in ("At 10", "At 20", "At 30")
                if title in step.page] == ["At 10", "At 20", "At 30"]  # fmt: skip

    def test_of_captures_of_one_time_the_last_counts(self, tmp_path: Path) -> None:
        source = write_form("warc", tmp_path / "pages", [Shown("/", 0, page(name, "sale")) for name in ("A", "B")])
        assert "<h1>B</h1>" in imported(source, [click(0)]).session("v1").steps[0].page

    def test_a_later_capture_counts_only_within_the_tolerance_and_if_none_was_before(self, tmp_path: Path) -> None:
        pages = [Shown("/", 10, page("Ten", "sale")), Shown("/", 12, page("Twelve", "sale"))]
        source = write_form("har", tmp_path / "pages", pages)
        with pytest.raises(ImportFailed, match=r"0 of 1 actions \(0%\).*1 only later captures \(--late-s allows"):
            imported(source, [click(9)])
        assert "Ten" in imported(source, [click(9)], late_s=1).session("v1").steps[0].page
        assert "Ten" in imported(source, [click(11)], late_s=5).session("v1").steps[0].page

    def test_an_older_capture_counts_only_within_the_tolerance(self, tmp_path: Path) -> None:
        source = write_form("har", tmp_path / "pages", [Shown("/", 0, page("Home", "sale"))])
        assert imported(source, [click(60)], stale_minutes=1).manifest.steps == 1
        with pytest.raises(ImportFailed, match="1 only older captures"):
            imported(source, [click(61)], stale_minutes=1)

    def test_parameters_that_tell_no_pages_apart_are_passed_over_if_that_is_said(self, tmp_path: Path) -> None:
        source = write_form("har", tmp_path / "pages", [Shown("/?session=7", 0, page("Home", "sale"))])
        with pytest.raises(ImportFailed, match=r"1 no capture of its address .* path was captured with other"):
            imported(source, [click(1, "/?session=8")])
        assert imported(source, [click(1, "/?session=8")], ignore_parameters="sess*").manifest.steps == 1

    def test_a_redirect_shows_the_page_that_it_leads_to(self, tmp_path: Path) -> None:
        entries = [
            entry(Shown("/old", 0, ""), status=301, redirectURL="/new"),
            entry(Shown("/new", 1, ""), status=302, redirectURL="https://shop.example/newest"),
            Shown("/newest", 2, page("Newest", "sale")),
            entry(Shown("/round", 3, ""), status=302, redirectURL="/about"),
            entry(Shown("/about", 3, ""), status=302, redirectURL="/round"),
            entry(Shown("/away", 3, ""), status=302, redirectURL="https://other.example/"),
        ]
        store = imported(write_har(tmp_path / "v.har", entries), [click(9, "/old"), click(9, "/newest"),
                                                                 click(9, "/round"), click(9, "/away")])  # fmt: skip
        assert store.manifest.steps == 2
        assert store.manifest.left_out_steps == {"click without a page: leads to a page that was not captured": 2}

    def test_not_modified_shows_the_page_before_it(self, tmp_path: Path) -> None:
        unchanged = entry(Shown("/", 10, ""), status=304, content={"size": 0, "mimeType": "x-unknown"})
        again = {**unchanged, "startedDateTime": at(11)}
        source = write_har(tmp_path / "v.har", [unchanged, again, Shown("/", 0, page("Home", "sale"))])
        assert imported(source, [click(20)]).manifest.steps == 1
        with pytest.raises(ImportFailed, match="leads to a page that was not captured"):
            imported(write_har(tmp_path / "v.har", [unchanged]), [click(20)])
        kept = entry(Shown("/", 10, page("Kept", "sale")), status=304)
        assert "Kept" in imported(write_har(tmp_path / "v.har", [kept]), [click(20)]).session("v1").steps[0].page

    def test_a_revisit_shows_the_page_that_it_refers_to(self, tmp_path: Path) -> None:
        path = tmp_path / "v.warc.gz"
        with path.open("wb") as file:
            writer = Writer(file, gzip=True)
            for shown in (Shown("/", 0, page("Old", "sale")), Shown("/", 5, page("Newer", "sale"))):
                add_response(writer, shown, shown.html.encode())
            dates = [datetime.fromtimestamp(START + second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for second in (0, 9)]
            for url in (f"{SHOP}/", f"{SHOP}/copy"):
                record = writer.create_revisit_record(url, "sha1:A", f"{SHOP}/", dates[0],
                                                      warc_headers_dict={"WARC-Date": dates[1]})  # fmt: skip
                writer.write_record(record)
        store = imported(path, [click(6), click(9), click(9, "/copy")])
        assert ["Newer" in step.page for step in store.session("v1").steps] == [True, False, False]

    def test_what_a_script_fetched_from_the_address_is_no_page(self, tmp_path: Path) -> None:
        entries = [
            Shown("/", 0, page("Home", "sale")),
            entry(Shown("/", 1, "{}"), content={"mimeType": "application/json", "text": "{}"}),
            {**entry(Shown("/", 2, "<p>part</p>")), "_resourceType": "fetch"},
            entry(Shown("/data", 1, "{}"), content={"mimeType": "application/json", "text": "{}"}),
        ]
        store = imported(write_har(tmp_path / "v.har", entries), [click(5), click(5, "/data")])
        assert store.manifest.left_out_steps == {"click without a page: not HTML": 1}

    @pytest.mark.parametrize(
        ("url", "timestamp", "cause"),
        [("", 5, "no address"), ("data:text/html,x", 5, "no address"), ("about:blank", 5, "no address")],
    )
    def test_actions_without_an_address_are_told(self, tmp_path: Path, url: str, timestamp: float, cause: str) -> None:
        source = write_form("har", tmp_path / "pages", VISIT)
        store = imported(source, [click(5), {**click(timestamp), "url": url}])
        assert store.manifest.left_out_steps == {f"click without a page: {cause}": 1}

    def test_actions_without_a_time_are_told(self, tmp_path: Path) -> None:
        source = write_form("har", tmp_path / "pages", VISIT)
        rows = [{**click(0), "session_id": "v1", "timestamp": time} for time in (at(5), "yesterday", "17", None)]
        actions = tmp_path / "done.jsonl"
        actions.write_text("".join(json.dumps(row) + "\n" for row in rows))
        run_import(
            RawImporter(source, RawOptions(actions=actions, joining=Joining(max_without_page=1))), tmp_path / "store"
        )
        left_out = SessionStore.open(tmp_path / "store").manifest.left_out_steps
        assert left_out == {"click without a page: no time": 3}


class TestReport:
    def test_every_action_without_a_page_is_counted_listed_and_told_with_examples(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source = write_form("har", tmp_path / "pages", VISIT)
        actions = write_actions(tmp_path / "done.jsonl", [click(5), click(5, "/gone?mail=ada@mail.example"), click(6)])
        call = ["import", "raw", str(source), "--actions", str(actions), "--out", str(tmp_path / "store")]
        assert main(call) == 0
        told = capsys.readouterr().out
        assert "pages: 2 of 3 actions (67%) have a page among 3 captures; the rest is left out:" in told
        assert "1 no capture of its address" in told and "such as row 2 [https://shop.example/gone?mail=[email]" in told
        store = SessionStore.open(tmp_path / "store")
        assert [step.gap for step in store.session("v1").steps] == [0, 1]
        assert len(reasons(store)) == 1 and "ada@" not in reasons(store)[0]

    def test_where_too_many_have_none_nothing_is_imported(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source = write_form("har", tmp_path / "pages", VISIT)
        actions = write_actions(tmp_path / "done.jsonl", [click(5), click(5, "/a"), click(5, "/b")])
        call = ["import", "raw", str(source), "--actions", str(actions), "--out", str(tmp_path / "store")]
        assert main(call) == 2
        told = capsys.readouterr().err
        assert "1 of 3 actions (33%) have a page" in told and "at most 50% may lack one (--max-without-page)" in told
        assert not (tmp_path / "store").exists()
        assert main([*call, "--max-without-page", "0.7"]) == 0

    @pytest.mark.parametrize(
        ("ending", "text"),
        [
            ("har", r"visit\.har: no HAR file, or one that is damaged or cut: .*\(byte [\d,]+\); export it again"),
            ("har.gz", r"visit\.har\.gz: no HAR file, or one that is damaged or cut: .*; export it again"),
            ("warc", r"visit\.warc, byte \d+: the file is damaged here, or cut: fetch it again"),
            ("mhtml", r"2\.mhtml: it has no header Date"),
        ],
    )
    def test_a_file_that_is_cut_or_damaged_is_named_where_pages_are_missing(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str, text: str
    ) -> None:
        source = write_form(ending, tmp_path / "pages", VISIT)
        file = source if source.is_file() else source / "2.mhtml"
        content = file.read_bytes()
        file.write_bytes(content.replace(b"Date:", b"D:") if ending == "mhtml" else content[: len(content) // 2])
        actions = write_actions(tmp_path / "done.jsonl", [click(25, "/kettle"), click(26, "/kettle")])
        call = ["import", "raw", str(source), "--actions", str(actions), "--out", str(tmp_path / "store")]
        assert main(call) == 2
        error = " ".join(capsys.readouterr().err.split())
        assert "0 of 2 actions (0%) have a page" in error
        assert re.search(rf"2 no capture of its address in what could be read \({text}", error), error

    def test_chromes_shadow_roots_in_mhtml_are_opened(self, tmp_path: Path) -> None:
        cart = '<div><template shadowmode="open" shadowdelegatesfocus=""><a href="/cart">Cart</a></template></div>'
        source = write_mhtml(tmp_path / "v.mhtml", Shown("/", 0, page("Home", "sale") + cart))
        assert '<a name="cart">Cart</a>' in imported(source, [click(5)]).session("v1").steps[0].page

    @pytest.mark.parametrize("flag", ["--late-s", "--stale-minutes", "--max-without-page"])
    def test_flags_that_mean_nothing_are_told(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str
    ) -> None:
        source = write_form("har", tmp_path / "pages", VISIT)
        actions = write_actions(tmp_path / "done.jsonl", [click(5)])
        call = ["import", "raw", str(source), "--actions", str(actions), "--out", str(tmp_path / "store")]
        assert main([*call, flag, "-1"]) == 2
        assert f"{flag} is -1" in capsys.readouterr().err


class TestDamage:
    """A good page stands beside what is damaged, and comes in whatever happens to the rest."""

    def har(self, tmp_path: Path, *entries: Any) -> Path:
        return write_har(tmp_path / "v.har", [Shown("/good", 0, page("Good", "sale")), *entries])

    def cause(self, source: Path) -> str:
        """Why the page at / is not there."""
        store = imported(source, [click(5), click(5, "/good")])
        assert store.manifest.steps == 1
        (left_out,) = store.manifest.left_out_steps
        return left_out.removeprefix("click without a page: ")

    @pytest.mark.parametrize(
        ("content", "cause"),
        [
            ({"mimeType": "text/html", "size": 900}, "body not saved"),
            ({"mimeType": "text/html", "size": 900, "text": ""}, "body not saved"),
            ({"mimeType": "text/html", "size": 900, "text": "<p>half"}, "truncated body"),
            ({"mimeType": "text/html", "size": 4, "text": "?", "encoding": "base64"}, "body cannot be decoded"),
            ({"mimeType": "text/html", "text": 17}, "body not saved"),
        ],
    )
    def test_bodies_of_har_entries(self, tmp_path: Path, content: dict[str, Any], cause: str) -> None:
        assert self.cause(self.har(tmp_path, entry(Shown("/", 1, ""), content=content))) == cause

    def test_a_damaged_capture_hides_the_older_ones(self, tmp_path: Path) -> None:
        half = entry(Shown("/", 3, ""), content={"mimeType": "text/html", "size": 900, "text": "<p>half"})
        assert self.cause(self.har(tmp_path, Shown("/", 1, page("Old", "sale")), half)) == "truncated body"

    def test_entries_of_no_recorder_and_files_that_are_cut_are_told(self, tmp_path: Path) -> None:
        folder = tmp_path / "pages"
        folder.mkdir()
        write_har(folder / "a.har", [Shown("/", 0, page("Home", "sale")), {"request": {}}, 17,
                                     {**entry(VISIT[1]), "startedDateTime": "noon"}])  # fmt: skip
        cut = write_har(folder / "b.har", VISIT).read_bytes()
        (folder / "b.har").write_bytes(cut[: len(cut) // 2])
        (folder / "c.har").write_bytes(b"")
        (folder / "d.har.gz").write_bytes(gzip.compress(cut)[:-20])
        (folder / "e.mhtml").write_bytes(b"")
        (folder / "f.warc.gz").write_bytes(gzip.compress(b"no archive at all"))
        store = imported(folder, [click(5)])
        lines = (store.path / "rejected.jsonl").read_text().splitlines()
        where = [json.loads(line)["where"] for line in lines]
        assert where == ["a.har, entry 2", "a.har, entry 3", "a.har, entry 4", "b.har", "c.har", "d.har.gz", "e.mhtml",
                         "f.warc.gz, byte 0"]  # fmt: skip

    @pytest.mark.parametrize(
        ("name", "body", "headers", "cause"),
        [
            ("gzip bomb", gzip.compress(b"<p>" + b" " * 3_000_000), {"Content_Encoding": "gzip"}, "body too large"),
            ("cut gzip", gzip.compress(page("A").encode())[:-12], {"Content_Encoding": "gzip"}, "truncated body"),
            ("bad gzip", b"\x1f\x8b" + b"x" * 80, {"Content_Encoding": "gzip"}, "body cannot be decoded"),
            ("bad brotli", b"\x00x" * 40, {"Content_Encoding": "br"}, "body cannot be decoded"),
            ("zstd", b"\x28\xb5\x2f\xfd", {"Content_Encoding": "zstd"}, "body cannot be decoded"),
            ("short", b"<p>half", {"Content_Length": "900"}, "truncated body"),
            ("chunks", b"ff\r\n<p>half", {"Transfer_Encoding": "chunked"}, "truncated body"),
            ("empty", b" ", {}, "body not saved"),
            ("an image", b"\x89PNG", {"Content_Type": "image/png"}, "not HTML"),
            ("typeless", b"\x89PNG", {"Content_Type": ""}, "not HTML"),
            ("told", b"<p>half", {"warc": {"WARC-Truncated": "length"}}, "truncated body"),
        ],
        ids=lambda given: given if isinstance(given, str) else "",  # gzip's bytes hold the time
    )
    def test_bodies_of_warc_records(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, body: bytes, headers: Any, cause: str
    ) -> None:
        monkeypatch.setattr(captures, "MAX_BYTES", 1_000_000)
        with (path := tmp_path / "v.warc.gz").open("wb") as file:
            writer = Writer(file, gzip=True)
            add_response(writer, Shown("/", 1, ""), body, **headers)
            add_response(writer, Shown("/good", 0, ""), page("Good", "sale").encode())
        assert self.cause(path) == cause, name

    @pytest.mark.parametrize(
        ("packed", "headers"),
        [
            (gzip.compress, {"Content_Encoding": "gzip"}),
            (zlib.compress, {"Content_Encoding": "deflate"}),
            (lambda body: zlib.compress(body)[2:-4], {"Content_Encoding": "deflate"}),
            (lambda body: __import__("brotli").compress(body), {"Content_Encoding": "br"}),
            (lambda body: gzip.compress(gzip.compress(body)), {"Content_Encoding": "gzip, gzip"}),
            (lambda body: body, {"Content_Encoding": "gzip"}),
            (lambda body: b"5\r\n" + body[:5] + b"\r\n" + b"%x;a=b\r\n" % len(body[5:]) + body[5:] + b"\r\n0\r\n\r\n",
             {"Transfer_Encoding": "chunked"}),
            (lambda body: body, {"Transfer_Encoding": "chunked"}),
            (lambda body: body, {"Content_Type": ""}),
        ],
    )  # fmt: skip
    def test_bodies_are_unpacked_as_a_browser_does(self, tmp_path: Path, packed: Any, headers: dict[str, str]) -> None:
        with (path := tmp_path / "v.warc").open("wb") as file:
            add_response(Writer(file, gzip=False), VISIT[0], packed(VISIT[0].html.encode()), **headers)
        assert imported(path, [click(5)]).session("v1").steps[0].page.count("Home") == 2

    @pytest.mark.parametrize("ending", ["warc", "warc.gz"])
    def test_an_archive_that_is_cut_anywhere_keeps_what_came_before(self, tmp_path: Path, ending: str) -> None:
        whole = write_warc(tmp_path / f"v.{ending}", VISIT)
        content = whole.read_bytes()
        for length in range(0, len(content), 97):
            whole.write_bytes(content[:length])
            found = list(open_page_file(whole).captures(lambda url: True))
            good = [one for one in found if getattr(one, "address", None) and one.cause is None]  # type: ignore[union-attr]
            bodies_read = [open_page_file(whole).body(one.position) for one in good]  # type: ignore[union-attr]
            assert bodies_read == [shown.html.encode() for shown in VISIT[: len(good)]]
            assert len(good) == 3 or length < 120 or len(found) > len(good) or _ends_a_record(content, length)

    def test_an_archive_packed_as_a_whole_is_told(self, tmp_path: Path) -> None:
        plain = write_warc(tmp_path / "v.warc", VISIT).read_bytes()
        (tmp_path / "v.warc").unlink()
        (tmp_path / "v.warc.gz").write_bytes(gzip.compress(plain))
        store = imported(tmp_path / "v.warc.gz", [click(5)])
        assert "warcio recompress" in reasons(store)[0]

    def test_headers_without_end_are_read_no_further(self, tmp_path: Path) -> None:
        bomb = tmp_path / "v.warc.gz"
        bomb.write_bytes(gzip.compress(b"WARC/1.0\r\nX: " + b"a" * 50_000_000))
        (told,) = list(open_page_file(bomb).captures(lambda url: True))
        assert "damaged" in told.reason  # type: ignore[union-attr]

    def test_mhtml_files_that_are_damaged_are_told(self, tmp_path: Path) -> None:
        folder = tmp_path / "pages"
        folder.mkdir()
        write_mhtml(folder / "good.mhtml", Shown("/", 0, page("Home", "sale")))
        whole = write_mhtml(folder / "dateless.mhtml", Shown("/x", 0, page("X"))).read_bytes()
        (folder / "dateless.mhtml").write_bytes(whole.replace(b"Date:", b"Dated:"))
        (folder / "homeless.mht").write_bytes(whole.replace(b"Snapshot-Content-Location", b"Somewhere"))
        store = imported(folder, [click(5)])
        assert sorted(reasons(store)) == [
            "it has no header Date that tells one",
            "it has no header Snapshot-Content-Location or Content-Location that tells one",
        ]

    def test_mhtml_that_is_cut_within_its_page_is_truncated(self, tmp_path: Path) -> None:
        path = write_mhtml(tmp_path / "v.mhtml", Shown("/", 0, page("Home", "sale")))
        content = path.read_bytes()
        path.write_bytes(content[: content.index(b"Sale")])
        with pytest.raises(BadBody) as raised:
            open_page_file(path).body(0)
        assert raised.value.cause == Cause.TRUNCATED

    def test_a_list_of_pages_tells_of_files_that_are_missing_or_lie_outside(self, tmp_path: Path) -> None:
        folder = write_list(tmp_path / "pages", [Shown("/", 0, page("Home", "sale"))])
        (tmp_path / "secret.html").write_text(page("Secret", "sale"))
        with (folder / "pages.csv").open("a") as file:
            file.write(f"../secret.html,{SHOP}/a,{at(0)}\nnone.html,{SHOP}/b,{at(0)}\n0.html,{SHOP}/c,noon\n")
        store = imported(folder, [click(5), click(5, "/a"), click(5, "/b")], max_without_page=0.7)
        assert store.manifest.left_out_steps == {"click without a page: body not saved": 2}
        assert reasons(store)[0] == "its timestamp is none: 'noon'"

    @settings(max_examples=20, deadline=None)
    @given(data=st.data(), form=st.sampled_from(["har", "har.gz", "warc", "warc.gz", "mhtml"]))
    def test_spoiled_files_are_read_or_told_and_nothing_else(
        self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, form: str
    ) -> None:
        folder = tmp_path_factory.mktemp("spoiled")
        source = write_form(form, folder / "pages", VISIT)
        path = source if source.is_file() else source / "0.mhtml"
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 6))):
            place = data.draw(st.integers(0, 9_999)) * len(content) // 10_000  # archives hold ids that are drawn anew
            content[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
        path.write_bytes(content)
        try:
            for found in open_page_file(path).captures(lambda url: True):
                assert hasattr(found, "reason") or found.time  # type: ignore[union-attr]
            imported(source, [click(5)], max_without_page=1)
        except ShopR1Error as error:
            assert "\n" not in str(error)


class TestCharsets:
    TITLE = "Wasserkocher für 2 €"

    def shown(self, source: Path) -> str:
        return imported(source, [click(5)]).session("v1").steps[0].page

    @pytest.mark.parametrize(
        ("encoding", "content_type"),
        [
            ("cp1252", "text/html; charset=iso-8859-1"),
            ("cp1252", 'text/html; charset="windows-1252"'),
            ("utf-16", "text/html"),
            ("utf-8", "text/html; charset=utf-8"),
            ("utf-8", "text/html"),
            ("utf-8", "text/html; charset=klingon"),
            ("utf-8-sig", "text/html; charset=iso-8859-1"),
        ],
    )
    def test_the_charset_of_a_response_is_read_as_browsers_do(
        self, tmp_path: Path, encoding: str, content_type: str
    ) -> None:
        body = page(self.TITLE, "sale").encode(encoding)
        with (path := tmp_path / "v.warc").open("wb") as file:
            add_response(Writer(file, gzip=False), VISIT[0], body, Content_Type=content_type)
        assert f"<h1>{self.TITLE}</h1>" in self.shown(path)
        har = write_har(tmp_path / "v.har", [base64_entry(VISIT[0], body, content_type)])
        assert f"<h1>{self.TITLE}</h1>" in self.shown(har)

    def test_a_charset_that_is_wrong_loses_characters_and_no_page(self, tmp_path: Path) -> None:
        with (path := tmp_path / "v.warc").open("wb") as file:
            body = page(self.TITLE, "sale").encode("cp1252")
            add_response(Writer(file, gzip=False), VISIT[0], body, Content_Type="text/html; charset=utf-8")
        assert "Wasserkocher f�r 2 �" in self.shown(path)


def test_an_archive_is_streamed_and_only_pages_that_are_asked_for_are_read(tmp_path: Path) -> None:
    """What the index keeps of a page does not grow with the page."""
    path = tmp_path / "v.warc"
    with path.open("wb") as file:
        writer = Writer(file, gzip=False)
        for number in range(40):
            add_response(writer, Shown(f"/{number}", number, ""), page("Large", "sale").encode() + b" " * 500_000)
    asked: list[str] = []
    found = list(open_page_file(path).captures(lambda url: bool(asked.append(url))))
    assert len(found) == len(asked) == 40
    store = imported(path, [click(50, "/7")])
    assert store.manifest.steps == 1


def _ends_a_record(content: bytes, length: int) -> bool:
    """Whether a file cut there ends with a whole record, or with the line breaks behind one."""
    places: Iterator[int] = (
        place for place in range(len(content)) if content.startswith((b"WARC/1.0", b"\x1f\x8b"), place)
    )
    return any(place - 4 <= length <= place for place in places)
