"""Ways to spoil a file of logs: its bytes, its records, its cells, its columns. Everything follows from a Random."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["spoiled"]

SPLICES = [
    b"\0", b"\0" * 300, b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", rb"\ud800", b"\n", b"\r", b"\r\n",
    b'"', b'""', b",", b"\t", b"{", b"}", b"]|", b"[" * 3000, b'{"a":' * 2000, b"<" * 50, b"<div>" * 2000, b"<!--",
    b"<script>", b"&#0;", b"&#xD800;", b"1e999", b"-1e400", b"9" * 400, b"NaN", b"null", b"true", b"\x1f\x8b", b"PAR1",
    b"\x80\x01\x15",
]  # fmt: skip
NESTED = ["[" * 1500 + "]" * 1500, *('{"a":' * depth + "1" + "}" * depth for depth in (300, 900, 1200))]
VALUES: list[Any] = [
    None, True, False, 0, -1, 2**31, 2**63, 2**64, 10**30, 0.5, 1e308, -0.0, float("nan"), float("inf"), "", " ", "\0",
    "\n", "\u2028", "\ud800", "\U0001f600", "x" * 20_000, "0", "1e309", "nan", "-inf", "9999-99-99", "<a name=''>",
    "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "train", "Click", "{", "[", "[1", "{}", '{"a": ', "null",
    "../../etc/passwd", ".", "/", "a\0b", "n" * 300 + ".html", "*", ":has(", "a:nth-child(99999999999999999999)",
    "::before", ":not(*)", "a > > b", "\\", ",", "<p>", "< <a[SA]|", "[Back to Search]", [], {}, [[]], [None], {"": ""},
    {"type": "click"}, {"session_id": 1}, ["a"] * 50, {str(i): i for i in range(50)}, *NESTED,
]  # fmt: skip
RAW_JSON = ["1e999", "-1e999", "9" * 400, "0" * 40, "NaN", "'x'", *NESTED]
TYPES: list[Callable[[int], pa.Array]] = [
    lambda n: pa.nulls(n),
    lambda n: pa.array([2**62] * n, pa.int64()),
    lambda n: pa.array([-1] * n, pa.int8()),
    lambda n: pa.array([float("nan")] * n, pa.float64()),
    lambda n: pa.array([1e308] * n, pa.float64()),
    lambda n: pa.array([True] * n, pa.bool_()),
    lambda n: pa.array([b"\xff\xfe\0"] * n, pa.binary()),
    lambda n: pa.array([b"\xed\xa0\x80"] * n, pa.binary()).cast(pa.string(), safe=False),
    lambda n: pa.array(["x"] * n, pa.large_string()),
    lambda n: pa.array(["train", None] * n, pa.string())[:n].dictionary_encode(),
    lambda n: pa.array([["a", None]] * n, pa.list_(pa.string())),
    lambda n: pa.array([{"type": "click", "name": None}] * n),
    lambda n: pa.array([[{"type": 1}]] * n),
    lambda n: pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64())),
    lambda n: pa.array([2**62] * n, pa.timestamp("us")),
    lambda n: pa.array([0] * n, pa.timestamp("us", tz="UTC")),
    lambda n: pa.array([10**6] * n, pa.date32()),
    lambda n: pa.array([2**60] * n, pa.duration("us")),
    lambda n: pa.array([1] * n, pa.decimal128(38, 30)),
    lambda n: pa.array([b"abcd"] * n, pa.binary(4)),
]


def spoiled(name: str, good: bytes, draw: Random) -> bytes:
    """A file's bytes with something wrong, chosen for its kind; now and then nothing that matters."""
    if name.endswith(".parquet"):
        return draw.choice([_bytes, _parquet_footer, _parquet_pages, _table, _table])(good, draw)
    if name.endswith(".jsonl"):
        return draw.choice([_bytes, _encoding, _records, _records])(good, draw)
    if name.endswith((".csv", ".tsv")):
        return draw.choice([_bytes, _encoding, _cells, _cells])(good, draw)
    if name.endswith(".gz"):
        inner = lambda: gzip.compress(spoiled(name.removesuffix(".gz"), gzip.decompress(good), draw), 1)  # noqa: E731
        return _bytes(good, draw) if draw.random() < 0.5 else inner()
    return draw.choice([_bytes, _bytes, _encoding])(good, draw)


