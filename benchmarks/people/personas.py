"""What the persona is worth to an agent: the run beside runs of the same agents that were shown other people's.

    python -m benchmarks.leaderboard --agents A --likelihood --out runs/own
    python -m benchmarks.leaderboard --agents A --likelihood --context.persona shuffled --out runs/other
    python -m benchmarks.people runs/own --shuffled runs/other

More shuffled runs, each with another `--context.persona-seed`, make it harder to be picked by chance.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec

from benchmarks.people.rows import PersonaFigures
from benchmarks.report.evidence import Evidence
from replay_sessions.foundation.errors import BadConfig
from shop_env.evaluation.comparing import adjusted, compare_records
from shop_env.metrics.people.persona_use import persona_picks

WORTH = ("exact_accuracy", "type_f1_macro", "nll")


def check_shuffled(matched: Evidence, shuffled: Sequence[Evidence]) -> None:
    """That the runs differ in whose persona was shown, and in nothing else.

    Raises:
        BadConfig: They differ in something else, or two of them show the same.
    """
    seeds = [other.config.context.persona_seed for other in shuffled]
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
    own, preset = matched.records[label], matched.config.metrics
    records = {"own": own, "another's": others[0]}
    compared = [compare_records(records, "own", "another's", metric, preset=preset) for metric in WORTH]
    return PersonaFigures(
        picks=persona_picks(own, others),
        worth={test.metric: test for test in adjusted(compared) if not math.isnan(test.difference)},
    )


def _settings(evidence: Evidence) -> Mapping[str, object]:
    """What must be the same, beside the agents."""
    config = evidence.config
    return {
        "store": evidence.provenance["store"]["fingerprint"],
        "split": config.split,
        "context": msgspec.structs.replace(config.context, persona="matched", persona_seed=0),
        "metrics": config.metrics,
        "extraction": config.extraction,
        "reward": config.reward_config,
    }
