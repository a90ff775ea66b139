"""What makes Python faster: the simplifier's modules, compiled, and the garbage collector, paused.

The simplifier's modules are compiled (setup.py) or interpreted from their sources; both write the same. In a checkout a
source that is newer than what was compiled of it counts, and then all are interpreted, as they are where
SHOP_R1_INTERPRETED is set. This module is to be imported before those.
"""

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "simplify"
_SUFFIX = EXTENSION_SUFFIXES[0]  # of this version of Python on this machine


def _source(compiled: Path) -> Path:
    return compiled.with_name(compiled.name.removesuffix(_SUFFIX) + ".py")


def _is_compiled() -> bool:
    compiled = [path for path in _FOLDER.rglob(f"*{_SUFFIX}") if _source(path).exists()]
    if not compiled or os.environ.get("SHOP_R1_INTERPRETED"):
        return False
    is_checkout = (_FOLDER.parents[1] / "setup.py").exists()  # elsewhere nobody changes sources
    return not (is_checkout and any(_source(path).stat().st_mtime > path.stat().st_mtime for path in compiled))


@contextlib.contextmanager
def paused_collection() -> Iterator[None]:
    """Keeps the garbage collector off while many objects are created that nearly all live on; also a decorator.

    Looking through them over and over costs a tenth of the time and frees nothing. What runs so must leave no circles
    of references behind, for nothing else frees those.

    Where threads share the switch, the one that turned it off turns it on again; the others then go on with
    collections, which costs them time and nothing else.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


IS_COMPILED = _is_compiled()
if not IS_COMPILED:  # Python then finds only sources in these folders
    for folder, _, _ in os.walk(_FOLDER):
        sys.path_importer_cache[folder] = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))
