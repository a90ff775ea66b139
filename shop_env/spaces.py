"""The env's spaces: any Unicode text, without a list of characters.

`gymnasium.spaces.Text` checks every character against a set (48 ms for a page of 600 kB) and must know all characters
in advance. `UnicodeText` looks at the type only. Gymnasium's AsyncVectorEnv shares memory by default, which texts of
any length cannot: it needs `shared_memory=False`.

Gymnasium's vector envs put the observations of all envs together and copy the result deeply, item by item, which on
texts and histories takes longer than the steps themselves. What `concatenate` makes of these spaces is new each time;
texts are not copied, for they never change, and histories at one go.
"""

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import concatenate
from numpy.typing import NDArray

from shop_env.observation import History, Observation

_SAMPLE_LENGTH = 64
_SURROGATES = (0xD800, 0xE000)


class UnicodeText(spaces.Space[str]):
    """All strings.

    >>> "红色水壶 🫖" in UnicodeText(), 3 in UnicodeText()
    (True, False)
    """

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(None, str, seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Text has no fixed-size array form."""
        return False

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """A short random string of characters from all of Unicode; `mask` and `probability` have no meaning here."""
        length = int(self.np_random.integers(0, _SAMPLE_LENGTH + 1))
        low, high = _SURROGATES
        points = self.np_random.integers(0, 0x110000 - (high - low), size=length)
        return "".join(chr(point if point < low else point + high - low) for point in points.tolist())

    def __repr__(self) -> str:
        return "UnicodeText()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText)


class HistorySpace(spaces.Sequence):
    """All histories (shop_env.observation.History): tuples of past steps, oldest first."""

    def __init__(self) -> None:
        super().__init__(spaces.Dict({"page": UnicodeText(), "rationale": UnicodeText(), "action": UnicodeText()}))


class StepSpace(spaces.Discrete):
    """All numbers of steps, counted from 0."""

    def __init__(self) -> None:
        super().__init__(2**31 - 1)


class _Texts(tuple[str, ...]):
    """The texts of several envs, which as a tuple of texts is its own deep copy."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> "_Texts":
        return self


class _Histories(tuple[History, ...]):
    """The histories of several envs."""

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


def observation_space() -> spaces.Space[Observation]:
    """The space of `shop_env.observation.Observation`."""
    fields: dict[str, spaces.Space[Any]] = {
        "page": UnicodeText(),
        "history": HistorySpace(),
        "persona": UnicodeText(),
        "goal": UnicodeText(),
        "step": StepSpace(),
    }
    return cast(spaces.Space[Observation], spaces.Dict(fields))
