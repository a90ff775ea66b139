"""The report says what results.json says, no text breaks it, and it refuses what does not follow from what was kept."""

import base64
import hashlib
import shutil
import tomllib
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
from selectolax.lexbor import LexborHTMLParser

from agents.llm_grpo.training_log import kinds_of
from benchmarks.leaderboard.ranking import LeaderboardConfig, run_leaderboard
from benchmarks.report.__main__ import main
from benchmarks.report.evidence import OUTCOMES, judge, read_evidence
from benchmarks.report.session_data import SHOP_STYLE, page_view, session_data
from replay_sessions.elements import find_elements
from replay_sessions.simplify.page_view import page_document
from replay_sessions.store import SessionStore
from shop_env.evaluation.results_file import read_log, read_records
from shop_env.evaluation.waves import AgentSpec
from shop_env.observation import ContextConfig
from tests.benchmarks.report.conftest import HOSTILE, blocks_of, policy_of
from tests.demo_stores import demo_store_at
from tests.json_files import edited_json, set_at


def text_of(report: Path) -> LexborHTMLParser:
    return LexborHTMLParser(report.read_text(encoding="utf-8"))


def test_the_first_screen_names_agents_with_mostly_one_type_of_action(report):
    rows = text_of(report).css("table.ranked")[0].css("tbody tr th")
    told = {row.text(deep=False).strip(): [small.text() for small in row.css("small")] for row in rows}
    assert told["majority"] == ["mostly terminates"]
    assert [label for label, of in told.items() if "mostly terminates" in of] == ["majority"]


def test_every_step_stands_in_the_viewer_with_each_agents_own_reply(board, report, store_path):
    blocks, store = blocks_of(report), SessionStore.open(store_path)
    labels = [agent["label"] for agent in blocks["index"]["agents"]]
    log = read_log(board)
    kept = {
        (label, record.session_id, record.step_index): record
        for label in labels
        for record in read_records(board, log, log.entry(label), store)
    }
    seen = 0
    for listed in blocks["index"]["sessions"]:
        steps = blocks[f"sessions-{listed['chapter']}"][listed["place"]]
        assert len(steps) == store.step_count(listed["id"])
        for number, step in enumerate(steps):
            for label, answer in zip(labels, step["answers"], strict=bool(step["answers"])):
                record = kept[label, listed["id"], number]
                assert answer["reply"] == record.reply
                assert answer.get("action") == record.predicted
                assert sum(answer["terms"].values()) == pytest.approx(record.reward)
                assert answer.get("rank") == record.logged_rank
                seen += 1
    assert seen == len(kept)


def test_a_page_that_many_steps_show_is_kept_once_and_is_the_one_that_was_shown(report, store_path):
    blocks = blocks_of(report)
    firsts = blocks["index"]["first_pages"]
    pages = {
        first + place: page
        for chapter, first in enumerate(firsts)
        for place, page in enumerate(blocks[f"pages-{chapter}"])
    }
    sessions = {session.session_id: session for session in SessionStore.open(store_path).sessions("all")}
    distinct = {step.page for session in sessions.values() for step in session.steps}
    assert len(pages) == len(distinct) < sum(len(session.steps) for session in sessions.values())
    for listed in blocks["index"]["sessions"]:
        steps = blocks[f"sessions-{listed['chapter']}"][listed["place"]]
        for shown, step in zip(steps, sessions[listed["id"]].steps, strict=True):
            assert pages[shown["page"]] == page_view(step.page, demo_shop=True)


def test_the_demo_shops_pages_look_like_the_shop_on_the_web_and_all_others_like_cards(store_path):
    for session in SessionStore.open(store_path).sessions("test"):
        for step in session.steps:
            document = page_view(step.page, demo_shop=True)
            assert SHOP_STYLE in document
            names = {element.name for element in find_elements(step.page)}
            marked = LexborHTMLParser(document).css("[data-acts]")
            assert {node.attributes["name"] for node in marked} == names
            assert page_view(step.page, demo_shop=False) == page_document(step.page)
    other = "<section><a name='in.a_red_mug.view_product'>view</a><button name='save'>save</button></section>"
    assert page_view(other, demo_shop=True) == page_document(other)  # the dressing would lose a button


