"""Few-shot: sessions of the train split, drawn under a seed, as text behind the instructions.

    TrainView ─► drawn sessions ─► each page as a window around what was done on it ─► the reply, or what was done

Sessions whose every step has a rationale are drawn first, since they show whole replies; a step without one is told in
words, as in the history. Nobody's persona is shown: the persona arm of the context is about the shopper asked about.
"""

import random
from collections.abc import Iterable

from agents.prompting.messages import told
from agents.prompting.options import History
from agents.train_view import TrainView
from replay_sessions.errors import BadConfig
from replay_sessions.schema import Session, Step, reply_action
from shop_env.budget import shorten_page
from shop_env.replies import action_json, reply_json

__all__ = ["examples_text"]

_HEAD = "## Examples\nWhat other people did, page by page; of each page only a part is shown."


def examples_text(store: TrainView, *, shots: int, seed: int, page_characters: int, shown: History) -> str:
    """The examples as text; "" for none.

    Args:
        shown: How steps are shown (options.History); `told` also where the model is to choose by number.

    Raises:
        BadConfig: The train split has fewer sessions.
    """
    if shots == 0:
        return ""
    drawn = _draw(store, shots, seed)
    parts = [_session_text(number, one, page_characters, shown) for number, one in enumerate(drawn, start=1)]
    return "\n\n".join([_HEAD, *parts])


def _draw(store: TrainView, shots: int, seed: int) -> list[Session]:
    """Reads as many sessions as it takes: in a drawn order, at least the first `shots`, until so many are complete."""
    ids = store.session_ids()
    if shots > len(ids):
        raise BadConfig(f"shots is {shots}, but the train split of store '{store.name}' has {len(ids)} sessions")
    random.Random(seed).shuffle(ids)
    read = [store.session(session_id) for session_id in ids[: max(shots, _MOST_READ)]]
    complete = [session for session in read if all(step.rationale for step in session.steps)]
    return [*complete, *(session for session in read if session not in complete)][:shots]


_MOST_READ = 50  # a log without any rationale need not be read whole to find that out


def _session_text(number: int, session: Session, page_characters: int, shown: History) -> str:
    head = f"### Person {number}" + (f"\nGoal: {session.goal}" if session.goal else "")
    return "\n\n".join([head, *_steps(session.steps, page_characters, shown)])


def _steps(steps: Iterable[Step], page_characters: int, shown: History) -> Iterable[str]:
    for step in steps:
        action = action_json(reply_action(step.action))
        yield f"#### Page\n{shorten_page(step.page, page_characters, len, action)}"
        if shown == "as_trained" or (shown == "whole_replies" and step.rationale):
            yield f"#### Reply\n{reply_json(step.rationale or '', action)}"
        else:
            yield told(action, step.rationale or "")
