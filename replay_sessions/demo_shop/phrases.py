"""The demo shops' data: what pages and shoppers say (phrases.toml), and the policy of the small shop (policy.toml)."""

import tomllib
from importlib.resources import files
from itertools import product

from replay_sessions.schema import Persona

PHRASES, POLICY = (
    tomllib.loads((files(__package__) / f"{name}.toml").read_text(encoding="utf-8")) for name in ("phrases", "policy")
)


def personas(shop: str) -> tuple[Persona, ...]:
    """A kind of shopper for each combination of traits; the sentence of its persona is what a model reads."""
    traits: dict[str, dict[str, str]] = PHRASES[shop]["traits"]
    return tuple(
        Persona(
            text="This shopper {}, {} and {}.".format(*map(dict.__getitem__, traits.values(), values)),
            traits=dict(zip(traits, values, strict=True)),
        )
        for values in product(*traits.values())
    )


def reason_for(shop: str, name: str) -> str:
    """Why a shopper clicks on an element of that name."""
    reasons: dict[str, str] = PHRASES[shop]["reasons"]
    return next((reason for start, reason in reasons.items() if name.startswith(start)), "I look around.")
