"""The ways to draw the replies of a run's policies; each is a row of the final table."""

from dataclasses import dataclass
from typing import Any

from replay_sessions.foundation.errors import check_at_least

MOST_PROBABLE = "most probable action"  # the name of a decoding


@dataclass(frozen=True)
class Decoding:
    """A way to draw a policy's replies.

    Attributes:
        rationales: The number of sampled rationales for the most probable action; None samples replies token by token.
    """

    name: str
    temperature: float
    rationales: int | None = None

    @classmethod
    def at(cls, temperature: float) -> "Decoding":
        """Returns the decoding that samples at a temperature; 0 is greedy."""
        check_at_least(0, temperature=temperature)
        return cls(f"T {temperature:g}" if temperature else "greedy", temperature)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the policy's agent (agents/local/policy_agent.py)."""
        if self.rationales is None:
            return {"temperature": self.temperature}
        return {"decode": "most_probable_action", "rationales": self.rationales}

    def label(self, phase: str) -> str:
        """Returns the label of a phase's row in the table."""
        return f"{phase}, {self.name}"

    def file_name(self, phase: str) -> str:
        """Returns the name of the folder of the row's records."""
        return f"{phase}-{self.name.replace(' ', '')}"
