"""Removes private data from URLs: parameters by their names, and values by their form.

Credentials are removed from all parts of a URL: tokens, passwords and keys by the parameter's name, JSON web tokens by
their form, a session id behind a semicolon, and the user name and password before the host. Parameters have the same
names as form fields, so `kind_by_name` serves both.

    https://shop.example/login?email=anna%40example.org&next=/cart   ->   https://shop.example/login?email=[email]&next=/cart

Only private values change; everything else stays as it was written, escapes included.
"""

import re
from collections.abc import Callable
from urllib.parse import unquote_plus

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
    re.compile(r"(\b)eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?"),
)
_PART = re.compile(r"([?&;#/])(?:([\w.\[\]%~-]+)=)?([^?&;#/=]*)")


def without_private_parts(url: str, clean: Callable[[str], str]) -> str:
    """Returns a URL with credentials and private values replaced by their kinds.

    Args:
        clean: Removes the private data from a decoded value.
    """

    def cleaned(match: re.Match[str]) -> str:
        mark, name, value = match[1], match[2], match[3]
        decoded = unquote_plus(value)
        if name and any(map(str.isalnum, decoded)) and (kind := kind_by_name(unquote_plus(name))):
            return f"{mark}{name}=[{kind}]"
        if (cleaned_value := clean(decoded)) == decoded:
            return match[0]
        return mark + (f"{name}=" if name else "") + cleaned_value.replace(" ", "+")

    url = without_credentials(url)
    start = url.find("://") + 3 if "://" in url else 0
    return url[:start] + _PART.sub(cleaned, url[start:])


def without_credentials(url: str) -> str:
    """Returns a URL with everything that gives access replaced by `[secret]`.

    >>> without_credentials("https://shop.example/in?user=u4&password=open+it&next=/")
    'https://shop.example/in?user=u4&password=[secret]&next=/'
    """
    for pattern in _SECRETS:
        url = pattern.sub(r"\1[secret]", url)
    return url
