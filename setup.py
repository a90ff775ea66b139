"""Compiles the walk over a page, where SHOP_R1_COMPILE is set: pages are simplified 1.3 times as fast.

    SHOP_R1_COMPILE=1 python setup.py build_ext --inplace                      in a checkout: make compiled
    SHOP_R1_COMPILE=1 pip install --no-build-isolation --no-deps .             a package, with mypy and setuptools there

It takes mypy (the extra `test`), a C compiler and a minute and a half. Everything else is in pyproject.toml.
"""

import os

from setuptools import Extension, setup

_FOLDER = "replay_sessions/simplify"
_MODULES = (
    "apart", "card_tree", "cards", "cascade", "css_selectors", "declarations", "element_table", "element_writer",
    "hidden", "icons", "media", "names", "page", "parsing", "pieces", "recipes/selectors", "style_rules",
    "style_sheets", "tags", "targets", "trees", "walk",
)  # fmt: skip


def _compiled() -> list[Extension]:
    try:
        from mypyc.build import mypycify  # noqa: PLC0415 - of the extra `test`
    except ImportError as error:
        raise SystemExit("SHOP_R1_COMPILE is set, which takes mypy: pip install mypy") from error
    paths = [f"{_FOLDER}/{name}.py" for name in _MODULES]
    return mypycify(paths, group_name="replay_sessions.simplify.compiled", opt_level="3")


setup(ext_modules=_compiled() if os.environ.get("SHOP_R1_COMPILE") else [])
