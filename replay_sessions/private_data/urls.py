"""Removes private data from URLs: parameters by their names, and values by their form.

Credentials are removed from all parts of a URL: tokens, passwords and keys by the parameter's name, JSON web tokens by
their form, a session id behind a semicolon, and the user name and password before the host. Parameters have the same
names as form fields, so `kind_by_name` serves both.

    https://shop.example/login?email=anna%40example.org&next=/cart   ->   https://shop.example/login?email=[email]&next=/cart

Only private values change; everything else stays as it was written, escapes included.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import quote_plus, unquote_plus

from replay_sessions.private_data.fields import kind_by_name

_SECRET_NAMES = (
    r"[\w.-]*(?:token|jwt|secret|signature|api[_-]?key|access[_-]?key|auth[_-]?key|private[_-]?key|password|passwd"
    r"|pass[_-]?(?:code|phrase)|sess(?:ion)?[_-]?id|credential)|sig|sid|pwd|pass|otp|pin|clave|passwort|mot_?de_?passe|contrase[nñ]a|cv[cv]2?|authorization|key-pair-id"
)
# Under these names, only long values that look random are secrets.
_MAYBE_SECRET = r"code|ticket|key|hash|auth|state|nonce|session|sess|magic|invite|otk|[ckhts]"
_DRAWN = r"(?=[^&;#]{0,40}\d)(?=[^&;#]{0,40}[A-Za-z])[\w.~%-]{14,}"
# The first group stays; the text behind it is the secret.
_SECRETS = (
    re.compile(rf"([?&;#](?i:{_SECRET_NAMES})=)[^&;#?\s<>\"]+"),
    re.compile(rf"([?&;#](?i:{_MAYBE_SECRET})=){_DRAWN}"),
    re.compile(r"(//)[^/?#@:\s<>\"]+:[^/?#@\s<>\"]*(?=@)"),
    # The lookahead sees once for each run of characters whether a dot follows, so that the time is linear.
    re.compile(r"((?<![\w-])(?=[\w-]++\.[\w-]{4})[\w-]*?\b)eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?"),
)
_MARKS = frozenset("?&;#/=")
_PART = re.compile(r"([?&;#/])(?:([\w.\[\]%~-]+)=)?([^?&;#/=]*)")


def without_private_parts(url: str, clean: Callable[[str], str]) -> str:
    """Returns a URL with credentials and private values replaced by their kinds.

    Args:
        clean: Removes the private data from a decoded value.
    """

    def change(name: str, value: str) -> str:
        kind = kind_by_name(unquote_plus(name)) if name and any(map(str.isalnum, value)) else ""
        return f"[{kind}]" if kind else clean(value)

    return with_changed_parts(url, change)


@lru_cache(maxsize=8192)  # a log has few addresses
def without_credentials(url: str) -> str:
    """Returns a URL with everything that gives access replaced by `[secret]`.

    >>> without_credentials("https://shop.example/in?user=u4&password=open+it&next=/")
    'https://shop.example/in?user=u4&password=[secret]&next=/'
    """
    return with_changed_parts(url, lambda name, value: value)


def with_changed_parts(url: str, change: Callable[[str, str], str]) -> str:
    """Returns a URL without credentials, and with its parts changed.

    A value may be a URL itself (`return_to=%2Freset%3Ftoken%3D…`), and is then read like one. A changed value is
    escaped as often as it was.

    Args:
        change: Returns the new text for the name of a parameter, "" for a part of the path, and its decoded value.
    """
    for pattern in _SECRETS:
        url = pattern.sub(r"\1[secret]", url)

    def changed(match: re.Match[str]) -> str:
        mark, name, value = match[1], match[2] or "", match[3]
        versions = [value]
        while _MARKS.isdisjoint(versions[-1]) and (decoded := unquote_plus(versions[-1])) != versions[-1]:
            versions.append(decoded)
        decoded = versions[-1]
        is_url = len(versions) > 1 and not _MARKS.isdisjoint(decoded)
        new_value = change(name, with_changed_parts(f"?{decoded}", change)[1:] if is_url else decoded)
        if new_value == decoded:
            return match[0]
        for _ in versions[1:]:
            new_value = quote_plus(new_value, safe="[]")
        return mark + (f"{name}=" if name else "") + new_value.replace(" ", "+")

    start = url.find("://") + 3 if "://" in url else 0
    return url[:start] + _PART.sub(changed, url[start:])
