"""Fetches data sets of the Hugging Face hub at a pinned revision."""

from collections.abc import Sequence
from pathlib import Path

from replay_sessions.foundation.errors import ImportFailed, first_line
from replay_sessions.foundation.plugins import requires_extra


def fetch(source: Path, revision: str, patterns: Sequence[str]) -> Path:
    """Returns a local source, or the local folder of the data set with that id, fetched from the hub if necessary.

    Raises:
        MissingExtra: huggingface_hub is not installed.
        ImportFailed: The source is no file or folder, and no such data set can be fetched.
    """
    if source.exists():
        return source
    with requires_extra("hub"):
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - an extra that may be missing
    hub_id = source.as_posix()
    try:
        folder = snapshot_download(hub_id, repo_type="dataset", revision=revision, allow_patterns=list(patterns))
    except Exception as error:  # errors of the hub or of its HTTP library, which differ between versions
        raise ImportFailed(
            f"there is no file or folder '{source}', nor could a data set of that id be fetched from the hub "
            f"({first_line(error)}). Where there is a network, run `hf download OWNER/NAME --repo-type dataset "
            f"--revision {revision} --local-dir FOLDER`, copy the folder here and import it"
        ) from error
    return Path(folder)
