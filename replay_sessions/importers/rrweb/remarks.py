"""Custom events that an import understands: those of our own recorder, and addresses that others note.

    rrweb.record.addCustomEvent("shop_r1.session", {session_id: "s17", user_id: "u4", goal: "a red kettle"})

| tag | payload |
|---|---|
| `shop_r1.session` | `session_id`, `user_id`, `goal`, each optional: pseudonyms |
| `shop_r1.persona` | `text`: who the shopper is |
| `shop_r1.rationale` | `text`: why the last action in this tab was done, in the shopper's words |
| `shop_r1.purchase` | the last click in this tab bought |
| `shop_r1.view` | this tab came into sight: who leaves now, leaves its page |
| `shop_r1.address`, PostHog's `$pageview` and `$url_changed` | `href`: the address changed without a new page |
"""

from typing import Any

__all__ = ["ADDRESS_TAGS", "PERSONA", "PURCHASE_TAG", "RATIONALE", "REMARK_TAGS", "SESSION", "VIEW_TAG", "texts_of"]

SESSION = "shop_r1.session"
PERSONA = "shop_r1.persona"
RATIONALE = "shop_r1.rationale"
PURCHASE_TAG = "shop_r1.purchase"
REMARK_TAGS = frozenset({SESSION, PERSONA, RATIONALE, PURCHASE_TAG})
VIEW_TAG = "shop_r1.view"
ADDRESS_TAGS = frozenset({"shop_r1.address", "$pageview", "$url_changed"})


def texts_of(payload: Any) -> dict[str, str]:
    """The fields of a payload that hold text.

    >>> texts_of({"user_id": "u4", "age": 40}), texts_of("u4")
    ({'user_id': 'u4'}, {})
    """
    if not isinstance(payload, dict):
        return {}
    return {str(name): value for name, value in payload.items() if isinstance(value, str) and value}
