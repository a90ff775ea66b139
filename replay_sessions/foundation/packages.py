"""The packages of this project, a check that Python finds these and not others, and the path of its program."""

import os
import re
import shutil
import sys
from base64 import urlsafe_b64encode
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from replay_sessions.foundation.errors import ShopR1Error

DISTRIBUTION = "shop-r1"
OUR_PACKAGES = ("replay_sessions", "shop_env", "train", "agents", "benchmarks")
ROOT = Path(__file__).parents[2]


class ForeignPackage(ShopR1Error, ImportError):
    """A package of another project that has the name of one of ours."""


def check_packages() -> None:
    """Checks that Python finds the packages of this project, without importing them.

    They must lie beside this package, as installed. A user's own `train.py` can hide one of them, and `openai-agents`
    installs an `agents` over ours.

    Raises:
        ForeignPackage: Python finds another project's package.
    """
    try:
        recorded = {str(file): file.hash for file in metadata.files(DISTRIBUTION) or ()}
    except metadata.PackageNotFoundError:  # a checkout that is not installed
        recorded = {}
    for package in OUR_PACKAGES:
        expected, specification = ROOT / package / "__init__.py", find_spec(package)
        file = Path(specification.origin or "") if specification else None
        digest = recorded.get(f"{package}/__init__.py")
        is_ours = file is not None and file.is_file() and file.samefile(expected)
        if not is_ours or (digest and digest.value != _digest(expected)):
            raise ForeignPackage(
                f"the package '{package}' that Python finds ({file}) is not shop-r1's, which belongs to {expected}: "
                "move or rename the other, or use an environment of its own (the distribution 'openai-agents' also "
                "installs a package 'agents')"
            )


def with_program_path(text: str) -> str:
    """Returns a text whose commands `shop-r1 …` begin with the path of the program where no PATH leads to it.

    So a hint can be copied to a shell in which the environment is not activated.
    """
    script = Path(sys.executable).with_name(DISTRIBUTION)
    if shutil.which(DISTRIBUTION) or not script.is_file():
        return text
    return re.sub(rf"(^ *|`|: ){DISTRIBUTION} (?=[a-z])", rf"\g<1>{os.path.relpath(script)} ", text, flags=re.MULTILINE)


def _digest(file: Path) -> str:
    """Returns the digest of a file in the form that a wheel records."""
    return urlsafe_b64encode(sha256(file.read_bytes()).digest()).rstrip(b"=").decode()
