"""docs/own_shop.md and docs/what_if.md from first command to last, as they stand there: from snippet to A/B answer."""

import re
import shlex
import signal
import subprocess
from pathlib import Path
from random import Random

import pytest

from replay_sessions import SessionStore
from replay_sessions.demo_shop.catalogue import NOUNS, STYLES
from replay_sessions.recorder.rrweb_bundle import recorder_path
from tests.json_files import read_json
from tests.processes import ROOT, SHOP_R1, with_checkout
from tests.replay_sessions.recorder.conftest import Collecting, batches_of_a_visit

pytestmark = pytest.mark.long

PAGE = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("own_shop.md", "what_if.md"))
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
# What erases a visitor comes last: it needs a store.
COMMANDS = sorted((line for block in BLOCKS for line in block.splitlines()), key=lambda line: " erase " in line)
(CHANGE,) = re.findall(r"```toml\n# change.toml\n(.*?)```", PAGE, flags=re.DOTALL)
SERVING = ("shop", "record")
VISITORS = 60  # of whom ten are held out


@pytest.fixture
def environment(tmp_path, monkeypatch) -> dict[str, str]:
    """In which rrweb's recorder need not be fetched."""
    monkeypatch.setenv("SHOP_R1_CACHE", str(tmp_path / "cache"))
    recorder_path().parent.mkdir()
    recorder_path().write_bytes(b"/* rrweb */")
    return with_checkout()


def test_every_command_of_the_page_runs_in_order(environment, tmp_path):
    (tmp_path / "change.toml").write_text(CHANGE, encoding="utf-8")
    served = []
    for command in COMMANDS:
        words = shlex.split(command)
        if words[1] == "erase":
            words[2] = next(iter(SessionStore.open(tmp_path / "stores" / "mine").index())).user_id
        assert words[0] == "shop-r1"
        call = [*SHOP_R1, *words[1:]]
        if words[1] in SERVING:
            served.append(words[1])
            serve(call, environment, tmp_path)
        else:
            done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert served == list(SERVING)
    assert (tmp_path / "boards" / "mine" / "report.html").is_file()
    answer = read_json(tmp_path / "ab" / "mine" / "pages.json")["results"]
    assert answer["users"] == 10
    assert [row["label"] for row in answer["rows"]] == ["ngram", "choice"]
    in_cart = [row["shifts"]["cart"] for row in answer["rows"]]
    assert all(shift["on_a"] > 0 == shift["on_b"] for shift in in_cart)  # B has no such button


def test_no_command_of_the_page_is_left_out():
    """Also those within sentences."""
    asked = set(re.findall(r"shop-r1 (\w+)", PAGE))
    assert asked == {shlex.split(command)[1] for command in COMMANDS}
    assert "--placebo" in PAGE and "--clicks" in PAGE


def serve(call: list[str], environment: dict[str, str], folder: Path) -> None:
    """Starts a command that serves, lets some visitors come, and ends it as Ctrl-C does."""
    process = subprocess.Popen(
        [*call, "--port", "0"], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    told = [process.stdout.readline() for _ in range(2)]
    if "record" in call:
        collecting = Collecting(told[1].split('"')[1])
        for number in range(VISITORS):
            clicked = Random(number).choices([*NOUNS, "add"], k=5)
            style = STYLES[number % len(STYLES)]
            shop = "".join(f"<a id='{noun}' href='/{noun}'>{style} {noun}</a>" for noun in NOUNS)
            shop += "<button id='add'>Add to cart</button>"
            for posted in batches_of_a_visit(6, session=f"visit-{number}", clicked=clicked, shop=shop):
                assert collecting.post({**posted, "user_id": f"visitor-{number}"})[0] == 200
    process.send_signal(signal.SIGINT)
    last, wrong = process.communicate(timeout=60)
    assert (process.returncode, wrong) == (130, "")
    assert last.splitlines()[-1].startswith("stopped: ")
