"""Before the questions: consent, which is recorded, and two practice steps, which are no answers and are not recorded.

DIR/people/NAME.consent.json    the words that the person agreed to, when, and how many practice steps are done

A person who does not agree leaves nothing in the folder. Other words than those agreed to are asked about anew.
"""

import datetime
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from agents.human.recording import Recording
from agents.human.sitting import AlreadyAnswered, Prediction, check_prediction, describe
from replay_sessions.elements import find_elements
from replay_sessions.foundation.durable_files import replace_json
from replay_sessions.foundation.errors import BadConfig, BadSession
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Action, Click, Persona, Session, Step, TypeAndSubmit, reply_action
from shop_env.observation import ContextConfig, ObservedSession

CONSENT = """\
You will see pages of an online shop as shoppers saw them. On each page, predict what the shopper does next: click \
something, type into a field, or leave without buying. Two practice steps come first; they are not recorded.

What is recorded: your predictions, your reasons if you give any, and the seconds that each takes, under the name that \
stands above. They stay in a folder on this computer.

Taking part is voluntary. You may stop at any time: close the window. What you have submitted stays recorded, and \
whoever asked you to take part can delete it.

Do you agree to take part?"""

_PAGES = (
    '<div name="menu"><a name="menu.kitchen">Kitchen</a> <a name="menu.garden">Garden</a></div>'
    '<input name="search" type="text" placeholder="Search the shop"/><h1>Welcome</h1><p>New: garden chairs</p>',
    '<input name="search" type="text" value="red kettle"/><h1>Results for “red kettle”</h1><ul>'
    '<li><a name="results.red_enamel_kettle.title">Red enamel kettle, 1.5 l</a> $24 '
    '<button name="results.red_enamel_kettle.add_to_cart">Add to cart</button></li>'
    '<li><a name="results.black_steel_kettle.title">Black steel kettle, 1.7 l</a> $29 '
    '<button name="results.black_steel_kettle.add_to_cart">Add to cart</button></li>'
    '<li><a name="results.red_glass_kettle.title">Red glass kettle, 1.7 l</a> $58 '
    '<button name="results.red_glass_kettle.add_to_cart">Add to cart</button></li></ul>',
)
_ACTIONS: tuple[Action, ...] = (
    TypeAndSubmit(name="search", text="red kettle"),
    Click(name="results.red_enamel_kettle.title"),
)
_REASONS = (
    "The goal names a product, and nothing on this page leads to it faster than the search field.",
    "It is the one red kettle that costs at most 30 dollars, and this shopper looks at a product before buying it. "
    "Practice is over: from the next step on your predictions are recorded, and what you submit cannot be taken back.",
)
_PRACTICE = ObservedSession(
    Session(
        session_id="practice",
        user_id="practice",
        steps=tuple(Step(page=page, action=action) for page, action in zip(_PAGES, _ACTIONS, strict=True)),
        source="practice",
        goal="a red kettle for at most 30 dollars",
        persona=Persona(text="Compares prices and reads about a product before buying it."),
    ),
    ContextConfig(scope="latest_step"),
)


def read_consent(file: Path | None) -> str:
    """The words of a text file; None: the project's own.

    Raises:
        BadConfig: It cannot be read.
    """
    try:
        return CONSENT if file is None else file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"--consent {file} cannot be read ({error}): give a text file in UTF-8") from error


class Consent(Config):
    """NAME.consent.json."""

    text: str
    time: str
    practiced: int = 0


class Introduction:
    """What one person goes through before the first question; safe to call from several threads.

    Args:
        text: What the person is to agree to.
        begin: Called once the person has agreed, now or earlier.

    Attributes:
        is_refused: The person did not agree.

    Raises:
        BadSession: The recorded consent cannot be read.
    """

    def __init__(self, recording: Recording, person: str, text: str, begin: Callable[[], None]) -> None:
        self._path = recording.path_of(person, ".consent.json")
        self._person, self._text, self._begin = person, text, begin
        self._lock = threading.Lock()
        self._consent: Consent | None = None
        self.is_refused = False
        try:
            recorded = msgspec.json.decode(self._path.read_bytes(), type=Consent) if self._path.exists() else None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadSession(f"The consent in '{self._path}' cannot be read ({error}): move the file away") from error
        if recorded is not None and recorded.text == text:
            self._consent = recorded
            begin()

    @property
    def is_done(self) -> bool:
        return self._consent is not None and self._consent.practiced == len(_PAGES)

    def view(self) -> dict[str, Any]:
        """What the person reads, or the next practice step, as the page shows it."""
        if self._consent is None:
            return {"consent": self._text, "person": self._person}
        index = self._consent.practiced
        observation = _PRACTICE.at(index)
        return {
            "person": self._person,
            "practice": index + 1,
            "practice_steps": len(_PAGES),
            "number": index - len(_PAGES),  # no step of a sitting has such a number
            **describe(observation, find_elements(observation["page"])),
        }

    def consent(self, agrees: bool) -> dict[str, Any]:
        """Records that the person agrees; nothing is recorded of one who does not."""
        with self._lock:
            if agrees and self._consent is None:
                self._record(
                    Consent(text=self._text, time=datetime.datetime.now(datetime.UTC).isoformat("T", "seconds"))
                )
                self._begin()
            self.is_refused = not agrees
            return {"agrees": agrees}

    def predict(self, prediction: Prediction) -> dict[str, Any]:
        """What the shopper does at a practice step, and why; the prediction is not recorded.

        Raises:
            BadPrediction: Nobody could have made it on this page.
            AlreadyAnswered: The step is not next.
        """
        with self._lock:
            index = prediction.number + len(_PAGES)
            if self._consent is None or index != self._consent.practiced:
                raise AlreadyAnswered("This step is not next: load the page again.")
            check_prediction(prediction, find_elements(_PAGES[index]))
            predicted, logged = reply_action(prediction.action), reply_action(_ACTIONS[index])
            self._record(msgspec.structs.replace(self._consent, practiced=index + 1))
            is_same = all(predicted.get(key) == logged[key] for key in ("type", "name"))  # any words are right
            return {"practice": index + 1, "answer": logged, "is_exact": is_same, "why": _REASONS[index]}

    def _record(self, consent: Consent) -> None:
        replace_json(self._path, consent)
        self._consent = consent
