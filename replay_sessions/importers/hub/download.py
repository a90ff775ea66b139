"""Public data of the Hugging Face hub, fetched at a pinned revision.

Only importers that are given a hub id call this. `huggingface_hub` is imported here and nowhere else; where it is
missing, or the hub cannot be reached, the message says how to fetch the files by hand and what to give instead.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from replay_sessions.foundation.errors import ImportFailed, MissingExtra, first_line

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def is_hub_id(source: Path) -> bool:
    """Whether a source that was given is no path of this machine, but has the form owner/name.

    >>> is_hub_id(Path("NEU-HAI/OPeRA")), is_hub_id(Path("/no/such/folder"))
    (True, False)
    """
    return not source.exists() and HUB_ID.fullmatch(source.as_posix()) is not None


def how_to_fetch(hub_id: str, revision: str, patterns: Sequence[str], importer: str) -> str:
    """The commands that fetch the data by hand."""
    folder = hub_id.rpartition("/")[2]
    includes = " ".join(f"--include '{pattern}'" for pattern in patterns)
    return (
        f"on a machine with network access run `hf download {hub_id} --repo-type dataset --revision {revision} "
        f"{includes} --local-dir {folder}` (`hf` comes with `pip install huggingface_hub`), copy the folder here, "
        f"then `python -m replay_sessions import {importer} {folder} --out STORE`"
    )


def download(source: Path, *, revision: str, patterns: Sequence[str], importer: str) -> Path:
    """Fetches the matching files of a data set, or takes them from the hub's cache.

    Returns:
        The folder of that revision; its name is the commit. A source that is no hub id as it is.

    Raises:
        MissingExtra: huggingface_hub is not installed.
        ImportFailed: The hub cannot be reached, or has no such data or revision.
    """
    if not is_hub_id(source):
        return source
    hub_id = source.as_posix()
    by_hand = how_to_fetch(hub_id, revision, patterns, importer)
    try:
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - the extra hub is optional
    except ImportError as error:
        raise MissingExtra(
            f"'{hub_id}' is no folder here, and fetching it from the hub needs an extra: "
            f"pip install 'shop-r1[hub]'. Or {by_hand}"
        ) from error
    try:
        folder = snapshot_download(hub_id, repo_type="dataset", revision=revision, allow_patterns=list(patterns))
    except Exception as error:  # its own errors and those of its HTTP library, which differ from version to version
        raise ImportFailed(f"'{hub_id}' could not be fetched from the hub ({first_line(error)}): {by_hand}") from error
    return Path(folder)
