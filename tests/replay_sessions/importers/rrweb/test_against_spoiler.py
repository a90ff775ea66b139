"""Clicks and typed texts of generated recordings, as the package `spoiler` 0.1.3 reads them.

    python -m venv somewhere && somewhere/bin/pip install spoiler==0.1.3
    SHOP_R1_SPOILER=somewhere/bin/spoiler python -m pytest -m slow THIS_FILE

It notes what happened event by event; we note what a shopper did. What differs, and is put alike here:

    a click into a field, then keys           it lists both; for us the click is part of the typing
    a click on a label, which clicks a field  it lists both; for us it is one click, on the field
    a tick                                    it lists the click and "typed checked"; for us it is the click
    a choice in a list                        it lists the click and the value; for us it is a click on the option
    the return key in a form                  it lists a click on the form's button; for us the text is submitted
    a click on nothing                        it lists it; for us it is counted and no action
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from replay_sessions.importers.rrweb.events import Unpacker
from replay_sessions.importers.rrweb.packings import recordings_in
from replay_sessions.importers.rrweb.pages import ActedPage, View, read_page
from replay_sessions.importers.rrweb.player import Player
from replay_sessions.importers.rrweb.timeline import Act
from replay_sessions.simplify.names import slug
from tests.replay_sessions.importers.rrweb.made_recordings import PACKINGS, Recorded, Tab

pytestmark = pytest.mark.slow
Deed = tuple[str, str, str]  # click or type, the words on the element, the text

VOCABULARY = """version: 1
apps: {web: {project: 1, host: shop.example, audience: shoppers}}
surfaces: [{id: web.home, app: web, route: /, name: Home}]
features: []
"""
SIZES = {"1": "small", "2": "medium", "3": "large"}
PAGE = """<title>Shop {n}</title><h1 id="head">Shop {n}</h1>
<form id="form" role="search"><input id="q" name="q" aria-label="Search"><button id="go">Find</button></form>
<ul id="list">{links}</ul><div id="more"></div><p id="words">Nothing here</p>
<label id="blue_label" for="blue">Blue</label><input type="checkbox" id="blue">
<select id="size" aria-label="Size"><option value="1">Small<option value="2">Medium<option value="3">Large</select>
<textarea id="note" aria-label="Note"></textarea><input id="mail" aria-label="Your mail">
<button id="buy" type="button"><b id="bold">Buy</b> now</button>"""


@pytest.fixture(scope="module")
def spoiler() -> str:
    found = os.environ.get("SHOP_R1_SPOILER") or shutil.which("spoiler")
    if not found:
        pytest.skip("no spoiler: see the module's docstring")
    return found


class Shopper:
    """Somebody who does anything on made-up pages."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.recorded = Recorded()
        self.tabs = [self._tab(name) for name in ["one", "two"][: draw.choice([1, 1, 2])]]
        for _ in range(draw.randint(3, 12)):
            tab = draw.choice(self.tabs)
            draw.choice([
                self.click, self.click, self.click_in, self.search, self.write, self.choose, self.tick, self.change,
                self.change, self.go, self.nothing, self.tap,
            ])(tab)  # fmt: skip

    def _page(self) -> str:
        links = "".join(
            f"<li><a id='a{number}' href='/p{number}'><i id='i{number}'>Kettle {chr(97 + number)}</i></a>"
            for number in range(self.draw.randint(2, 8))
        )
        return PAGE.format(n=self.draw.randrange(100), links=links)

    def _tab(self, name: str) -> Tab:
        return self.recorded.tab(self._page(), f"https://shop.example/{name}", name)

    def _links(self, tab: Tab) -> list[str]:
        return [key for key in tab.ids if key[0] == "a" and key[1:].isdigit()]

    def click(self, tab: Tab) -> None:
        tab.click(self.draw.choice([*self._links(tab), "buy"]))

    def click_in(self, tab: Tab) -> None:
        tab.click(self.draw.choice(["bold", *(key for key in tab.ids if key[0] == "i" and key[1:].isdigit())]))

    def search(self, tab: Tab) -> None:
        tab.type("q", self._text())
        if self.draw.random() < 0.5:
            tab.key_click("go")

    def write(self, tab: Tab) -> None:
        tab.type(self.draw.choice(["note", "mail"]), self._text())

    def choose(self, tab: Tab) -> None:
        tab.click("size").focus("size").give("size", self.draw.choice(sorted(SIZES)))

    def tick(self, tab: Tab) -> None:
        if self.draw.random() < 0.5:
            tab.click("blue").focus("blue")
        else:
            tab.click("blue_label").key_click("blue", 1).focus("blue")
        tab.give("blue", "on", ticked=True)

    def change(self, tab: Tab) -> None:
        new = tab.next_id
        tab.next_id += 2
        tab.ids[f"a{new}"], tab.ids[f"i{new}"] = new, new + 1
        link = {"type": 2, "tagName": "a", "attributes": {"href": f"/n{new}"}, "childNodes": [], "id": new}
        word = {"type": 3, "textContent": f"New {chr(97 + new % 26)}", "id": new + 1}
        del tab.ids[f"i{new}"]
        adds = [
            {"parentId": new, "nextId": None, "node": word},
            {"parentId": tab.id("list"), "nextId": None, "node": link},
        ]
        old = self.draw.choice([key for key in self._links(tab) if key != f"a{new}"] or [f"a{new}"])
        removes = []
        if old != f"a{new}" and len(self._links(tab)) > 2:
            removes = [{"parentId": tab.id("list"), "id": tab.ids.pop(old)}]
            tab.ids.pop(f"i{old[1:]}", None)
        tab.change(adds=adds, removes=removes, texts=[{"id": tab.id("words") + 1, "value": self._text()}])

    def go(self, tab: Tab) -> None:
        tab.go(f"https://shop.example/{self.draw.randrange(1000)}", self._page())

    def nothing(self, tab: Tab) -> None:
        tab.click("words")

    def tap(self, tab: Tab) -> None:
        key = self.draw.choice(self._links(tab))
        tab.point(7, key, 400).point(9, key).point(1, key).point(0, key).point(2, key, 1, pointerType=2)

    def _text(self) -> str:
        return self.draw.choice(["tea", "red kettle", "2 l", "für zwei", "*****"])


