"""The record of one answered step: the logged action, the reply, and its reward.

    evaluate.py ─► record_step ─► StepRecord ─► step_table.py

A record holds the logged action and the reply, so metrics can be computed again without running the agent.
"""

import sys

import msgspec

from replay_sessions.foundation.records import Config
from replay_sessions.schema import Action, Click, Session, reply_action
from shop_env.replies import Extraction, MalformedReply, parse_reply
from shop_env.reward.matching import unlogged_fields
from shop_env.reward.score import RewardConfig, best_breakdown, score_reply

TOO_LONG = "prompt_too_long"  # the problem of a step without a reply: its prompt is too long for the agent's model


class StepRecord(Config, omit_defaults=True, gc=False):
    """One step and the agent's answer.

    Attributes:
        step_count: Number of steps of the session; the step is its last if `step_index` is this minus 1.
        logged: The logged action as a reply contains it; a field that the log lacks is "", and then no reply can be
            compared with it (`is_scorable`).
        logged_click_type: The log's kind of click; None if the log has none.
        logged_rationale: The log's rationale; None if the log has none.
        reply: The complete reply; None if the agent gave none.
        predicted: The action of the reply; None for a malformed reply or an error.
        predicted_rationale: The rationale of the reply.
        problem: The code of what is wrong with a malformed reply (shop_env.replies), or TOO_LONG.
        error: Why the agent gave no reply (time-out, server down); such a step is counted, not scored.
        reward: The reward of the reply without self-certainty; None if the step is an error.
        best_reward: The reward of the logged action.
        logged_probability: The agent's probability of the logged action, if it gives one (likelihood.py).
        logged_rank: The logged action's rank among all possible actions on the page, 1 for the most likely.
        terminate_probability: The agent's probability of terminate.
        page_cut: Whether the agent read only a window of the page, because it is too long for its model.
        pages_left_out: Number of earlier pages that the agent did not read, for the same reason.
        target_shown: Whether the logged action's element is in the part of the page that the agent read; None if it
            read all of every page, or does not report its windows.
    """

    session_id: str
    user_id: str
    step_index: int
    step_count: int
    logged: dict[str, str]
    logged_click_type: str | None = None
    logged_rationale: str | None = None
    reply: str | None = None
    predicted: dict[str, str] | None = None
    predicted_rationale: str | None = None
    problem: str | None = None
    error: str | None = None
    reward: float | None = None
    best_reward: float | None = None
    logged_probability: float | None = None
    logged_rank: int | None = None
    terminate_probability: float | None = None
    page_cut: bool = False
    pages_left_out: int = 0
    target_shown: bool | None = None

    @property
    def key(self) -> tuple[str, int]:
        """The session's id and the step's index."""
        return self.session_id, self.step_index

    @property
    def logged_action(self) -> Action:
        logged: Action = msgspec.convert(self.logged, Action)
        is_click = isinstance(logged, Click)
        return msgspec.structs.replace(logged, click_type=self.logged_click_type) if is_click else logged

    @property
    def is_scorable(self) -> bool:
        """True if the log has every field of its action; else only the type can be right or wrong."""
        return not unlogged_fields(self.logged)


def record_step(
    session: Session,
    step_index: int,
    reply: str | None,
    reward: RewardConfig,
    *,
    extraction: Extraction = "strict",
    error: str | None = None,
) -> StepRecord:
    """Parses and scores a reply to a step.

    Args:
        reply: The reply; None if the agent failed.
        extraction: How the reply is parsed (shop_env.replies).
        error: Why the agent failed; None if it did not.
    """
    step = session.steps[step_index]
    record = StepRecord(
        session_id=session.session_id,
        user_id=session.user_id,
        step_index=step_index,
        step_count=len(session.steps),
        logged=reply_action(step.action),
        logged_click_type=step.action.click_type if isinstance(step.action, Click) else None,
        logged_rationale=step.rationale,
        reply=reply,
        error=error,
    )
    parsed = None if reply is None else parse_reply(reply, extraction)
    readable = None if isinstance(parsed, MalformedReply) else parsed
    return msgspec.structs.replace(
        record,
        predicted=reply_action(readable.action) if readable else None,
        predicted_rationale=readable.rationale if readable else None,
        problem=parsed.problem if isinstance(parsed, MalformedReply) else None,
        reward=score_reply(parsed, record.logged_action, reward).total if parsed else None,
        best_reward=best_breakdown(record.logged_action, reward).total,
    )


def record_too_long(session: Session, step_index: int, reward: RewardConfig) -> StepRecord:
    """Builds the record of a step that is too long for the agent's model: a miss that earns 0."""
    record = record_step(session, step_index, None, reward)
    return msgspec.structs.replace(record, problem=TOO_LONG, reward=0.0)


def with_worst_likelihood(record: StepRecord) -> StepRecord:
    """Returns the record with the worst probabilities, so that giving none at uncertain steps is no advantage."""
    return msgspec.structs.replace(
        record,
        logged_probability=0.0,
        logged_rank=sys.maxsize,
        terminate_probability=float(record.logged["type"] != "terminate"),
    )
