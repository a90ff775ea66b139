import gzip
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from replay_sessions import Click, SessionStore, Terminate, TypeAndSubmit
from replay_sessions.__main__ import main
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.logged_pages import RawPage
from replay_sessions.importers.raw.importer import RawImporter, RawOptions
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store.splits import SplitPlan
from tests.processes import ROOT
from tests.stores import read_rejected

HOME = b"""<!doctype html><title>Shop</title><form role="search"><input id="q" placeholder="Search"></form>
<a href="/sale">Sale</a><p style="display:none"><a href="/x" id="hidden">Hidden</a></p>"""
RESULTS = """<!doctype html><meta charset="utf-8"><title>kettle</title>
<div class="card" id="a"><h2><a href="/1">Red kettle</a></h2><button><svg></svg><i>Add</i></button></div>
<div class="card" id="b"><h2><a href="/2">Wasserkocher für 2 l</a></h2><button><svg></svg><i>Add</i></button></div>
<div class="one"><span>Only</span><a href="/3">Contact</a></div><a class="top" id="top"></a>""".encode()


@pytest.fixture
def visits(tmp_path) -> Path:
    folder = tmp_path / "visits"
    (folder / "results").mkdir(parents=True)
    (folder / "home.html").write_bytes(HOME)
    (folder / "results" / "1.html.gz").write_bytes(gzip.compress(RESULTS))
    return folder


def row(page: str = "home.html", kind: str = "click", session: str = "v1", **more: Any) -> dict[str, Any]:
    return {"session_id": session, "page": page, "type": kind, **more}


def imported(folder: Path, *rows: Any, **options: Any) -> SessionStore:
    lines = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in rows)
    (folder / "actions.jsonl").write_text(lines)
    run_import(RawImporter(folder, RawOptions(**options)), folder.parent / "store", overwrite=True)
    return SessionStore.open(folder.parent / "store")


def test_the_worked_example_of_the_docs(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "raw_logs.md").read_text()
    blocks = re.findall(r"```(html|csv|sh|text)\n(.*?)```", text, re.DOTALL)
    files = re.findall(r"`(visits/[\w.]+)`(?:(?!\n\n).)*:\n\n```", text, re.DOTALL)
    (tmp_path / "visits").mkdir()
    for name, (_, content) in zip(files, [block for block in blocks if block[0] in ("html", "csv")], strict=True):
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    command = next(content for kind, content in blocks if kind == "sh").split()
    assert command[:2] == ["shop-r1", "import"]
    assert main(command[1:]) == 0
    told = capsys.readouterr().out
    for line in next(content for kind, content in blocks if kind == "text").splitlines():
        assert line in told
    store = SessionStore.open("stores/kettles")
    session = store.session("v1")
    assert [(step.action, step.gap) for step in session.steps] == [
        (TypeAndSubmit(name="header.search.search", text="red kettle"), 0), (Click(name="blue_kettle.view"), 1),
        (Click(name="red_kettle_1_7_l.add_to_cart"), 0), (Terminate(), 1),
    ]  # fmt: skip
    two = "2 elements (blue_kettle.add_to_cart, red_kettle_1_7_l.add_to_cart), not one"
    assert read_rejected(store.path) == {"actions.csv:6": f"{two}, reads 'Add to cart'"}
    assert "anna.lindqvist" not in session.steps[0].page
    assert main(["check", "stores/kettles"]) == 0


class TestTargets:
    def name(self, **given: str) -> str:
        return RawPage(RESULTS, None).find(given, typed=False)

    def test_a_selector_of_something_inside_means_the_element_around_it(self):
        assert self.name(selector="#a i") == self.name(selector="#a svg") == self.name(selector="#a button")
        assert self.name(selector="#b i") != self.name(selector="#a i")

    def test_a_selector_of_something_around_means_the_only_element_in_it(self):
        assert self.name(selector=".one") == self.name(element_text="contact") == "contact"

    def test_text_is_compared_whole_and_without_case_or_line_breaks(self):
        assert self.name(element_text=" WASSERKOCHER\nfür 2 L") == self.name(selector="#b a")
        assert self.name(name="red_kettle.view") == "red_kettle.view"

    def test_the_first_that_means_one_element_counts(self):
        assert self.name(name="gone", selector="#nothing", element_text="Red kettle") == "red_kettle.view"

    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            ({"name": "gone"}, "the page has no element named 'gone'"),
            ({"selector": "#nothing"}, "nothing in the raw page matches '#nothing'"),
            ({"selector": "a[["}, r"'a\[\[' is no CSS selector"),
            ({"selector": "#top"}, "no element that is shown and can be acted on matches '#top'"),
            ({"selector": ".card"}, r"4 elements \(.*\), not one, that is shown"),
            ({"element_text": "Add"}, r"2 elements \(red_kettle.add, wasserkocher_für_2_l.add\), not one, reads 'Add'"),
            ({"element_text": "Kettle"}, "no element reads 'Kettle'"),
            ({}, "none of name, selector, element_id, element_text and link_url is given"),
        ],
    )
    def test_references_to_no_element_or_several_are_refused(self, given, reason):
        with pytest.raises(Exception, match=reason):
            self.name(**given)

    def test_every_named_element_of_real_pages_is_found_by_its_node(self, shared_data):
        for file in ("mock_parse_results_amz.html.gz", "mock_parse_item_page_amz.html.gz"):
            page = RawPage(gzip.decompress((shared_data / "raw_pages" / file).read_bytes()), None)
            assert set(page._name_of_node.values()) == {element.name for element in page.page.elements}


