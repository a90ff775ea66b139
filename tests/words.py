"""Lint of docstrings, a part of `make check`: those of functions say what they do.

    python -m tests.words

The docstring of a function that is no property begins with a verb in the third person, or with an example.
"""

import ast
import re
import sys
from collections.abc import Iterator

from replay_sessions.foundation.packages import OUR_PACKAGES
from tests.processes import ROOT

VERB = re.compile(r"[A-Z][a-z-]+s\b|>>>|$")  # "Returns"


def parsed_modules() -> Iterator[tuple[str, ast.Module]]:
    """Yields the name and the tree of each module of the packages."""
    for package in OUR_PACKAGES:
        for module in sorted((ROOT / package).rglob("*.py")):
            yield str(module.relative_to(ROOT)), ast.parse(module.read_text("utf-8"))


def docstring_openings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the line and the first word of each docstring of a function that does not say what the function does."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            is_property = any("property" in ast.dump(each) for each in node.decorator_list)
            docstring = ast.get_docstring(node) or ""
            if not is_property and not VERB.match(docstring):
                yield node.lineno, docstring.partition(" ")[0]


def main() -> int:
    """Prints each finding; returns 1 if there are any."""
    findings = [
        f"{name}:{line}: a docstring begins with {first!r}, not with a verb such as 'Returns'"
        for name, tree in parsed_modules()
        for line, first in docstring_openings(tree)
    ]
    print("\n".join(findings) or "words: nothing found")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
