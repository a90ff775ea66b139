"""Trunks in files, each written once and mapped into memory as it is read, four bytes a token.

    tokens-KEY.uint32   all trunks end to end           trunks-KEY.json   what else is in them

As Python lists the tokens of a large log would take nine times the memory, all of it at once. The JSON is written last:
without it the tokens count as not written.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from replay_sessions.foundation.durable_files import replace_file, replacing
from train.tokens import SessionTokens


class MappedTokens(Sequence[int]):
    """A trunk's tokens in the file; a slice of them is a list."""

    def __init__(self, array: npt.NDArray[np.uint32]) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Any:
        return self._array[index].tolist()

    def __len__(self) -> int:
        return len(self._array)


def cache_key(*parts: object) -> str:
    """A hash of `parts`, which msgspec can encode."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:32]


def cached_trunks(folder: Path, key: str, build: Callable[[], Iterable[SessionTokens]]) -> list[SessionTokens]:
    """The trunks that were written under `key`; else those of `build`, after writing them."""
    tokens, index = folder / f"tokens-{key}.uint32", folder / f"trunks-{key}.json"
    if not index.exists():
        _write(tokens, index, build())
    # Where a trunk's tokens begin and end in the file, and the trunk without them.
    entries = msgspec.json.decode(index.read_bytes(), type=list[tuple[int, int, SessionTokens]])
    if not entries:
        return []
    array = np.memmap(tokens, dtype=np.uint32, mode="r")
    return [replace(trunk, tokens=MappedTokens(array[start:end])) for start, end, trunk in entries]


def _write(tokens: Path, index: Path, trunks: Iterable[SessionTokens]) -> None:
    entries = []
    end = 0
    with replacing(tokens) as partial, partial.open("wb") as file:
        for trunk in trunks:
            start, end = end, end + len(trunk.tokens)
            file.write(np.asarray(trunk.tokens, dtype=np.uint32).tobytes())
            entries.append((start, end, replace(trunk, tokens=())))
    replace_file(index, msgspec.json.encode(entries))
