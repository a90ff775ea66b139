"""What of a session an agent gets to see: which past pages, whether past rationales, whose persona, how much in all.

Stands between the store and the observation (shop_env.observation). Shop-R1, table 5 compares `whole_session` with
`latest_step`; Customer-R1 drops the earliest pages of a context that is too long (section 4.1) and takes the persona
away or exchanges it (sections 4.5 and 4.7).
"""

from typing import Literal, get_args

import msgspec

from replay_sessions.errors import BadConfig

__all__ = ["ContextConfig", "PersonaArm", "Scope"]

Scope = Literal["whole_session", "latest_step"]
PersonaArm = Literal["matched", "none", "shuffled", "generic"]


class ContextConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a session that is shown.

    Attributes:
        scope: `whole_session` shows every page so far, `latest_step` only the current one; past actions and rationales
            are shown in both.
        rationales: False leaves past rationales out of the history.
        persona: `matched` is the shopper's own, `none` nobody's, `shuffled` another user's (shop_env.personas), and
            `generic` one sentence that fits everybody.
        persona_seed: Who gets whose persona when shuffled.
        budget: The most that the texts of an observation may count together (what a prompt adds, instructions and the
            chat template, not included); None for no limit. The earliest pages are dropped first, then the current
            page is shortened; actions and rationales stay (shop_env.budget).
        counter: What the budget counts: `characters`, `words`, or "module:function" of one's own (text -> int), for
            example a tokenizer's.
    """

    scope: Scope = "whole_session"
    rationales: bool = True
    persona: PersonaArm = "matched"
    persona_seed: int = 0
    budget: int | None = None
    counter: str = "characters"

    def __post_init__(self) -> None:
        for field, choices in (("scope", Scope), ("persona", PersonaArm)):
            if (value := getattr(self, field)) not in get_args(choices):
                raise BadConfig(f"context.{field} is {value!r}; it must be one of {', '.join(get_args(choices))}.")
        if self.budget is not None and self.budget < 1:
            raise BadConfig(f"context.budget is {self.budget}; it must be at least 1, or None for no limit.")
        if self.counter not in ("characters", "words") and ":" not in self.counter:
            raise BadConfig(
                f"context.counter is {self.counter!r}; it must be 'characters', 'words' or 'module:function'."
            )

    @property
    def grows_by_appending(self) -> bool:
        """Whether the prompt of each step begins with the whole prompt of the step before (the session tree's need)."""
        return self.scope == "whole_session" and self.budget is None
