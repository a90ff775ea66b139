"""How many of our modules a leaderboard row and an import enter: what a reader follows from a command to a result."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A module is entered when a named function of it is called; class bodies and comprehensions run at import too.
COUNTED = """
import importlib, inspect, json, sys
from pathlib import Path
module, root, *arguments = sys.argv[1:]
main = importlib.import_module(module).main
if "demo" in arguments:  # the demo store is built before, so that the run only reads it
    from replay_sessions import SessionStore
    SessionStore.open("demo")
entered = set()

def enter(frame, event, argument):
    if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED and frame.f_code.co_name[0] != "<":
        entered.add(frame.f_code.co_filename)

sys.setprofile(enter)
code = main(arguments)
sys.setprofile(None)
ours = [path.relative_to(root) for path in map(Path, entered) if path.is_relative_to(root)]
packages = ("replay_sessions", "shop_env", "train", "agents", "benchmarks")
print(json.dumps([code, sorted(str(path) for path in ours if path.parts[0] in packages)]))
"""


def modules_entered(module: str, *arguments: str) -> list[str]:
    call = [sys.executable, "-c", COUNTED, module, str(ROOT), *arguments]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    return list(modules)


def test_one_leaderboard_row_enters_few_modules(tmp_path: Path) -> None:
    board = ("--store", "demo", "--split", "test", "--sessions", "5", "--out", str(tmp_path / "out"))
    modules = modules_entered("benchmarks.leaderboard.__main__", "--agents", "majority", *board)
    assert "shop_env/evaluation/evaluate.py" in modules and "benchmarks/leaderboard/ranking.py" in modules
    assert len(modules) <= 31, modules


def test_an_import_of_two_raw_sessions_enters_few_modules(tmp_path: Path) -> None:
    (tmp_path / "home.html").write_text("<a href=/cart>Cart</a><a href=/sale>Sale</a>", encoding="utf-8")
    rows = "v1,u1,home.html,click,Cart\nv1,u1,home.html,terminate,\nv2,u2,home.html,click,Sale\n"
    header = "session_id,user_id,page,type,element_text\n"
    (tmp_path / "actions.csv").write_text(header + rows, encoding="utf-8")
    out = ("--out", str(tmp_path / "store"), "--workers", "1")
    modules = modules_entered("replay_sessions.__main__", "import", "raw", str(tmp_path), *out)
    assert "replay_sessions/importers/sessions.py" in modules
    assert len(modules) <= 45, modules
