"""What the persona is worth to an agent: the run beside runs of the same agents that were shown other people's.

    python -m benchmarks.leaderboard --agents A --likelihood --out runs/own
    python -m benchmarks.leaderboard --agents A --likelihood --context.persona shuffled --out runs/other
    python -m benchmarks.people runs/own --shuffled runs/other

More shuffled runs, each with another `--context.persona-seed`, make it harder to be picked by chance.
"""

from collections.abc import Mapping, Sequence

import msgspec

from benchmarks.people.rows import PersonaFigures
from benchmarks.report.evidence import Evidence
from replay_sessions.errors import BadConfig
from shop_env.metrics import paired_test
from shop_env.metrics.skill import persona_picks

__all__ = ["check_shuffled", "persona_figures"]

WORTH = ("exact_accuracy", "type_f1_macro", "nll")


def check_shuffled(matched: Evidence, shuffled: Sequence[Evidence]) -> None:
    """That the runs differ in whose persona was shown, and in nothing else.

    Raises:
        BadConfig: They differ in something else, or two of them show the same.
    """
    seeds = [_context(other).pop("persona_seed") for other in shuffled]
    if len(set(seeds)) < len(seeds):
        raise BadConfig(f"Two of the shuffled runs have the same persona seed ({seeds}): they show the same personas.")
    for other in shuffled:
        if other.personas_shown != "shuffled" or matched.personas_shown != "matched":
            raise BadConfig(
                f"'{matched.folder}' was shown {matched.personas_shown} personas and '{other.folder}' "
                f"{other.personas_shown} ones; matched and shuffled were expected."
            )
        differing = [name for name in _settings(matched) if _settings(matched)[name] != _settings(other)[name]]
        if differing:
            raise BadConfig(
                f"'{matched.folder}' and '{other.folder}' differ in more than the persona: {', '.join(differing)}."
            )


def persona_figures(matched: Evidence, shuffled: Sequence[Evidence], label: str) -> PersonaFigures | None:
    """How often an agent's sessions are likeliest as their own person, and matched less shuffled; None if not run."""
    others = [other.records[label] for other in shuffled if label in other.records]
    if not others:
        return None
    own, preset = matched.records[label], matched.counting.metrics
    return PersonaFigures(
        picks=persona_picks(own, others),
        worth={metric: paired_test(own, others[0], metric, preset=preset) for metric in WORTH},
    )


def _context(evidence: Evidence) -> dict[str, object]:
    return dict(evidence.provenance["config"]["context"])


def _settings(evidence: Evidence) -> Mapping[str, object]:
    """What must be the same, beside the agents."""
    shown = {name: value for name, value in _context(evidence).items() if name not in ("persona", "persona_seed")}
    return {
        "store": evidence.provenance["store"]["fingerprint"],
        "split": evidence.split,
        "context": shown,
        "metrics": evidence.counting.metrics,
        "extraction": evidence.extraction,
        "reward": msgspec.to_builtins(evidence.reward),
    }
