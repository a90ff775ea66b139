"""Damaged inputs for hypothesis: texts, JSON, tables and files, with what readers stumble over."""

import copy
import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

__all__ = ["ODD_VALUES", "count_true", "damaged", "damaged_file", "damaged_json"]

T = TypeVar("T", str, bytes)
SPLICES = [
    b"\0", b"\0" * 300, b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", rb"\ud800", b"\n", b"\r", b'"', b'""',
    b",", b"\t", b"{", b"}", b"]|", b"[" * 3000, b'{"a":' * 2000, b"<" * 50, b"<div>" * 2000, b"<!--", b"<script>",
    b"&#0;", b"&#xD800;", b"1e999", b"9" * 400, b"NaN", b"null", b"\x1f\x8b", b"PAR1", b"\x80\x01\x15",
]  # fmt: skip
ODD_VALUES: list[Any] = [
    None, True, 0, -1, 2**31, 2**64, 10**30, 0.5, 1e308, float("nan"), float("inf"), "", " ", "\0", "\n", "\u2028",
    "\ud800", "\U0001f600", "x" * 20_000, "1e309", "nan", "9999-99-99", "9999-12-31T23:59:59Z", "*" * 30,
    "0001-01-01T00:00:00+14:00", "train", "{", "[1", '{"a": ', "../../etc/passwd", "a\0b", "n" * 300 + ".html", ":has(",
    "a:nth-child(99999999999999999999)", "::before", "a > > b", "\\", "<p>", "<a name=''>", "< <a[SA]|", [], {}, [[]],
    [None], {"": ""}, {"type": "click"}, {"id": 1}, ["a"] * 50, {str(i): i for i in range(50)}, "[" * 1500 + "]" * 1500,
    *('{"a":' * depth + "1" + "}" * depth for depth in (300, 900, 1200)),
]  # fmt: skip
ODD_COLUMNS: list[tuple[Any, pa.DataType | None]] = [
    (None, None), (2**62, pa.int64()), (-1, pa.int8()), (float("nan"), None), (True, None), (b"\xff\xfe\0", None),
    ("x", pa.large_string()), (["a", None], None), ({"type": "click", "name": None}, None), ([{"type": 1}], None),
    ([("k", 1)], pa.map_(pa.string(), pa.int64())), (2**62, pa.timestamp("us")), (0, pa.timestamp("us", tz="UTC")),
    (10**6, pa.date32()), (2**60, pa.duration("us")), (1, pa.decimal128(38, 30)), (b"abcd", pa.binary(4)),
]  # fmt: skip


