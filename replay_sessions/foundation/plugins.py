"""Loads plug-ins: classes and functions that are named as text, `module:Name`, and imported only when they are used.

A registry can thus name classes that need an extra package, or that would otherwise import the registry.
"""

import importlib
import importlib.util
import inspect
import math
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from numbers import Real
from pathlib import Path
from types import ModuleType
from typing import Any

from replay_sessions.foundation.errors import BadConfig, MissingExtra, did_you_mean
from replay_sessions.foundation.packages import OUR_PACKAGES, ROOT

_NOT_THE_USERS = (*(f"{ROOT / package}{os.sep}" for package in OUR_PACKAGES), "<frozen ")


class NoSuchName(AttributeError):
    """A module without an attribute of the given name; the message suggests the nearest name."""


def load_own(target: str, *, importable: bool = False) -> Any:
    """Loads a user's `module:Name` or `file.py:Name`; modules in the current folder can be loaded, too.

    Args:
        importable: Whether a file is imported by its name from its folder, so that other processes can unpickle its
            objects.

    Raises:
        FileNotFoundError, ImportError, NoSuchName: The file, module or name does not exist.
    """
    module, _, name = target.rpartition(":")
    file, folder = Path(module), Path.cwd()  # an installed command starts without the current folder in sys.path
    try:
        if module.endswith(".py") and not importable:
            loaded = load_file(file)
        else:
            if module.endswith(".py"):
                folder, module = file.resolve().parent, file.stem
            import_from(folder)
            loaded = importlib.import_module(module)
    except SystemExit as error:  # would end the command as if it had succeeded
        raise ImportError(f"'{module}' calls exit when it is imported") from error
    if not hasattr(loaded, name):
        raise NoSuchName(did_you_mean(name, [key for key in vars(loaded) if not key.startswith("_")]))
    return getattr(loaded, name)


def import_from(folder: Path) -> None:
    """Appends a folder to `sys.path`, so that its modules can be imported after all installed ones."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def check_trusted(names: Iterable[str], trust: Collection[str], file: str) -> None:
    """Raises BadConfig if a file, possibly a stranger's, names code or a model that is not in `trust`."""
    if untrusted := [name for name in dict.fromkeys(names) if name not in trust]:
        raise BadConfig(
            f"{file} names what would be loaded and run: if you trust whoever made it, add --trust "
            f"{' '.join(map(shlex.quote, untrusted))}"
        )


@cache
def load_measure(option: str, target: str) -> Callable[..., float | None]:
    """Loads a user's function that returns a number, or None if there is nothing to measure.

    Every failure raises BadConfig, which names the option, the function, and the file and line.
    """
    try:
        function = load_own(target)
        if not inspect.isfunction(function):
            raise TypeError(f"{function!r} is no function")
        location = f"{inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1]}"
    except Exception as error:
        raise BadConfig(f"{option} {target!r} cannot be loaded: {error_with_line(error)}") from error

    def measure(*arguments: object) -> float | None:
        try:
            value = function(*arguments)
        except Exception as error:
            raise BadConfig(f"{option} {target!r} failed: {error_with_line(error, location)}") from error
        if value is None or (isinstance(value, Real) and math.isfinite(value)):
            return None if value is None else float(value)
        raise BadConfig(f"{option} {target!r} returned {value!r}; a finite number was expected ({location})")

    return measure


def error_with_line(error: BaseException, place: str = "") -> str:
    """Formats an exception with the innermost line outside this project that raised it; `place` is the fallback."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"{frame.filename}:{frame.lineno}" for frame in frames if not frame.filename.startswith(_NOT_THE_USERS)]
    place = lines[-1] if lines else place
    kind = "no such name" if isinstance(error, NoSuchName) else type(error).__name__
    return f"{kind}: {error}{place and f' ({place})'}"


def load_file(file: Path) -> ModuleType:
    """Loads a file as a separate module, which can import the files beside it.

    Raises:
        FileNotFoundError: The file does not exist.
        ImportError: A module that it imports is missing.
    """
    if not file.is_file():
        raise FileNotFoundError(f"no file '{file}'")
    name = f"shop_r1_agent_file.{file.resolve()}"
    if name in sys.modules:
        return sys.modules[name]
    specification = importlib.util.spec_from_file_location(name, file)
    assert specification is not None and specification.loader is not None  # a .py file always has a loader
    module = importlib.util.module_from_spec(specification)
    import_from(file.resolve().parent)
    sys.modules[name] = module  # pickling, dataclasses and msgspec look up a class's module here
    try:
        specification.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def requires_extra(extra: str) -> Iterator[None]:
    """Turns a failed import of an extra's package inside the `with` block into MissingExtra.

    Raises:
        MissingExtra: A package of the extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OUR_PACKAGES:
            raise
        missing = f"the package '{error.name}'" if error.name else f"what cannot be imported here ({error})"
        raise MissingExtra(
            f"this needs {missing}, which the extra '{extra}' brings: pip install 'shop-r1[{extra}]'"
        ) from error