def _bytes(good: bytes, draw: Random) -> bytes:
    """Cut, spliced, flipped, repeated or swapped stretches."""
    content = bytearray(good)
    for _ in range(draw.choice([1, 1, 2, 4])):
        place = draw.randrange(len(content) + 1)
        stretch = slice(place, place + draw.choice([0, 1, 8, 40, 1000]))
        match draw.randrange(6):
            case 0:
                del content[place:]
            case 1:
                content[stretch] = draw.choice(SPLICES)
            case 2 if content:
                content[place - 1] ^= 1 << draw.randrange(8)
            case 3:
                content[place:place] = content[stretch] * draw.choice([1, 3, 50])
            case 4:
                del content[stretch]
            case 5:
                content[stretch] = draw.randbytes(draw.randint(1, 20))
    return bytes(content)


def _encoding(good: bytes, draw: Random) -> bytes:
    text = good.decode(errors="replace")
    match draw.randrange(5):
        case 0:
            return text.encode("utf-16")
        case 1:
            return text.encode("utf-32-le")
        case 2:
            return b"\xef\xbb\xbf" * draw.choice([1, 2]) + good
        case 3:
            letters = str.maketrans(dict.fromkeys(draw.sample("aeiostn", 2), "é"))
            return text.translate(letters).encode("latin-1", errors="replace")
    return good.replace(b"\n", draw.choice([b"\r\n", b"\r", b"\0\n", b"\n\n\n", "\u2028".encode()]))


def _records(good: bytes, draw: Random) -> bytes:
    """JSON lines with values of the wrong kind, keys that are gone, new or doubled, records in the wrong place."""
    lines = [json.loads(line) for line in good.splitlines()]
    raw: list[str] = []
    for _ in range(draw.choice([1, 1, 2, 5])):
        index = draw.randrange(len(lines))
        lines[index] = _spoiled_value(lines[index], draw, raw)
    if draw.random() < 0.2:
        lines.append(draw.choice(lines))
    if draw.random() < 0.1:
        lines = [lines]
    text = draw.choice(["\n", "\n", "\n", "", " \n\n"]).join(json.dumps(line) for line in lines)
    for number, replacement in enumerate(raw):
        text = text.replace(f'"@{number}@"', replacement)
    return text.encode()


def _spoiled_value(value: Any, draw: Random, raw: list[str]) -> Any:
    """`value` with one part of it, anywhere inside, spoiled."""
    if draw.random() < 0.15 or not isinstance(value, dict | list) or not value:
        if draw.random() < 0.2:
            raw.append(draw.choice(RAW_JSON))
            return f"@{len(raw) - 1}@"
        return draw.choice(VALUES)
    if isinstance(value, list):
        index = draw.randrange(len(value))
        match draw.randrange(8):
            case 0:
                return value[:index]
            case 1:
                return [*value, *value * draw.choice([1, 1, 40])]
        return [*value[:index], _spoiled_value(value[index], draw, raw), *value[index + 1 :]]
    key = draw.choice(sorted(value))
    match draw.randrange(10):
        case 0:
            return {name: below for name, below in value.items() if name != key}
        case 1:
            return {(draw.choice(["", "\n", "a.b", "é", key.upper()]) if name == key else name): below
                    for name, below in value.items()}  # fmt: skip
        case 2:
            return {**value, draw.choice(["new", "a\nb", "", "x" * 500]): draw.choice(VALUES)}
    return {**value, key: _spoiled_value(value[key], draw, raw)}