def test_baselines_are_known_by_kind_not_by_label(board):
    evidence = read_evidence(board)
    assert evidence.baselines == set(evidence.labels)
    first, *others = evidence.log.entries
    trained = msgspec.structs.replace(first, spec=AgentSpec(target="runs/mine", label=first.label))
    log = msgspec.structs.replace(evidence.log, entries=[trained, *others])
    assert replace(evidence, log=log).baselines == set(evidence.labels) - {first.label}
    for target in ("history_counts", "boosted_choice", "session_knn"):
        spec = AgentSpec(target=target, label=first.label)
        log = msgspec.structs.replace(evidence.log, entries=[msgspec.structs.replace(first, spec=spec), *others])
        assert first.label in replace(evidence, log=log).baselines
    phase = msgspec.structs.replace(first, spec=AgentSpec(target="pointer", label="Pointer"))
    config = {**evidence.provenance["config"], "phases": {"pointer": {}}}
    run = msgspec.structs.replace(log, entries=[phase], provenance={**evidence.provenance, "config": config})
    assert kinds_of(run) == {"Pointer": "policy"}
    assert kinds_of(msgspec.structs.replace(log, entries=[phase])) == {"Pointer": "fitted"}


def test_nothing_in_the_file_points_outside_it(report, hostile_report):
    for one in (report, hostile_report):
        document = text_of(one)
        for node in document.css("*"):
            for name in ("src", "href", "srcset", "action", "data", "poster", "background"):
                value = node.attributes.get(name)
                assert value is None or value.startswith("#") or value == "data:,", node.html[:200]
        assert not document.css("link[rel=stylesheet], iframe, object, embed, base")
        assert "url(" not in document.css_first("style").text()
        assert "@import" not in document.css_first("style").text()