def count_true(check: Callable[[Any], bool], inputs: st.SearchStrategy[Any], cases: int) -> int:
    """Runs a check on as many drawn inputs, the same in every run; returns how often it is true."""
    results: list[bool] = []

    @settings(
        max_examples=cases, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(inputs)
    def run(drawn: Any) -> None:
        results.append(check(drawn))

    run()
    return sum(results)


@st.composite
def damaged(draw: st.DrawFn, valid: Sequence[T], pieces: st.SearchStrategy[T], most: int = 100_000) -> T:
    """Draws one of the valid inputs with one to six edits, of at most `most` characters or bytes.

    Args:
        valid: Inputs that can be read.
        pieces: What an edit may put in.
    """
    text = draw(st.sampled_from(valid))
    for _ in range(draw(st.integers(1, 6))):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        other = draw(st.sampled_from(valid))
        piece = draw(pieces)
        piece *= draw(st.sampled_from((1, 1, 3, 200))) if len(piece) < 20 else 1
        edits = (
            text[:start] + piece + text[start:],
            text[:start] + piece + text[end:],
            text[:end] + text[start : start + 100] * draw(st.sampled_from((1, 30))) + text[end:],
            text[:start] + other[draw(st.integers(0, len(other))) :],
            text[start:end],
            text.swapcase(),
        )
        text = draw(st.sampled_from(edits))[:most]
    return text


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the container and the key of every part of a JSON value."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from places(part)


@st.composite
def damaged_json(draw: st.DrawFn, valid: Any) -> Any:
    """Draws the value with one to four parts left out, doubled, renamed, or replaced by others of it or odd ones."""
    value = copy.deepcopy(valid)
    for _ in range(draw(st.integers(1, 4))):
        if parts := list(places(value)):
            holder, key = draw(st.sampled_from(parts))
            alike = holder if isinstance(holder, list) else [other[name] for other, name in parts if name == key]
            match draw(st.integers(0, 5)):
                case 0:
                    del holder[key]
                case 1 if isinstance(holder, list):
                    holder[key:key] = copy.deepcopy(holder[key : key + 20]) * draw(st.sampled_from((1, 40)))
                case 1:
                    holder[draw(st.sampled_from(("", "\n", "a.b", "é", key.upper(), "x" * 500)))] = holder.pop(key)
                case 2 | 3:
                    holder[key] = copy.deepcopy(draw(st.sampled_from(alike)))
                case _:
                    holder[key] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
    return value


def damaged_file(name: str, valid: bytes) -> st.SearchStrategy[bytes]:
    """Returns what may become of a file: its bytes are spliced, and, by its kind, its text, records or columns."""
    spliced = damaged([valid], st.sampled_from(SPLICES), most=10**6)
    match Path(name).suffix:
        case ".gz":
            return spliced | damaged_file(name.removesuffix(".gz"), gzip.decompress(valid)).map(gzip.compress)
        case ".parquet":
            footer = len(valid) - 8 - int.from_bytes(valid[-8:-4], "little")
            ends = damaged([valid[footer:]], st.sampled_from(SPLICES)).map(lambda end: valid[:footer] + end)
            return spliced | ends | _damaged_columns(valid)
        case ".jsonl":
            records = damaged_json([json.loads(line) for line in valid.splitlines()])
            return spliced | _encoded(valid) | records.map(lambda rows: "\n".join(map(json.dumps, rows)).encode())
        case ".csv":
            rows = damaged_json(list(csv.reader(io.StringIO(valid.decode()))))
            return spliced | _encoded(valid) | st.builds(_write_csv, rows, st.sampled_from(",,,;\t"))
    return spliced | _encoded(valid)


def _encoded(valid: bytes) -> st.SearchStrategy[bytes]:
    text = valid.decode(errors="replace")
    encodings = [text.encode("utf-16"), text.encode("utf-32-le"), b"\xef\xbb\xbf" * 2 + valid]
    encodings.append(text.replace("e", "é").encode("latin-1", errors="replace"))
    ends = (b"\r\n", b"\r", b"\0\n", b"\n\n\n", "\u2028".encode())
    return st.sampled_from([*encodings, *(valid.replace(b"\n", end) for end in ends)])


def _write_csv(rows: list[Any], delimiter: str) -> bytes:
    file = io.StringIO()
    cells = [[str(cell) for cell in row] if isinstance(row, list) else [str(row)] for row in rows]
    csv.writer(file, delimiter=delimiter).writerows(cells)
    return file.getvalue().encode(errors="replace")


@st.composite
def _damaged_columns(draw: st.DrawFn, valid: bytes) -> bytes:
    table = pq.read_table(pa.BufferReader(valid))
    for _ in range(draw(st.integers(1, 3))):
        index = draw(st.integers(0, table.num_columns - 1))
        name, column = table.column_names[index], table.column(index)
        value, kind = draw(st.sampled_from(ODD_COLUMNS))
        no_text = pa.array([b"\xed\xa0\x80"] * table.num_rows).cast(pa.string(), safe=False)
        new_name = draw(st.sampled_from((name.upper(), f" {name}", "", "session_id", "a.b")))
        table = draw(
            st.sampled_from((
                table.set_column(index, new_name, column),
                table.append_column(name, column),  # a name that is there twice
                table.set_column(index, name, pa.array([value] * table.num_rows, kind)),
                table.set_column(index, name, no_text),
                pa.concat_tables([table, table.slice(0, 1)]),
            ))
        )  # fmt: skip
    sink = pa.BufferOutputStream()
    compression = draw(st.sampled_from(("none", "snappy", "gzip", "zstd", "brotli", "lz4")))
    pq.write_table(table, sink, compression=compression, row_group_size=draw(st.sampled_from((1, 2, 1000))))
    content: bytes = sink.getvalue().to_pybytes()
    return content
