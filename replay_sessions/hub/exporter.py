"""Exporter `hub`: a store as a data set of the Hugging Face hub: parquet files by split, and a card that explains them.

    python -m replay_sessions export hub stores/mine --out mine_for_the_hub       writes a local folder, to look at
    python -m replay_sessions import hub mine_for_the_hub --split-by official --out stores/again
    python -m replay_sessions export hub stores/mine --out mine_for_the_hub --upload OWNER/NAME

One row a step (hub_rows.py), so that the hub's viewer and `datasets.load_dataset` show what a shopper saw and did.
Nothing leaves the machine without `--upload`, and then it becomes a private data set. Uploading is written and was
never run: there was no network.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Self

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.errors import BadConfig, ImportFailed, MissingExtra
from replay_sessions.exporters.exporter import Exporter
from replay_sessions.hub.card import card
from replay_sessions.hub.rows import ABOUT_FILE, DATA_FOLDER, ROW_SCHEMA, About, rows_of
from replay_sessions.schema import Session, Split
from replay_sessions.splits import SPLITS
from replay_sessions.store import SessionStore
from replay_sessions.store.whole_folder import WorkFolder, check_target

__all__ = ["HubExporter"]

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_HELP = """\
  python -m replay_sessions export hub stores/mine --out mine_for_the_hub
  python -m replay_sessions import hub mine_for_the_hub --out stores/again
  python -m replay_sessions export hub stores/mine --out mine_for_the_hub \\
    --upload OWNER/NAME"""
_FILE_CHARACTERS = 500_000_000
_ROW_GROUP_CHARACTERS = 32_000_000


class HubExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a data set for the hub is written.

    Attributes:
        out: The folder that is written.
        overwrite: Replace an earlier export that is there.
        licence: The hub's word for the data's licence, such as cc-by-4.0.
        upload: OWNER/NAME: upload it too, as a private data set (needs `hf auth login`; untested).
    """

    out: Path
    overwrite: bool = False
    licence: str = "other"
    upload: str | None = None


class HubExporter(Exporter):
    """Writes a folder for the hub; see the module.

    Args:
        licence: The hub's word for the data's licence; "other" leaves it to be stated.
        upload: The data set to upload the folder to; None leaves it where it is.
    """

    Options: ClassVar[type[msgspec.Struct]] = HubExportOptions
    help = _HELP

    def __init__(
        self, out: Path, *, overwrite: bool = False, licence: str = "other", upload: str | None = None
    ) -> None:
        if upload is not None and not _HUB_ID.fullmatch(upload):
            raise BadConfig(f"--upload {upload!r} is no id of the hub: OWNER/NAME was expected")
        self._out = out
        self._overwrite = overwrite
        self._licence = licence
        self._upload = upload

    @classmethod
    def from_options(cls, store: str, options: HubExportOptions) -> Self:
        return cls(options.out, overwrite=options.overwrite, licence=options.licence, upload=options.upload)

    def export(self, store: SessionStore, on_progress: Callable[[int], None] = lambda _: None) -> list[str]:
        check_target(self._out, overwrite=self._overwrite, marker=ABOUT_FILE)
        with WorkFolder(self._out, marker=ABOUT_FILE) as work:
            (work.store / DATA_FOLDER).mkdir()
            for split in SPLITS:
                _write_split(work.store / DATA_FOLDER, split, store.sessions(split), on_progress)
            about = About.of(store)
            (work.store / "README.md").write_text(card(about, store.manifest, self._licence), encoding="utf-8")
            (work.store / ABOUT_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=2) + b"\n")
            work.put_in_place(overwrite=self._overwrite)
        told = [
            f"{self._out}: {about.sessions:,} sessions, {about.steps:,} rows; read its README.md before it is shared",
            f"  python -m replay_sessions import hub {self._out} --split-by official --out STORE",
        ]
        return [*told, _upload(self._out, self._upload)] if self._upload else told


def _write_split(folder: Path, split: Split, sessions: Iterator[Session], on_progress: Callable[[int], None]) -> None:
    """Files of the split, numbered as the hub does, which wants their total in each name."""
    files: list[Path] = []
    file: _SplitFile | None = None
    for session in sessions:
        if file is None or file.characters > _FILE_CHARACTERS:
            if file is not None:
                file.close()
            files.append(folder / f"{split}-{len(files):05}.parquet")
            file = _SplitFile(files[-1])
        file.write(session)
        on_progress(1)
    if file is not None:
        file.close()
    for number, path in enumerate(files):
        path.rename(folder / f"{split}-{number:05}-of-{len(files):05}.parquet")


class _SplitFile:
    """A parquet file of whole sessions, written a few megabytes at a time."""

    def __init__(self, path: Path) -> None:
        self.characters = 0
        self._pending: list[dict[str, object]] = []
        self._pending_characters = 0
        self._parquet = pq.ParquetWriter(path, ROW_SCHEMA, compression="zstd", compression_level=3)

    def write(self, session: Session) -> None:
        self._pending += rows_of(session)
        characters = sum(len(step.page) for step in session.steps)
        self.characters += characters
        self._pending_characters += characters
        if self._pending_characters > _ROW_GROUP_CHARACTERS:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._parquet.close()

    def _flush(self) -> None:
        if self._pending:
            self._parquet.write_table(pa.Table.from_pylist(self._pending, schema=ROW_SCHEMA))
        self._pending, self._pending_characters = [], 0


def _upload(folder: Path, name: str) -> str:
    try:
        from huggingface_hub import HfApi  # noqa: PLC0415 - the extra hub is optional
    except ImportError as error:
        raise MissingExtra("--upload needs an extra: pip install 'shop-r1[hub]'") from error
    try:
        api = HfApi()
        api.create_repo(name, repo_type="dataset", private=True, exist_ok=True)
        api.upload_large_folder(name, folder, repo_type="dataset")
    except Exception as error:  # its own errors and those of its HTTP library, which differ from version to version
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ImportFailed(
            f"'{folder}' is written, and could not be uploaded to '{name}' ({reason}): log in by `hf auth login`, then "
            f"`hf upload-large-folder {name} {folder} --repo-type dataset`"
        ) from error
    return f"  uploaded to {name}, which is private unless it was public before"