class TestRows:
    def test_texts_are_typed_and_session_fields_kept(self, visits):
        store = imported(
            visits,
            row(kind="input", element_text="Search", text="ket", user_id="u1", timestamp=1, persona="Frugal."),
            row(kind="type_and_submit", selector="#q", text=17, goal="a kettle", timestamp=2, rationale="", url="/"),
            row("results/1.html.gz", selector="#a a", click_type="product_link", timestamp=3, split="test"),
            row("results/1.html.gz", "terminate", timestamp=4),
        )
        session = store.session("v1")
        assert [step.action for step in session.steps] == [
            TypeAndSubmit(name="search.search", text="ket", submitted=False),
            TypeAndSubmit(name="search.search", text="17"),
            Click(name="red_kettle.view", click_type="product_link"),
            Terminate(),
        ]
        assert (session.user_id, session.goal, session.official_split) == ("u1", "a kettle", "test")
        assert session.persona.text == "Frugal."
        assert (session.steps[1].rationale, session.steps[1].url, session.steps[1].timestamp) == (None, "/", "2")

    def test_rows_are_taken_by_session_and_in_the_order_of_time(self, visits):
        sale = {"element_text": "Sale"}
        store = imported(
            visits,
            row(kind="terminate", session="b", timestamp="2025-01-01T10:00:05Z"),
            row(session="a", timestamp="1/2/2025 10:00", **sale),
            row(session="b", timestamp="2025-01-01T12:00:01+02:00", **sale),
            row(session="a", kind="terminate"),
        )
        assert store.session_ids() == ["b", "a"]
        assert "1 timestamps cannot be read, such as '1/2/2025 10:00'" in store.manifest.warnings[0]
        for session in store.sessions():
            assert [type(step.action) for step in session.steps] == [Click, Terminate]

    def test_unreadable_rows_are_left_out_counted_and_listed(self, visits, tmp_path):
        (tmp_path / "secret.html").write_bytes(HOME)
        (visits / "broken.html.gz").write_bytes(gzip.compress(HOME)[:20])
        store = imported(
            visits,
            row(element_text="Sale"),
            row("gone.html", element_text="Sale"),
            row("../secret.html", element_text="Sale"),
            row("broken.html.gz", element_text="Sale"),
            row(selector="#hidden"),
            row(kind="hover"),
            row(kind=None),
            row(kind="terminate"),
            "{broken",
            row(session=""),
            row(session="all", page="gone.html"),
            row(session="split", element_text="Sale", split="dev"),
            "[1]",
        )
        assert store.manifest.left_out_steps == {"click not found on its page": 5, "hover": 1, "without a type": 1}
        assert [(type(step.action), step.gap) for step in store.session("v1").steps] == [(Click, 0), (Terminate, 6)]
        told = read_rejected(store.path)
        assert told["actions.jsonl:2"] == "page 'gone.html' cannot be read: No such file or directory"
        assert told["actions.jsonl:3"] == "page '../secret.html' lies outside the folder"
        assert told["actions.jsonl:4"].startswith("page 'broken.html.gz' cannot be read: ")
        assert told["actions.jsonl:5"].startswith("no element that is shown")
        assert told["actions.jsonl:10"] == "session_id is empty"
        assert told["actions.jsonl:13"] == "the line is no JSON object"
        assert told["all"] == "none of its actions could be taken in"
        assert told["split"] == "official split is 'dev', and train, validation or test was expected"
        assert len(told) == store.manifest.rejected == 10

    def test_private_data_is_taken_out_of_pages_texts_and_rationales(self, visits):
        (visits / "home.html").write_bytes(HOME + b"<p>Write to maria@example.org</p>")
        line = row(kind="type_and_submit", selector="#q", text="maria@example.org", rationale="I am maria@example.org.")
        step = imported(visits, line).session("v1").steps[0]
        assert "maria" not in str(msgspec.to_builtins(step))
        assert isinstance(step.action, TypeAndSubmit)
        assert step.action.text == "[email]"
        kept = imported(visits, line, keep_private_data=True).session("v1").steps[0]
        assert str(msgspec.to_builtins(kept)).count("maria@example.org") == 3

    def test_csv_with_quotes_line_breaks_and_rows_that_do_not_fit(self, visits):
        (visits / "actions.csv").write_text(
            "\ufeffsession_id,page,type,element_text,text,cookie\n"
            'v1,home.html,type_and_submit,Search,"a ""red"" kettle,\n1.7 l",x\n'
            "v1,home.html,terminate,,\n"
            "007,home.html,click,Sale,,x\n"
            "007,home.html,click,gone,,x\n",
            encoding="utf-8",
        )
        with pytest.raises(ImportFailed, match=r"has a column 'cookie' that is not known.* --ignore-columns cookie"):
            RawImporter(visits)
        run_import(RawImporter(visits, RawOptions(ignore_columns="cookie")), visits.parent / "store")
        store = SessionStore.open(visits.parent / "store")
        assert store.session_ids() == ["v1", "007"]
        action = store.session("v1").steps[0].action
        assert isinstance(action, TypeAndSubmit)
        assert action.text == 'a "red" kettle,\n1.7 l'
        assert read_rejected(store.path) == {
            "actions.csv:3": "5 columns where 6 were expected",
            "actions.csv:5": "no element reads 'gone'",
        }

    def test_rejections_do_not_repeat_removed_values(self, visits):
        (visits / "home.html").write_bytes(HOME + b"<a href=x>Lists</a>")
        store = imported(
            visits,
            row(element_text="Sale"),
            row(element_text="Lists of anna@example.org"),
            row(selector="[title='anna@example.org']"),
            row("anna@example.org.html", element_text="Sale"),
        )
        told = (store.path / "rejected.jsonl").read_text()
        assert len(read_rejected(store.path)) == 3
        assert not re.search("anna", told), told

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            ('v1,home.html,"click' + "\nx" * 50, "field larger than"),
            ("v1\tx,home.html,click,x,y,z\n" * 9, "actions.csv:2: 6 columns"),
        ],
    )
    def test_a_table_that_is_none_is_told_without_arrows_words(self, visits, monkeypatch, content, told):
        monkeypatch.setattr("replay_sessions.importers.sources.record_files._LONGEST_CELL", 64)
        (visits / "actions.csv").write_text("session_id,page,type\n" + content)
        with pytest.raises(ImportFailed, match=told):
            RawImporter(visits)

    def test_however_many_bad_rows_are_rejected_beside_a_good_one(self, visits):
        (visits / "actions.csv").write_text("session_id,page,type\nv1,home.html,click\n" + ",x,click\n" * 100_001)
        rejected, part = RawImporter(visits).split()
        assert (len(rejected.rejected), part.size) == (100_001, 1)

    def test_parts_and_processes_make_the_same_store(self, visits, monkeypatch):
        rows = [row(session=f"v{i // 3}", element_text="Sale") for i in range(30)]
        whole = imported(visits, *rows).fingerprint
        monkeypatch.setattr(RawImporter, "batch_size", 5)
        done: list[int] = []
        importer = RawImporter(visits)
        run_import(importer, visits.parent / "parts", workers=2, on_progress=done.append, splits=SplitPlan())
        assert (len(done), sum(done), importer.size) == (5, 30, 30)
        assert SessionStore.open(visits.parent / "parts").fingerprint == whole

    def test_wrong_calls_are_one_line(self, visits, capsys):
        out = str(visits.parent / "store")
        assert main(["import", "raw", str(visits / "home.html"), "--out", out]) == 2
        assert main(["import", "raw", str(visits), "--out", out]) == 2
        (visits / "actions.csv").write_text("session_id,page\nv1,home.html\n")
        assert main(["import", "raw", str(visits), "--out", out]) == 2
        assert main(["import", "raw", str(visits), "--actions", "nowhere.csv", "--out", out]) == 2
        assert main(["import", "raw", str(visits), "--recipe", "amazn", "--out", out]) == 2
        told = capsys.readouterr().err.splitlines()
        assert [line[:7] for line in told] == ["error: "] * 5
        assert "holds no table of actions" in told[1]
        assert "has no column 'type'" in told[2]

    def test_help_teaches_the_columns(self, capsys):
        assert main(["import", "raw", "--help-all"]) == 0
        told = capsys.readouterr().out
        for column in ("session_id*", "page*", "type*", "selector", "element_text", "rationale", "timestamp"):
            assert f"  {column} " in told
