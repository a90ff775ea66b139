"""Boards that the tests of the report share: one of the demo shop, and one whose every text is hostile."""

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from benchmarks.leaderboard.ranking import LeaderboardConfig, run_leaderboard
from benchmarks.report.__main__ import main
from replay_sessions.schema import Click, Persona, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.store import StoreWriter

HOSTILE = (
    "</script><script>window.broken = 1</script><img src=x onerror='window.broken=2'>"
    "</iframe><iframe src=javascript:parent.broken=3></iframe> ]]> --> \u2028 &amp; \" '"
)
HOSTILE_PAGE = (
    "<html><head><title>t</title><meta http-equiv='refresh' content='0;url=https://outside.example/'>"
    "<base href='https://outside.example/'><style>*{position:fixed;inset:0;z-index:99999;background:red}</style>"
    "<script>parent.broken=4;top.broken=5</script></head><body onload='parent.broken=6'>"
    "<img src='https://outside.example/x.png' onerror='parent.broken=7' name='picture' alt='a picture'>"
    "<iframe srcdoc='<script>top.broken=8</script>'></iframe></iframe></script>"
    "<a name='trap' href='javascript:parent.broken=9' target='_top' onclick='parent.broken=10'>trap</a>"
    "<a name='out' href='https://outside.example/' target='_blank'>out</a>"
    "<form action='https://outside.example/'><input name='field' autofocus onfocus='parent.broken=11'></form>"
    "<div style='position:fixed;inset:0;z-index:99999'>cover</div><svg><script>parent.broken=12</script></svg>"
    "<link rel='stylesheet' href='https://outside.example/x.css'><object data='https://outside.example/'></object>"
    "<p id='shop-r1-first-mark'>not the mark</p></body></html>"
)
HOSTILE_AGENT = """
import json

TEXT = {text!r}


class Hostile:
    def __init__(self, word=""):
        pass

    def reset(self, *, seed=None):
        pass

    def act(self, observation):
        if observation["step"] == 2:
            return TEXT
        action = {{"type": "click", "name": "trap" if observation["step"] == 1 else TEXT}}
        return json.dumps({{"rationale": TEXT, "action": action}})
"""


@pytest.fixture(scope="session")
def board(store_path, tmp_path_factory) -> Path:
    """Four scripted agents on the sixty sessions of `store_path`, with probabilities."""
    out = tmp_path_factory.mktemp("boards") / "demo"
    agents = ("random,majority,copy_match,oracle?temperature=0.6",)
    run_leaderboard(
        LeaderboardConfig(agents=agents, out=str(out), store=str(store_path), split="all", seed=3, likelihood=True)
    )
    return out


@pytest.fixture(scope="session")
def report(board, tmp_path_factory) -> Path:
    """The report on it."""
    out = tmp_path_factory.mktemp("reports") / "report.html"
    assert main([str(board), "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="session")
def hostile_report(tmp_path_factory) -> Path:
    """A report in which whatever a store, an agent or a user can name tries to break out."""
    folder = tmp_path_factory.mktemp("hostile")
    steps = (
        Step(page=HOSTILE_PAGE, action=Click(name="trap"), rationale=HOSTILE, url="javascript:top.broken=13"),
        Step(page=HOSTILE_PAGE, action=Click(name="trap", click_type=None), rationale=HOSTILE),
        Step(page=HOSTILE, action=TypeAndSubmit(name=HOSTILE, text=HOSTILE), rationale=HOSTILE),
        Step(page=HOSTILE_PAGE, action=Terminate(), rationale=HOSTILE),
    )
    with StoreWriter(folder / "store", source=HOSTILE) as writer:
        for number in range(6):
            persona = Persona(text=HOSTILE, traits={HOSTILE: HOSTILE})
            writer.write(
                Session(
                    session_id=f"{HOSTILE}/{number}",
                    user_id=f"{HOSTILE}{number // 2}",
                    steps=steps,
                    source="test",
                    persona=persona,
                    goal=HOSTILE,
                )
            )
    agent = folder / "agent.py"
    agent.write_text(HOSTILE_AGENT.format(text=HOSTILE))
    label = f"{agent}:Hostile?word={HOSTILE.replace('&', '')}"  # an agent without a label is called what was typed
    config = LeaderboardConfig(
        agents=(label, "random"), out=str(folder / "board"), store=str(folder / "store"), split="all"
    )
    run_leaderboard(config)
    assert main([str(folder / "board")]) == 0
    return folder / "board" / "report.html"


def blocks_of(report: Path) -> dict[str, Any]:
    """Everything that is packed in a report, by the name of its block."""
    document = LexborHTMLParser(report.read_text(encoding="utf-8"))
    return {
        str(node.attributes["id"]).removeprefix("block-"): json.loads(zlib.decompress(base64.b64decode(node.text())))
        for node in document.css("script[type='text/plain']")
    }


def policy_of(report: Path) -> str:
    """The report's Content-Security-Policy."""
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', report.read_text(encoding="utf-8"))
    assert found
    return found[1]
