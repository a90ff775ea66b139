"""rrweb's own recorder, a script of 77 kB, which npm fetches at first use into the user's cache.

It is the npm package @rrweb/record (MIT licence) and no part of this project. The version and the digest of the package
are fixed here, so that everybody records with the same script.
"""

import hashlib
import io
import shutil
import subprocess
import tarfile
import tempfile
from base64 import b64decode
from importlib.resources import files
from pathlib import Path

from replay_sessions.foundation.child_environment import environment_without_keys
from replay_sessions.foundation.durable_files import cache_folder, replace_file
from replay_sessions.foundation.errors import ImportFailed, MissingExtra

PACKAGE = "@rrweb/record@2.1.6"
_SHA512 = "dHOrWa97l3C+BBsUd+zgLtErTZavzudJunu1HN2bV6WhTBLGk7z8BY1fWw0QerYK7qJJyrBE9D6XHcISVdVGQQ=="
_FILE = "package/umd/record.min.js"
_LONGEST_S = 300
_OURS = ("recorder.js", "questions.js")  # ids, masks, queue, sending; consent, questions, persona


def recorder_path() -> Path:
    """Returns the path of the script, which may not exist yet: under $SHOP_R1_CACHE, or in the user's cache folder."""
    return cache_folder() / f"{PACKAGE.replace('/', '-').lstrip('@')}.js"


def recorder_script() -> bytes:
    """Returns the script that a shop's pages load: rrweb's recorder, fetched at first use, and our scripts."""
    ours = [(files("replay_sessions.recorder.snippet") / name).read_bytes() for name in _OURS]
    return b"\n;\n".join([fetch_recorder(), *ours])


def fetch_recorder() -> bytes:
    """Returns rrweb's recorder, which is fetched at first use.

    Raises:
        MissingExtra: Neither the recorder nor npm is installed.
        ImportFailed: npm failed, or brought another package.
    """
    path = recorder_path()
    if path.is_file():
        return path.read_bytes()
    npm = shutil.which("npm")
    if npm is None:
        raise MissingExtra(
            f"rrweb's recorder is fetched by npm, which is not installed: install it (it comes with Node.js), or put "
            f"{_FILE.partition('/')[2]} of the npm package {PACKAGE} at '{path}'"
        )
    with tempfile.TemporaryDirectory() as folder:
        words = [npm, "pack", PACKAGE, "--pack-destination", folder]
        try:
            subprocess.run(
                words,
                cwd=folder,
                env=environment_without_keys(),
                capture_output=True,
                text=True,
                timeout=_LONGEST_S,
                check=True,
            )
        except subprocess.SubprocessError as error:
            message = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
            reason = message.strip().partition("\n")[0]
            raise ImportFailed(f"npm brought no {PACKAGE} ({reason}): is the network there?") from error
        script = _unpacked(next(Path(folder).glob("*.tgz")).read_bytes())
    replace_file(path, script)
    return script


def _unpacked(package: bytes) -> bytes:
    """Returns the script from the package.

    Raises:
        ImportFailed: The digest of the package is wrong.
    """
    if hashlib.sha512(package).digest() != b64decode(_SHA512):
        raise ImportFailed(
            f"what npm brought is not {PACKAGE} as it was published: another registry, or a changed copy"
        )
    with tarfile.open(fileobj=io.BytesIO(package)) as files:
        script = files.extractfile(_FILE)
        assert script is not None  # guaranteed by the digest
        return script.read()
