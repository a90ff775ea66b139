import subprocess
import sys

import pytest

from replay_sessions.foundation.errors import BadConfig, WriteFailed
from replay_sessions.foundation.locks import working_alone_in

HOLDING = """
import sys
from pathlib import Path
from replay_sessions.foundation.locks import working_alone_in
with working_alone_in(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_is_one_process_s_alone_until_that_ends_also_by_a_kill(tmp_path):
    folder = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BadConfig, match="--out"), working_alone_in(folder):
            pass
        with working_alone_in(folder, ".other.lock"):
            pass
        holder.kill()
    with working_alone_in(folder):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(WriteFailed, match="file"), working_alone_in(tmp_path / "file" / "run"):
        pass
