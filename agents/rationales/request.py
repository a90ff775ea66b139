"""The options of the command, the request for one step's rationale, and how that is parsed from the answer.

The model gets the page, the actions before, and the action there: never a later page or action, nor the persona and the
goal (Shop-R1, section 3: rationales are made "without leveraging any user profile information"). The instructions are
our own; the papers' can be used from a file. Nothing here needs the client of a server.
"""

from pathlib import Path
from typing import Any, Literal, NamedTuple

from agents.prompting.answers import Answer
from agents.prompting.formats import rationale_format, reply_format
from agents.prompting.options import ServerOptions
from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.schema import Action, Session, reply_action
from shop_env.evaluation.scored_steps import AnySplit
from shop_env.observation import shorten_page
from shop_env.prompts import INSTRUCTIONS as TASK
from shop_env.replies import Reply, Unreadable, action_json, object_inside, parse_reply
from shop_env.reward.similarity import exact_match

INSTRUCTIONS = """\
A person is shopping online. You are shown a page as simplified HTML, in which whatever can be clicked or typed into \
carries a `name`, what the person did before, and what the person then did on this page:

- click: the person clicked the element of that name.
- type_and_submit: the person typed the text into the input of that name and pressed enter.
- terminate: the person closed the window without buying, for nothing there was worth going on for.

Say why, as the person would have thought it at that moment, just before doing it: one short sentence in the first \
person, about the products and the wish behind the act. Do not mention names of elements, HTML or that you are shown \
anything, and do not tell what the page does not show.

Reply with one JSON object and nothing around it: {"rationale": "<the sentence>"}"""

Problem = Literal["refused", "cut", "malformed", "not reconstructed"]
_REFUSALS = ("i'm sorry, but", "i am sorry, but", "i cannot assist", "i can't assist", "i can't help with", "as an ai")


class RationaleOptions(ServerOptions):
    """Writes the rationales that a store lacks.

    Attributes:
        store: `demo` or the path of a session store.
        out: The folder of the new version.
        split: The split whose rationales are written; the others are copied as they are.
        overwrite: Replace the store at OUT.
        partial: Write the store also where steps have no answer.
        prompt: A text file (UTF-8) with instructions in place of the built-in ones.
        page_characters: The length of the window of a page around the action.
        schema: Guided decoding (response_format json_schema).
        reconstruct: At most so many rationales are drawn for a step, and the first from which a model that does not see
            the action reconstructs it is taken; where there is none, the step stays without and is counted. None: the
            first rationale is taken as it is.
        reconstructed_by: The model that reconstructs, on the same server; None: the one that writes.
        seed: Seeds the model's draws; greedy requests draw nothing.
        cache: The file of answers and of their cost; None: OUT.rationales.sqlite.
        request: Further fields of each request, as JSON, such as '{"top_p": 0.9}'.
    """

    store: str
    out: Path
    split: AnySplit = "all"
    overwrite: bool = False
    partial: bool = False
    prompt: Path | None = None
    page_characters: int = 30_000
    schema: bool = False
    reconstruct: int | None = None
    reconstructed_by: str | None = None
    seed: int = 0
    cache: str | None = None
    request: str = "{}"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, page_characters=self.page_characters, reconstruct=self.reconstruct)
        if self.reconstruct is not None and self.reconstruct > 1 and not self.draws:
            raise BadConfig(
                f"--reconstruct {self.reconstruct} draws several rationales, but at --temperature 0 all are the same; "
                "give a temperature above 0."
            )


class NoRationale(NamedTuple):
    """An answer without a rationale: what the model did instead."""

    problem: Problem
    text: str


def rationale_request(session: Session, index: int, instructions: str, options: RationaleOptions) -> dict[str, Any]:
    """The messages about one step of a session, and the format with guided decoding."""
    content = _content(session, index, options)
    messages = [{"role": "system", "content": instructions}, {"role": "user", "content": content}]
    return {"messages": messages, **({"response_format": rationale_format()} if options.schema else {})}


def _content(session: Session, index: int, options: RationaleOptions) -> str:
    actions = [action_json(reply_action(step.action)) for step in session.steps[: index + 1]]
    page = shorten_page(session.steps[index].page, options.page_characters, len, actions[-1])
    before = "\n".join(actions[:-1]) or "(nothing)"
    return f"## Before\n{before}\n\n## Page\n{page}\n\n## What the person did\n{actions[-1]}"


def reconstruction_request(session: Session, index: int, rationale: str, options: RationaleOptions) -> dict[str, Any]:
    """The messages that ask for the action behind a rationale, on the same page and after the same actions."""
    before, _, _ = _content(session, index, options).rpartition("\n\n## What the person did\n")
    content = f"{before}\n\n## What the person thinks\n{rationale}\n\nReply with this as the rationale."
    messages = [{"role": "system", "content": TASK}, {"role": "user", "content": content}]
    own = {} if options.reconstructed_by is None else {"model": options.reconstructed_by}
    return {"messages": messages, **own, **({"response_format": reply_format()} if options.schema else {})}


def is_reconstruction(answer: Answer, logged: Action) -> bool:
    """Whether the answer is the logged action, all fields included."""
    reply = parse_reply(answer.text, "lenient")
    return isinstance(reply, Reply) and exact_match(reply.action, logged)


def rationale_in(answer: Answer) -> str | NoRationale:
    """The rationale on one line, or what the model did instead of giving one.

    >>> rationale_in(Answer(text='{"rationale": "I need a hat."}', ended="stop"))
    'I need a hat.'
    """
    if answer.refused:
        return NoRationale("refused", answer.text)
    try:
        rationale = object_inside(answer.text)[0].get("rationale")
    except Unreadable:
        rationale = None
    text = " ".join(rationale.split()) if isinstance(rationale, str) else ""
    if (text or answer.text).strip().lower().startswith(_REFUSALS):
        return NoRationale("refused", answer.text)
    if text:
        return text
    return NoRationale("cut" if answer.ended == "length" else "malformed", answer.text)
