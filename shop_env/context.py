"""What of a session an agent gets to see: which past pages, whether past rationales, whose persona.

Stands between the store and the observation (shop_env.observation). Shop-R1, table 5 compares `whole_session` with
`latest_step`; Customer-R1, section 4.5 takes the persona away or shuffles it.
"""

from typing import Literal

import msgspec

from replay_sessions.errors import BadConfig

__all__ = ["ContextConfig", "PersonaArm", "Scope"]

Scope = Literal["whole_session", "latest_step"]
PersonaArm = Literal["matched", "none"]

_SCOPES = ("whole_session", "latest_step")
_PERSONA_ARMS = ("matched", "none")


class ContextConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a session that is shown.

    Attributes:
        scope: `whole_session` shows every page so far, `latest_step` only the current one; past actions and rationales
            are shown in both.
        rationales: False leaves past rationales out of the history.
        persona: `matched` shows the shopper's own persona, `none` shows nobody's.
    """

    scope: Scope = "whole_session"
    rationales: bool = True
    persona: PersonaArm = "matched"

    def __post_init__(self) -> None:
        if self.scope not in _SCOPES:
            raise BadConfig(f"context.scope is {self.scope!r}; it must be one of {', '.join(_SCOPES)}.")
        if self.persona not in _PERSONA_ARMS:
            raise BadConfig(f"context.persona is {self.persona!r}; it must be one of {', '.join(_PERSONA_ARMS)}.")
