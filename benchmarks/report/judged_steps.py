"""What each answer of each agent was: right, or wrong in which way, and what each term of the reward gave it.

    Evidence.records ─► judge ─► JudgedStep ─► figures.py (counted), session_data.py (shown)

The terms are scored again from the kept replies; they must add up to the reward that was recorded.
"""

import math
from typing import NamedTuple

import numpy as np

from benchmarks.report.evidence import Evidence
from replay_sessions.foundation.errors import BadConfig
from shop_env.metrics import StepRecord
from shop_env.metrics.step_table import StepTable
from shop_env.replies import parse_reply
from shop_env.reward.score import NOTHING, TERM_NAMES, RewardBreakdown, RewardConfig, best_breakdown, score_reply

# Code -> what an agent did, in the order of bars and lists: right first, then what it did instead.
OUTCOMES = {
    "right": "did as the shopper",
    "other_element": "clicked another element",
    "other_text": "typed something else",
    "left_early": "left too early",
    "stayed": "did not leave",
    "clicked": "clicked where the shopper typed",
    "typed": "typed where the shopper clicked",
    "unreadable": "wrote nothing readable",
    "no_reply": "gave no reply",
    "unknown": "cannot be judged: the log lacks the target",
}
RIGHT = "right"


class JudgedStep(NamedTuple):
    """One answer.

    Attributes:
        outcome: A code of OUTCOMES.
        terms: What each term gave, those that gave nothing left out; None where there is no reply.
    """

    record: StepRecord
    outcome: str
    terms: dict[str, float] | None


def judge(evidence: Evidence, label: str) -> list[JudgedStep]:
    """Every step of an agent, in the order of its records.

    Raises:
        BadConfig: A kept reply does not earn today what was recorded.
    """
    records = evidence.records[label]
    # Whether the metrics' choices count an answer as exact, not a number where nobody can say.
    exact = iter(StepTable(records, evidence.config.metrics).exact)
    judged = []
    for record in records:
        terms = None if record.reply is None or record.error else _terms(record, evidence)
        outcome = "no_reply" if record.error is not None else _outcome(record, next(exact))
        judged.append(JudgedStep(record, outcome, terms))
    return judged


def terms_of(breakdown: RewardBreakdown) -> dict[str, float]:
    """The terms that gave something."""
    return {name: value for name in TERM_NAMES if (value := getattr(breakdown, name))}


def best_terms(record: StepRecord, reward: RewardConfig) -> dict[str, float]:
    """What repeating the log would have earned at a step."""
    return terms_of(best_breakdown(record.logged_action, reward))


def _outcome(record: StepRecord, exact: float) -> str:
    if exact == 1:
        return RIGHT
    if record.predicted is None:
        return "unreadable"
    match record.logged["type"], record.predicted["type"]:
        case logged, predicted if logged == predicted and np.isnan(exact):
            return "unknown"
        case "click", "click":
            return "other_element"
        case logged, predicted if logged == predicted:
            return "other_text"
        case _, "terminate":
            return "left_early"
        case "terminate", _:
            return "stayed"
        case _, "click":
            return "clicked"
        case _:
            return "typed"


def _terms(record: StepRecord, evidence: Evidence) -> dict[str, float]:
    assert record.reply is not None
    parsed = parse_reply(record.reply, evidence.config.extraction)
    breakdown = score_reply(parsed, record.logged_action, evidence.reward)
    if record.reward is None or not math.isclose(breakdown.total, record.reward, rel_tol=1e-9, abs_tol=1e-9):
        raise BadConfig(
            f"the reply to step {record.step_index} of session {record.session_id!r} earned {record.reward} when "
            f"'{evidence.folder}' was made, and earns {breakdown.total:g} today: make the report with the code of "
            f"commit {evidence.provenance.get('commit')}"
        )
    return terms_of(breakdown) if breakdown != NOTHING else {}
