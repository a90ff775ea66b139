"""What travels between an OpenEnv client and the server: a reply there; what is seen, and what it earned, back."""

from typing import Annotated, Any

from openenv.core.env_server.types import Action, Observation
from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError


def _text(value: object) -> str:
    """Any text: half a surrogate pair, which pydantic refuses, is a malformed reply like others and earns 0."""
    if not isinstance(value, str):
        raise PydanticCustomError("text_type", "a reply is a text, not {kind}", {"kind": type(value).__name__})
    return value


class ShopAction(Action):  # type: ignore[misc]  # the package is not installed where types are checked
    """A reply, as the model wrote it."""

    reply: Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string"})] = Field(
        description='The whole reply: {"rationale": "…", "action": {"type": "click", "name": "…"}}'
    )


class ShopObservation(Observation):  # type: ignore[misc]
    """A page to answer, or what the answer was worth; `done` and `reward` are OpenEnv's own."""

    messages: list[dict[str, str]] = Field(default_factory=list, description="The prompt as chat messages")
    page: str = Field(default="", description="The current page, simplified HTML; empty when the episode is over")
    history: list[dict[str, str]] = Field(default_factory=list, description="Past steps: page, rationale, action")
    persona: str = ""
    goal: str = ""
    step: int = Field(default=0, description="Which step of the session this is, counted from 0")
    truncated: bool = Field(default=False, description="Whether the episode was cut short, not ended")
    reward_breakdown: dict[str, float | None] | None = Field(default=None, description="The reward's parts by name")
    info: dict[str, Any] = Field(default_factory=dict, description="Which step this is; once answered, what was logged")
