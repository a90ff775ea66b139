"""Caches trunks in files, which are written once and memory-mapped for reading, with four bytes for each token.

    tokens-KEY.uint32   the tokens of all trunks        trunks-KEY.json   all other fields of the trunks

As Python lists, the tokens of a large log would need nine times the memory, all of it at once. The JSON is written
last; without it the tokens count as not written.
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
    """The tokens of a trunk in the file; a slice of them is a list."""

    def __init__(self, array: npt.NDArray[np.uint32]) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Any:
        return self._array[index].tolist()

    def __len__(self) -> int:
        return len(self._array)


def cache_key(*parts: object) -> str:
    """Computes a hash of `parts`, which msgspec must be able to encode."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:32]


def cached_trunks(folder: Path, key: str, build: Callable[[], Iterable[SessionTokens]]) -> list[SessionTokens]:
    """Returns the trunks that are cached under `key`; if there are none, writes those of `build` first."""
    tokens, index = folder / f"tokens-{key}.uint32", folder / f"trunks-{key}.json"
    if not index.exists():
        _write(tokens, index, build())
    # For each trunk: the start and end of its tokens in the file, and the trunk without tokens.
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
