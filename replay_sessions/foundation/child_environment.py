"""The environment variables of child processes that run other people's code, such as an agent of a user or npm."""

import os
import re

PASSED = "SHOP_R1_PASS_ENV"  # the variable that names those which such a process gets nevertheless
_KEY = re.compile(r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|CREDENTIAL)S?(?:_|$)", re.IGNORECASE)


def environment_without_keys() -> dict[str, str]:
    """Returns the environment of this process without API keys, tokens and passwords, by the names of variables.

    `SHOP_R1_PASS_ENV`, names between commas, says which of them stay.
    """
    passed = {name.strip() for name in os.environ.get(PASSED, "").split(",")}
    return {
        name: value for name, value in os.environ.items() if name in passed or not _KEY.search(name) or name == PASSED
    }
