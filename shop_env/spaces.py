"""The env's spaces: any Unicode text, without a list of characters.

`gymnasium.spaces.Text` checks every character against a set (48 ms for a page of 600 kB) and needs all characters in
advance. `UnicodeText` checks only the type. Gymnasium's AsyncVectorEnv shares memory of a fixed size by default; texts
of any length are shared as files of a temporary folder instead.

Gymnasium's vector envs concatenate the observations of all envs and deep-copy the result, item by item. On texts and
histories that takes longer than the steps themselves. So `concatenate` returns new tuples with cheap deep copies for
these spaces: texts are immutable and not copied, and each past step is copied as one dict.
"""

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import (
    concatenate,
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)
from numpy.typing import NDArray

from shop_env.observation import History, Observation

_SAMPLE_LENGTH = 64
_SURROGATES = (0xD800, 0xE000)


class UnicodeText(spaces.Space[str]):
    """The space of all strings.

    >>> "红色水壶 🫖" in UnicodeText(), 3 in UnicodeText()
    (True, False)
    """

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(None, str, seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Always False, because text has no array form of fixed size."""
        return False

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Draws a string of 0 to 64 characters from all of Unicode; `mask` and `probability` are ignored."""
        length = int(self.np_random.integers(0, _SAMPLE_LENGTH + 1))
        low, high = _SURROGATES
        points = self.np_random.integers(0, 0x110000 - (high - low), size=length)
        return "".join(chr(point if point < low else point + high - low) for point in points.tolist())

    def __repr__(self) -> str:
        return "UnicodeText()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText)


class HistorySpace(spaces.Sequence):
    """The space of all histories (shop_env.observation.History): tuples of past steps, oldest first."""

    def __init__(self) -> None:
        super().__init__(spaces.Dict({"page": UnicodeText(), "rationale": UnicodeText(), "action": UnicodeText()}))


class StepSpace(spaces.Discrete):
    """The space of all step numbers, counted from 0."""

    def __init__(self) -> None:
        super().__init__(2**31 - 1)


class _Texts(tuple[str, ...]):
    """The texts of several envs; a deep copy returns the tuple itself, because texts are immutable."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> "_Texts":
        return self


class _Histories(tuple[History, ...]):
    """The histories of several envs; a deep copy copies each past step as one dict."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> "_Histories":
        return _Histories([tuple([step.copy() for step in history]) for history in self])


@concatenate.register(UnicodeText)
def _concatenate_texts(space: UnicodeText, items: Iterable[str], out: None) -> _Texts:
    return _Texts(items)


@concatenate.register(HistorySpace)
def _concatenate_histories(space: HistorySpace, items: Iterable[History], out: None) -> _Histories:
    return _Histories(items)


@concatenate.register(StepSpace)
def _concatenate_steps(space: StepSpace, items: Iterable[int], out: object) -> NDArray[np.int64]:
    return np.array(list(items), dtype=np.int64)


class _SharedFiles(Sequence[Any]):
    """The latest value of each env, a file each that its process writes. A deep copy reads all files.

    Args:
        kind: The type of the values.
        count: The number of envs.
    """

    def __init__(self, kind: type, count: int) -> None:
        self._kind, self._count = kind, count
        self._folder = Path(tempfile.mkdtemp(prefix="shop_r1_"))
        weakref.finalize(self, _remove_folder, self._folder, os.getpid())

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        return msgspec.json.decode((self._folder / str(range(self._count)[index])).read_bytes(), type=self._kind)

    def __deepcopy__(self, memo: object) -> tuple[Any, ...]:
        return tuple(self)

    def write(self, index: int, value: Any) -> None:
        (self._folder / str(index)).write_bytes(msgspec.json.encode(value))


def _remove_folder(folder: Path, creator: int) -> None:
    if os.getpid() == creator:  # a forked process has the object as well
        shutil.rmtree(folder, ignore_errors=True)


@create_shared_memory.register(UnicodeText)
@create_shared_memory.register(HistorySpace)
def _create_files(space: UnicodeText | HistorySpace, n: int = 1, ctx: object = None) -> _SharedFiles:
    return _SharedFiles(str if isinstance(space, UnicodeText) else tuple, n)


@read_from_shared_memory.register(UnicodeText)
@read_from_shared_memory.register(HistorySpace)
def _read_files(space: object, shared_memory: _SharedFiles, n: int = 1) -> _SharedFiles:
    return shared_memory


@write_to_shared_memory.register(UnicodeText)
@write_to_shared_memory.register(HistorySpace)
def _write_file(space: object, index: int, value: str | History, shared_memory: _SharedFiles) -> None:
    shared_memory.write(index, value)


def observation_space() -> spaces.Space[Observation]:
    """Builds the space of `shop_env.observation.Observation`."""
    fields: dict[str, spaces.Space[Any]] = {
        "page": UnicodeText(),
        "history": HistorySpace(),
        "persona": UnicodeText(),
        "goal": UnicodeText(),
        "step": StepSpace(),
    }
    return cast(spaces.Space[Observation], spaces.Dict(fields))
