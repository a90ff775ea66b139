"""One person's steps in their order: the view of each, and a prediction that is recorded before the next view.

    Recording ─► next unanswered step ─► view (JSON for the page) ─► Prediction ─► reply, on the disk ─► next step

The logged action of a step, and how many steps its session has left, reach the browser only after the prediction: the
views are built from the observation alone, and only the next step can be requested. Afterwards the logged action is in
the history of the next step, as it is for every agent; so an answer cannot be taken back.
"""

import functools
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from agents.human.recording import Recording
from replay_sessions.elements import Element, find_elements
from replay_sessions.foundation.errors import BadSession, ShopR1Error
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Action, Terminate, TypeAndSubmit, reply_action
from replay_sessions.simplify.page_view import page_document
from replay_sessions.store import SessionStore
from shop_env.evaluation.reply_cache import ReplyCache
from shop_env.evaluation.scored_steps import ScoredStep, steps_at
from shop_env.observation import Observation
from shop_env.replies import Reply, format_reply, parse_reply

_LONGEST_TEXT = 2000


class Prediction(Config):
    """What the page sends: the step by its number in this sitting, and what the shopper does there."""

    number: int
    action: Action
    rationale: str = ""


class BadPrediction(ShopR1Error):
    """A prediction that is impossible on the page."""


class AlreadyAnswered(ShopR1Error):
    """A second prediction for a step, or one for a step that is not next."""


class Sitting:
    """A person's way through the steps of a recording; safe to call from several threads.

    Args:
        replies: The person's (Recording.lock_replies), which this adds to.
    """

    def __init__(self, recording: Recording, store: SessionStore, person: str, replies: ReplyCache) -> None:
        self._recording = recording
        self._store = store
        self._person = person
        self._replies = replies
        self._lock = threading.RLock()
        self._unanswered = [number for number, step in enumerate(recording.steps) if replies.reply(step.key) is None]
        self._sessions = list(dict.fromkeys(step.session_id for step in recording.steps))
        keys = [recording.steps[number].key for number in self._unanswered]
        questions = recording.questions
        self._steps: Iterator[ScoredStep] = steps_at(store, questions.split, keys, questions.context)
        self._now: ScoredStep | None = None  # read when it is needed
        self._elements: Sequence[Element] = ()
        self._shown_at = 0.0

    @property
    def answered(self) -> int:
        """How many steps have an answer."""
        return len(self._recording.steps) - len(self._unanswered)

    @property
    def is_done(self) -> bool:
        return not self._unanswered

    def view(self) -> dict[str, Any]:
        """The step that is next, as the page shows it."""
        with self._lock:
            common = {"person": self._person, "answered": self.answered, "sessions": len(self._sessions)}
            now = self._next()
            if now is None:
                return {"done": True, **common, **self._result}
            observation = now.observation
            return {
                **common,
                "number": self._unanswered[0],
                "session": self._sessions.index(now.session.session_id) + 1,
                "step": observation["step"] + 1,
                "show_answer": self._recording.questions.show_answer,
                **describe(observation, self._elements),
            }

    @functools.cached_property
    def _result(self) -> dict[str, Any]:
        """How many predictions are the logged actions, and how many of their types, once all are made."""
        recording = self._recording
        keys = [step.key for step in recording.steps]
        exact = same_type = 0
        for step in steps_at(self._store, recording.questions.split, keys, recording.questions.context):
            parsed = parse_reply(self._replies.reply(step.key) or "")
            assert isinstance(parsed, Reply)  # format_reply wrote it
            predicted, logged = reply_action(parsed.action), reply_action(step.logged)
            exact += predicted == logged
            same_type += predicted["type"] == logged["type"]
        return {"exact": exact, "same_type": same_type, "minutes": round(self._replies.seconds(keys) / 60, 1)}

    def past_page(self, index: int) -> str | None:
        """A page in the history of the next step, with what the shopper did on it marked; None: there is none."""
        with self._lock:
            now = self._next()
            history = () if now is None else now.observation["history"]
            if not 0 <= index < len(history) or not history[index]["page"]:
                return None
            action = msgspec.json.decode(history[index]["action"])
            marks = {action["name"]: "logged"} if action.get("name") else {}
            return page_document(history[index]["page"], marks=marks)

    def predict(self, prediction: Prediction) -> dict[str, Any]:
        """Records a prediction for the step that is next; once this returns, it is on the disk.

        Returns:
            What may be shown now; with `show_answer` the logged action too.

        Raises:
            BadPrediction: Nobody could have made it on this page.
            AlreadyAnswered: The step has another answer, or is not next. (The same answer again, as when an
                acknowledgement was lost, is none.)
            BadConfig: It could not be written, and is not recorded.
        """
        with self._lock:
            reply = format_reply(prediction.rationale, prediction.action)
            if self.is_done or prediction.number != self._unanswered[0]:
                steps, number = self._recording.steps, prediction.number
                if not 0 <= number < len(steps) or self._replies.reply(steps[number].key) != reply:
                    raise AlreadyAnswered("This step has been answered, and an answer cannot be taken back.")
                return {"recorded": prediction.number}
            now = self._next()
            assert now is not None  # there are unanswered steps
            check_prediction(prediction, self._elements)
            self._replies.add(now.key, reply, seconds=time.monotonic() - self._shown_at)
            self._unanswered.pop(0)
            self._now = None
            answer: dict[str, Any] = {"recorded": prediction.number}
            if self._recording.questions.show_answer:
                logged = reply_action(now.logged)
                answer |= {"answer": logged, "is_exact": logged == reply_action(prediction.action)}
            return answer

    def _next(self) -> ScoredStep | None:
        """The step that is next; None when all are answered."""
        if self._now is None and self._unanswered:
            now = next(self._steps, None)
            if now is None or now.key != self._recording.steps[self._unanswered[0]].key:
                raise BadSession("The steps of the store are not those that were recorded: start the program again")
            self._now, self._elements = now, find_elements(now.observation["page"])
            self._shown_at = time.monotonic()
        return self._now


def describe(observation: Observation, elements: Sequence[Element]) -> dict[str, Any]:
    """What an agent sees of a step, as the page shows it."""
    return {
        "persona": observation["persona"],
        "goal": observation["goal"],
        "page": page_document(observation["page"]),
        "elements": [{"name": element.name, "text": element.text, "accepts": element.accepts} for element in elements],
        "history": [
            {
                "action": msgspec.json.decode(step["action"]),
                "rationale": step["rationale"],
                "has_page": bool(step["page"]),
            }
            for step in observation["history"]
        ],
    }


def check_prediction(prediction: Prediction, elements: Sequence[Element]) -> None:
    """Raises BadPrediction for what nobody could do on a page with these elements."""
    action = prediction.action
    if len(prediction.rationale) > _LONGEST_TEXT:
        raise BadPrediction(f"The reason is longer than {_LONGEST_TEXT:,} characters.")
    if isinstance(action, Terminate):
        return
    accepts = {element.name: element.accepts for element in elements}.get(action.name)
    if accepts is None:
        raise BadPrediction(f"There is no element {action.name!r} on this page.")
    if isinstance(action, TypeAndSubmit):
        if accepts != "type":
            raise BadPrediction(f"Nothing can be typed into {action.name!r}.")
        if not action.text.strip() or len(action.text) > _LONGEST_TEXT:
            raise BadPrediction(f"Type 1 to {_LONGEST_TEXT:,} characters.")