def test_only_the_reports_own_script_may_run(report, hostile_report):
    for one in (report, hostile_report):
        scripts = [node for node in text_of(one).css("script") if node.attributes.get("type") != "text/plain"]
        (script,) = scripts
        digest = base64.b64encode(hashlib.sha256(script.text().encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in policy_of(one)
        assert "default-src 'none'" in policy_of(one)


def test_hostile_texts_are_shown_as_they_are_and_are_no_markup(hostile_report):
    document = text_of(hostile_report)
    assert not document.css("[onerror], [onload], [onclick], main img, main iframe")
    told = " ".join(document.css_first("#rationales").text().split())
    assert " ".join(HOSTILE.split()) in told
    blocks = blocks_of(hostile_report)
    first = blocks["index"]["sessions"][0]
    assert first["goal"] == HOSTILE
    assert blocks["people"][first["user"]]["text"] == HOSTILE


def test_a_hostile_page_is_packed_without_active_content(hostile_report):
    (pages,) = [value for name, value in blocks_of(hostile_report).items() if name.startswith("pages-")]
    for page in pages:
        document = LexborHTMLParser(page)
        assert not document.css("script, iframe, base, link, object, form, [href], [src], [onload], [onclick], [style]")


def test_links_to_steps_name_steps_that_are_in_the_file(report, hostile_report):
    for one in (report, hostile_report):
        index = blocks_of(one)["index"]
        known = {
            f"#session/{quote(session['id'], safe='')}/{number}"
            for session in index["sessions"]
            for number, _ in enumerate(session["steps"])
        }
        links = {node.attributes["href"] for node in text_of(one).css("a[href^='#session/']")}
        assert links
        assert links <= known


def test_a_store_that_is_another_now_is_refused(board, tmp_path, capsys):
    moved = tmp_path / "board"
    shutil.copytree(board, moved)
    other = demo_store_at(tmp_path / "other", 12, seed=9)
    with edited_json(moved / "results.json") as results:
        for config in (results["config"], results["provenance"]["config"]):
            config["store"] = str(other.path)
    assert main([str(moved)]) == 2
    assert other.fingerprint in capsys.readouterr().err


def test_the_viewer_says_when_agents_were_shown_another_persona(store_path, tmp_path, report):
    config = LeaderboardConfig(
        agents=("random",),
        out=str(tmp_path),
        store=str(store_path),
        context=ContextConfig(persona="shuffled"),
    )
    run_leaderboard(config)
    assert main([str(tmp_path)]) == 0
    assert blocks_of(tmp_path / "report.html")["index"]["personas_shown"] == "shuffled"
    assert blocks_of(report)["index"]["personas_shown"] == "matched"


FAILING = """
class Failing:
    def __init__(self, always=False):
        self.always = always

    def reset(self, *, seed=None):
        pass

    def act(self, observation):
        if self.always or observation["step"] == 2:
            raise TimeoutError("the server is down")
        return '{"rationale": "I go.", "action": {"type": "terminate"}}'
"""


@pytest.mark.parametrize("others", [("majority",), ()])
def test_agents_that_gave_no_reply_are_shown_unranked_with_their_errors(others, store_path, tmp_path):
    agent = tmp_path / "failing.py"
    agent.write_text(FAILING)
    agents = (f"some={agent}:Failing", f"none={agent}:Failing?always=true", *others)
    board = tmp_path / "board"
    run_leaderboard(LeaderboardConfig(agents=agents, out=str(board), store=str(store_path), split="all"))
    assert main([str(board)]) == 0
    document = text_of(board / "report.html")
    lines = {
        line.css_first("th").text(deep=False).strip(): line for line in document.css("table.ranked")[0].css("tbody tr")
    }
    told = {label: line.css_first("th small").text() for label, line in lines.items() if line.css_first("th small")}
    assert told["some"].startswith("not ranked: no reply at ")
    assert told["none"].startswith("not ranked: no reply at ")
    assert lines["some"].css_first(".segment.no_reply")
    best = "The baseline majority: "
    expected = best if others else "No agent answered every step, so none is ranked."
    assert document.css_first("h1").text().startswith(expected)
    index = blocks_of(board / "report.html")["index"]
    place = [one["label"] for one in index["agents"]].index("none")
    outcomes = {step[1][place] for session in index["sessions"] for step in session["steps"] if step[1]}
    assert [list(OUTCOMES)[outcome] for outcome in outcomes] == ["no_reply"]


@pytest.mark.parametrize(
    "forged",
    [
        "entries.2.row.figures.exact_accuracy.value",
        "entries.2.row.figures.exact_accuracy.high",
        "ceilings.0.figures.exact_accuracy.value",
        "steps",
    ],
)
def test_figures_that_do_not_follow_from_the_steps_give_no_report(forged, board, tmp_path, capsys):
    changed = shutil.copytree(board, tmp_path / "board")
    steps = changed / "agents" / "copy_match" / "steps.jsonl"
    with edited_json(changed / "results.json") as results:
        if forged != "steps":
            set_at(results, forged, 0.123)
        else:  # and their digest, but not what they earn
            steps.write_bytes(steps.read_bytes().replace(b'\\"click\\"', b'\\"clock\\"'))
            results["entries"][2]["sha256"] = hashlib.sha256(steps.read_bytes()).hexdigest()
    assert main([str(changed)]) == 2
    assert "shop-r1 verify" in capsys.readouterr().err
    assert not (changed / "report.html").exists()


def test_sessions_that_do_not_fit_are_left_out_and_counted(board):
    evidence = read_evidence(board)
    judged = {label: judge(evidence, label) for label in evidence.labels}
    whole = session_data(evidence, judged, max_characters=10**8)
    assert whole.left_out == 0
    assert whole.sessions == 60
    room = sum(len(block.text) for block in whole.blocks) - 10_000
    cut = session_data(evidence, judged, max_characters=room)
    assert sum(len(block.text) for block in cut.blocks) <= room
    assert cut.left_out > 0
    assert cut.sessions + cut.left_out == 60


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no/such/folder"], "there is no folder"),
        (["{tmp}"], "the --out of a finished leaderboard or training run?"),
        (["{tmp}", "--max-megabytes", "nan"], "the metrics alone may need 1.5"),
        (["{board}", "--out", "{tmp}/file/below/a/file.html"], "cannot write"),
        (["{board}", "--tabels", "x"], "--tabels"),
    ],
)
def test_a_wrong_call_gives_one_clear_line_and_exit_code_2(words, said, board, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main([word.format(tmp=tmp_path, board=board) for word in words]) == 2
    found = capsys.readouterr().err
    assert said in found and "Traceback" not in found
    assert "--tabels" in words or len(found.strip().splitlines()) == 1  # a wrong flag is explained by tyro's box


def test_the_package_brings_every_file_of_the_page():
    root = Path(__file__).parents[3]
    patterns = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["*"]
    files = list((root / "benchmarks" / "report" / "templates").iterdir())
    assert {file.suffix for file in files} == {".jinja", ".css", ".js"}
    assert all(any(fnmatch(file.name, pattern) for pattern in patterns) for file in files)
