"""docs/opera.md from first command to last, on small files of OPeRA's schema, a scripted server and a tiny model."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replay_sessions import SessionStore
from tests.agents.prompting.scripted_server import Response, ScriptedServer, completion, digest
from tests.json_files import read_json
from tests.processes import ROOT, SHOP_R1, with_checkout
from tests.replay_sessions.importers.opera.test_opera import session_of, user, write_opera

pytestmark = pytest.mark.long

(BLOCK,) = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "opera.md").read_text(encoding="utf-8"), flags=re.DOTALL)
TINY = shlex.split("--model.path tiny/sft --model.max-tokens 2048 --model.max-new-tokens 32")
FEW_STEPS = ["--sft.stages.0.steps", "2"]  # of 2,000


def write_log(folder: Path) -> None:
    """Writes eight users' train sessions and four users' test sessions, two users in both, as OPeRA has them."""
    train, test = (
        [
            row
            for number in users
            for visit in visits
            for row in session_of(f"user{number}", visit, "purchase" if (number + visit) % 2 else "terminate")
        ]
        for users, visits in ((range(8), range(4)), (range(6, 10), range(5, 7)))
    )
    write_opera(folder, train, test, users=[user(f"user{number}") for number in range(10)])


def answer(request: dict[str, Any], times: int) -> Response:
    """Answers with a rationale, or with one for each action of a session."""
    numbers = re.findall(r"## Action (\d+)", request["messages"][-1]["content"]) or ["rationale"]
    return completion(json.dumps({number: f"I think {digest(request)}." for number in numbers}))


def labels_of(folder: Path) -> set[str]:
    return {entry["row"]["label"] for entry in read_json(folder / "results.json")["entries"]}


def test_every_command_of_the_page_runs_in_order(tmp_path):
    write_log(tmp_path / "OPeRA")
    environment = with_checkout()

    def call(words: list[str]) -> str:
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    with ScriptedServer(answer) as server:
        model = f"--base-url {server.base_url} --model writer"
        for line in BLOCK.splitlines():
            command = line.replace("NEU-HAI/OPeRA", "OPeRA").replace("$MODEL", model).replace(" --open", "")
            if "--dry-run" in command:
                assert "Enough memory in 80 GiB" in call([*SHOP_R1, *shlex.split(command)[1:]])
                random = shlex.split("--only sft --model.path None --model.no-sharded --store stores/opera --out tiny")
                call([*SHOP_R1, "train", "--preset", "opera_8_gpus", *random, *FEW_STEPS])
            elif command.startswith("torchrun"):
                launched = shlex.split(command.replace("runs/opera", "runs/launched").replace("8 -m", "2 -m"))
                call([sys.executable, "-m", "torch.distributed.run", *launched[1:], *TINY, *FEW_STEPS])
            elif command.startswith("shop-r1"):
                call([*SHOP_R1, *shlex.split(command)[1:], *(TINY if " train " in command else [])])

    logged, written = (SessionStore.open(tmp_path / "stores" / name) for name in ("opera_logged", "opera"))
    assert [len(logged.session_ids(split)) for split in ("train", "validation", "test")] == [32, 0, 8]
    assert not [one for one in written.sessions() for step in one.steps if not step.rationale]
    assert labels_of(tmp_path / "boards" / "floors") == {"repeat_last", "history_counts", "history_ngram"}
    for run in ("opera", "launched"):
        assert {"SFT, greedy", "Shop-R1, greedy", "page_counts"} <= labels_of(tmp_path / "runs" / run)
    assert (tmp_path / "runs" / "opera" / "report.html").is_file()
