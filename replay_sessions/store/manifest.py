"""The manifest and the index of a store, which hold everything except the sessions themselves.

    STORE/manifest.json            content and origin of the store; written last
    STORE/index.parquet            one row per session: ids, split, length, and the position of its row group
    STORE/shards/1f0c….parquet     sessions, one row group each (shards.py); the name is the digest of the file
    STORE/rejected.jsonl           the records that could not be imported, with reasons; only if there are any

`reader.py` reads these files and `writer.py` writes them. docs/store_format.md describes them for other tools.
"""

from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.foundation.durable_files import replace_json
from replay_sessions.foundation.errors import BadSession, StoreNotFound, first_line
from replay_sessions.foundation.records import Config
from replay_sessions.schema import SCHEMA_VERSION, Split, Typing
from replay_sessions.store.splits import SplitPlan

MANIFEST_FILE = "manifest.json"
INDEX_FILE = "index.parquet"
REJECTED_FILE = "rejected.jsonl"
SHARD_FOLDER = "shards"
MOST_UNPACKED_BYTES, MOST_TIMES_PACKED = 1 << 30, 1000  # a parquet file beyond both is made to fill the memory
REMEDY = "copy the whole store again or write it anew"
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}\\Z")]


class Shard(Config):
    """A file of sessions, named by its content: two stores share a file name only if the content is equal.

    Attributes:
        digest: Digest of the whole file (BLAKE2b, 32 hex digits). Any other value is rejected, such as a path that
            leads out of the store.
        size_bytes: Size of the file, which reveals a truncated copy before the file is read.
    """

    digest: Digest
    size_bytes: int

    @property
    def file(self) -> str:
        """The path of the file relative to the store's folder."""
        return f"{SHARD_FOLDER}/{self.digest}.parquet"


class Rejected(Config):
    """A record that could not be imported.

    Attributes:
        where: Position of the record in its source.
        reason: Reason for the rejection.
    """

    where: str
    reason: str


class WrittenRationales(Config):
    """The rationales that a run of `shop-r1 rationales` wrote (agents/rationales).

    Attributes:
        model: The model, which is the `rationale_source` of their steps.
        by: What a request showed: `session` all steps of a session, `step` no later steps.
        splits: The splits in which it wrote some.
        prompt: Digest of the instructions.
    """

    model: str
    by: Literal["session", "step"]
    splits: tuple[Split, ...]
    prompt: str


class Manifest(Config):
    """The contents and the origin of a store.

    Attributes:
        fingerprint: Hash over the content and split of all sessions; independent of their order and of the shards.
        source: Name of the importer or generator that wrote the store.
        unsubmitted: Number of typed texts that are not known to be submitted (OPeRA's `input`).
        options: Options of the import or generation (mapping, seed, page offset ...), as text.
        rejected: Number of records that could not be imported; `rejected.jsonl` lists them.
        left_out_steps: Numbers of logged events that are no action of the schema, by type, the most frequent first.
        trimmed_texts: Number of typed texts that lost the blanks at their ends.
        changed_values: Numbers of other logged values that the store has otherwise, by the change in words.
        warnings: Doubts of the importer about the data.
        rationales: The runs that wrote missing rationales, the earliest first.
    """

    schema_version: int = SCHEMA_VERSION
    fingerprint: Digest
    source: str
    sessions: int
    users: int
    steps: int
    action_counts: dict[str, int]
    unsubmitted: int = 0
    split_sessions: dict[Split, int]
    split_plan: SplitPlan
    options: dict[str, str] = {}
    rejected: int = 0
    left_out_steps: dict[str, int] = {}
    trimmed_texts: int = 0
    changed_values: dict[str, int] = {}
    warnings: tuple[str, ...] = ()
    rationales: tuple[WrittenRationales, ...] = ()
    shards: tuple[Shard, ...]

    @property
    def scrolls(self) -> bool:
        """Whether the log has scrolls, so that prompts, replies and the strict parser of this store have them too."""
        return self.action_counts.get("scroll", 0) > 0

    @property
    def typing(self) -> Typing:
        """The types of typed texts that prompts, replies and the strict parser of this store use."""
        if not self.unsubmitted:
            return "type_and_submit"
        return "input" if self.unsubmitted == self.action_counts.get("type_and_submit") else "both"


class IndexRow(msgspec.Struct, frozen=True):
    """The position of a session, and the values by which sessions and steps are selected.

    Attributes:
        inferred: Indices of the steps that the import inferred, counted from 0.
        other_ids: Further ids of the user (Session.other_ids).
    """

    session_id: str
    user_id: str
    split: Split
    steps: int
    page_characters: int
    shard: int
    row_group: int
    digest: bytes
    inferred: tuple[int, ...] = ()
    other_ids: tuple[str, ...] = ()

    @property
    def user_ids(self) -> tuple[str, ...]:
        """All ids of the user."""
        return self.user_id, *self.other_ids


