"""What people.json holds: the people's own figures, and each agent's beside them."""

import msgspec

from shop_env.evaluation.comparing import Comparison
from shop_env.metrics.people import PeopleFigures, ScaledDistance, StylisedFacts
from shop_env.metrics.people.persona_use import PersonaPicks
from shop_env.metrics.skill import Calibration


class SkillFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent's probabilities know; see shop_env/metrics/skill.py."""

    bits_saved: float
    sharpness: float
    calibration: Calibration
    hits: dict[str, float | None]
    will_buy: list[float | None]


class PersonaFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the persona is worth; see benchmarks/people/personas.py.

    Attributes:
        picks: None without probabilities.
        worth: Matched less shuffled, by metric.
    """

    picks: PersonaPicks | None
    worth: dict[str, Comparison]


class PeopleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent.

    Attributes:
        distances: By base (`uniform`, `train`) and what is compared.
        clicked_rank: The distance of ranks of clicked products, its base a product of the page at random.
        facts, rank_curve: Of what it answered.
        skill: None where it gives no probabilities.
        persona: None where no shuffled run of it was given.
    """

    label: str
    people: PeopleFigures
    two_sample_auc: float | None
    distances: dict[str, dict[str, ScaledDistance | None]]
    clicked_rank: ScaledDistance | None
    facts: StylisedFacts
    rank_curve: list[float]
    skill: SkillFigures | None = None
    persona: PersonaFigures | None = None


class LogRow(msgspec.Struct, frozen=True, kw_only=True):
    """The people themselves, on the same steps."""

    sessions: int
    users: int
    facts: StylisedFacts
    rank_curve: list[float]