def _cells(good: bytes, draw: Random) -> bytes:
    """A table with wrong cells, and rows or a header that do not fit."""
    rows = list(csv.reader(io.StringIO(good.decode())))
    for _ in range(draw.choice([1, 1, 2, 5])):
        row = draw.choice(rows[:1] if draw.random() < 0.15 else rows)
        if row:
            row[draw.randrange(len(row))] = str(draw.choice(VALUES)).encode(errors="replace").decode()
    match draw.randrange(8):
        case 0:
            draw.choice(rows).append("more")
        case 1:
            draw.choice(rows).pop()
        case 2:
            rows.append(draw.choice(rows))
        case 3:
            rows.insert(draw.randrange(len(rows)), [])
    file = io.StringIO()
    quoting = draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    delimiter = draw.choice([",", ",", ",", ";", "\t"])
    csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=draw.choice(["\n", "\r\n"])).writerows(rows)
    return file.getvalue().encode()


def _parquet_footer(good: bytes, draw: Random) -> bytes:
    """A file whose footer, or its length, is damaged."""
    content = bytearray(good)
    length = int.from_bytes(good[-8:-4], "little")
    if draw.random() < 0.2:
        content[-8:-4] = draw.choice([0, 1, length - 1, length + 1, len(good), 2**31 - 1, 2**32 - 1]).to_bytes(
            4, "little"
        )
    start = max(4, len(good) - 8 - length)
    for _ in range(draw.choice([1, 1, 3, 20])):
        content[draw.randrange(start, len(good) - 8)] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)])
    return bytes(content)


def _parquet_pages(good: bytes, draw: Random) -> bytes:
    """A file whose values, or the heads of its pages, are damaged; its footer is whole."""
    content = bytearray(good)
    end = max(5, len(good) - 8 - int.from_bytes(good[-8:-4], "little"))
    for _ in range(draw.choice([1, 1, 3, 20])):
        place = draw.randrange(4, end)
        new = draw.choice([b"\0", b"\xff", b"\xff" * 8, bytes([content[place] ^ (1 << draw.randrange(8))])])
        content[place : place + len(new)] = new
    return bytes(content[: len(good)])


def _table(good: bytes, draw: Random) -> bytes:
    """A sound file with another schema or other values."""
    table = pq.read_table(pa.BufferReader(good))
    for _ in range(draw.choice([1, 1, 2, 4])):
        if table.num_columns:
            table = _other_columns(table, draw.randrange(table.num_columns), draw)
    if draw.random() < 0.1:
        table = table.slice(0, draw.randrange(table.num_rows + 1))
    if draw.random() < 0.1:
        table = pa.concat_tables([table, table])
    if draw.random() < 0.1 and table.num_rows:
        table = table.take(pa.array(draw.choices(range(table.num_rows), k=table.num_rows)))
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression=draw.choice(["none", "snappy", "gzip", "zstd", "brotli", "lz4"]),
        use_dictionary=draw.random() < 0.5,
        row_group_size=draw.choice([1, 2, 1000]),
        data_page_version=draw.choice(["1.0", "2.0"]),
        store_schema=draw.random() < 0.5,
    )
    return sink.getvalue().to_pybytes()


def _is_text(column: pa.ChunkedArray) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _other_columns(table: pa.Table, index: int, draw: Random) -> pa.Table:
    name, column = table.column_names[index], table.column(index)
    match draw.randrange(6):
        case 0:
            return table.remove_column(index)
        case 1:
            new = draw.choice([name.upper(), f" {name}", "", "session_id", "a.b", "é"])
            return table.set_column(index, new, column)
        case 2:
            return table.append_column(name, column)  # a name that is there twice
        case 3:
            nulls = pa.array([draw.random() < 0.5 for _ in range(table.num_rows)], pa.bool_())
            return table.set_column(index, name, pa.compute.if_else(nulls, None, column))
        case 4 if pa.types.is_string(column.type) and _is_text(column):
            texts = [draw.choice([value for value in VALUES if isinstance(value, str) and value != "\ud800"])
                     if draw.random() < 0.5 else old for old in column.to_pylist()]  # fmt: skip
            return table.set_column(index, name, pa.array(texts, pa.string()))
    return table.set_column(index, name, draw.choice(TYPES)(table.num_rows))