def format_counts(counts: Mapping[str, int] | Mapping[Split, int]) -> str:
    """Formats counts for people.

    >>> format_counts({"click": 1200, "terminate": 30})
    '1,200 click, 30 terminate'
    """
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def describe_late_rationales(manifest: Manifest, sources: Mapping[Split, Collection[str]]) -> str | None:
    """Returns a sentence if models wrote rationales with later actions in view, or may have; otherwise None.

    Args:
        sources: By split, the names of the models that wrote its rationales (`rationale_source`).
    """
    late, unknown = [], []
    for split, model in ((split, model) for split, models in sources.items() for model in sorted(models)):
        views = {run.by for run in manifest.rationales if run.model == model and split in run.splits}
        if "session" in views:
            late.append(f"{split} ({model})")
        elif not views:
            unknown.append(f"{split} ({model})")
    if late:
        return (
            f"Rationales in {', '.join(late)} were written with later actions in view: prompts that show past "
            "rationales tell what comes next. `shop-r1 rationales --by step` shows no later actions."
        )
    if unknown:
        return f"Were rationales in {', '.join(unknown)} written with later actions in view? The store does not say."
    return None


def fingerprint(rows: Iterable[IndexRow]) -> str:
    """Returns 32 hex digits over the sessions' contents and splits; the order of `rows` does not matter."""
    content = blake2b(digest_size=16)
    for row in sorted(rows, key=lambda row: row.session_id):
        content.update(msgspec.json.encode((row.session_id, row.split)) + row.digest)
    return content.hexdigest()


def write_options(folder: Path, options: Mapping[str, str]) -> None:
    """Replaces options in the manifest of a store."""
    manifest = read_manifest(folder)
    replace_json(folder / MANIFEST_FILE, msgspec.structs.replace(manifest, options={**manifest.options, **options}))


def write_index(folder: Path, rows: list[IndexRow]) -> None:
    columns = {name: [getattr(row, name) for row in rows] for name in IndexRow.__struct_fields__}
    pq.write_table(pa.table(columns), folder / INDEX_FILE, write_page_checksum=True)


def check_unpacked(file: pq.ParquetFile, path: Path) -> None:
    """Raises pa.ArrowInvalid if a file, possibly a stranger's, would unpack to gigabytes."""
    groups = (file.metadata.row_group(number) for number in range(file.num_row_groups))
    unpacked = sum(group.total_byte_size for group in groups)
    if unpacked > max(MOST_UNPACKED_BYTES, MOST_TIMES_PACKED * path.stat().st_size):
        raise pa.ArrowInvalid(f"it unpacks to {unpacked:,} bytes, {unpacked // path.stat().st_size:,} times its own")


def read_index(folder: Path, manifest: Manifest) -> list[IndexRow]:
    """Reads the index of a store, in storage order.

    Raises:
        BadSession: The index cannot be read or does not belong to the manifest.
    """
    try:
        # `read_table` is for data sets of many files, and imports pandas if it is installed.
        with pq.ParquetFile(folder / INDEX_FILE, page_checksum_verification=True) as file:
            check_unpacked(file, folder / INDEX_FILE)
            rows = msgspec.convert(file.read().to_pylist(), list[IndexRow])
    except (OSError, pa.ArrowException, msgspec.ValidationError) as error:
        raise _damaged(folder, INDEX_FILE, error) from error
    if len(rows) != manifest.sessions or fingerprint(rows) != manifest.fingerprint:
        raise BadSession(
            f"store '{folder}': {INDEX_FILE} lists {len(rows)} sessions and does not match {MANIFEST_FILE} "
            f"({manifest.sessions} sessions, fingerprint {manifest.fingerprint}); {REMEDY}"
        )
    if any(not 0 <= row.shard < len(manifest.shards) for row in rows):
        raise BadSession(f"store '{folder}': {INDEX_FILE} names a shard that {MANIFEST_FILE} does not; {REMEDY}")
    return rows


class _Version(msgspec.Struct):
    """The schema version of a manifest, which every version of the format has."""

    schema_version: int


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of a store.

    Raises:
        StoreNotFound: The folder has no manifest.
        BadSession: The manifest cannot be read or has another schema version.
    """
    try:
        content = (folder / MANIFEST_FILE).read_bytes()
        version = msgspec.json.decode(content, type=_Version).schema_version
        if version != SCHEMA_VERSION:
            raise BadSession(
                f"store '{folder}' has schema version {version}, this version of shop-r1 reads {SCHEMA_VERSION}: "
                "import it again"
            )
        return msgspec.json.decode(content, type=Manifest)
    except FileNotFoundError as error:
        raise StoreNotFound(
            f"'{folder}' is no session store: it has no {MANIFEST_FILE}. "
            "An interrupted copy or another folder? `shop-r1 import --help` shows how to make one."
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(folder, MANIFEST_FILE, error) from error


def _damaged(folder: Path, file: str, error: Exception) -> BadSession:
    return BadSession(f"store '{folder}': {file} is damaged ({first_line(error)}); {REMEDY}")