def theirs(spoiler: str, made: Recorded, folder: Path) -> list[Deed]:
    """What spoiler lists, with what differs put alike."""
    (folder / "vocabulary.yaml").write_text(VOCABULARY)
    (folder / "visit.jsonl").write_bytes(PACKINGS["stored.jsonl"](made))
    call = [spoiler, "compile", "--recording", folder / "visit.jsonl", "--vocab", folder / "vocabulary.yaml"]
    done = subprocess.run([*call, "--app", "web"], capture_output=True, check=True)
    deeds: list[tuple[Deed, Any]] = []  # and where
    typing: Any = None  # where a text is being typed
    for action in json.loads(done.stdout)["actions"]:
        tag = action.get("element", {}).get("tag")
        words, where = slug(action.get("target", "").partition('"')[2]) or "blue", (action["win"], action.get("node"))
        if action["kind"] == "click":
            is_return = words == "find" and typing is not None and typing[0] == action["win"]
            if words == "blue" and deeds and deeds[-1][1] == "label" and tag == "input":
                deeds[-1] = deeds[-1][0], where
            elif tag != "p" and not is_return:
                deeds.append((("click", words, ""), "label" if tag == "label" else where))
            typing = typing if where == typing else None
        elif action["kind"] == "input" and action["typed"] not in ("checked", "unchecked"):
            while deeds and deeds[-1][1] == where and deeds[-1][0][0] == "click":
                deeds.pop()
            if tag == "select":
                deeds.append((("click", SIZES[json.loads(action["typed"])], ""), None))
                continue
            if typing == where:
                deeds.pop()
            typing = where
            deeds.append((("type_and_submit", words, plain(action["typed"])), where))
    return [deed for deed, _ in deeds]


def plain(text: str) -> str:
    return "*****" if text == "5 chars (masked)" else json.loads(text)


def ours(made: Recorded) -> list[Deed]:
    unpacker = Unpacker(1 << 30)
    (recording,) = recordings_in(PACKINGS["stored.jsonl"](made), unpacker)

    def settle(view: View) -> None:
        view.page = read_page(view.html, recipe=None, private_data=False)

    return [
        (act.kind, re.sub(r"_\d+$", "", act.page.name.rpartition(".")[2]), act.text)
        for act in Player(unpacker, settle, None).play(recording.in_time_order())
        if isinstance(act, Act) and isinstance(act.page, ActedPage) and act.page.name is not None
    ]


def test_two_hundred_generated_recordings_are_read_alike(spoiler: str, tmp_path: Path) -> None:
    compared = 0
    for seed in range(200):
        shopper = Shopper(Random(seed))
        deeds = ours(shopper.recorded)
        assert deeds == theirs(spoiler, shopper.recorded, tmp_path), seed
        compared += len(deeds)
    assert compared > 800
