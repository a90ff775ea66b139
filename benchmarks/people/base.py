"""What agents are measured from: sessions whose kinds of action are drawn one by one."""

from collections.abc import Mapping, Sequence

from replay_sessions.schema import Click, Session, reply_action
from replay_sessions.store import SessionStore
from shop_env.click_types import CLICK_TYPES, click_type_of
from shop_env.metrics import ActionTrace
from shop_env.metrics.people import independent_traces
from shop_env.metrics.step_table import FINE_TYPES


def uniform_traces(human: Mapping[str, Sequence[ActionTrace]]) -> list[ActionTrace]:
    """Sessions as long as people's, every kind of action as likely as any other."""
    return independent_traces(FINE_TYPES, [len(trace.kinds) for own in human.values() for trace in own])


def train_marginals(store: SessionStore, sessions: int) -> list[ActionTrace]:
    """Sessions as long as those of the train split, each kind as likely as there; the given first actions left out."""
    of_train = [store.session(session_id) for session_id in store.session_ids("train")[:sessions]]
    kinds = [_kinds(session) for session in of_train if len(session.steps) > 1]
    if not kinds:
        return []
    return independent_traces([kind for own in kinds for kind in own], [len(own) for own in kinds])


def _kinds(session: Session) -> list[str]:
    kinds = []
    for step in session.steps[1:]:
        action = step.action
        if not isinstance(action, Click):
            kinds.append(reply_action(action)["type"])
        else:
            kinds.append(action.click_type if action.click_type in CLICK_TYPES else click_type_of(action.name))
    return kinds
