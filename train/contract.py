"""Checks that what is trained is what is asked, on a user's own tokenizer and a sample of sessions.

    session ─┬─► tokenize_session ─► the tokens before each trained reply ─┐
             ├─► fit_prompt ─► the tokens of the agent's prompt            ├─► equal, or one line that shows where not
             └─► render_prompt ─► the chat template's own text             ┘

A template that depends on contents, such as one that rewrites some replies, is found here and nowhere else; so is a
tokenizer that hides a page's elements in one token.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from replay_sessions.elements import find_elements
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Click, Session, Step, Terminate, TypeAndSubmit, written_action
from shop_env.marks import mark_pages
from shop_env.observation import ContextConfig, observe_session
from shop_env.prompts import PromptConfig, render_prompt
from shop_env.replies import action_json
from train.chat_template import chat_messages, encode, render
from train.tokens import FittedPrompt, LongPages, fit_prompt, tokenize_session

MAX_STEPS = 4  # of a session that is checked
HALF_PAGE = 1000  # characters at each end of a page
UNLIMITED = 10**9
EXCERPT = 24  # characters before and behind the place where two texts part

EXAMPLE = Session(
    session_id="example",
    user_id="example",
    source="example",
    steps=(
        Step(page='<h1>Kettles</h1>\n<input name="search">', action=TypeAndSubmit(name="search", text="kettle")),
        Step(page='\n<a name="kettle_1">Kettle, 1.7 l</a>\n', action=Click(name="kettle_1"), rationale="I like it."),
        Step(page='<button name="add_to_cart">Add</button>', action=Terminate(), rationale="It is too small."),
    ),
)
"""A session for agents that have no store."""


def check_contract(
    tokenizer: Any,
    sessions: Iterable[Session],
    context: ContextConfig,
    prompt: PromptConfig,
    max_prompt_tokens: int = UNLIMITED,
    long_pages: LongPages = "shorten",
    personas: Mapping[str, str] | None = None,
) -> None:
    """Checks the first steps of sessions in a context, and with other scopes, a budget, cut pages and no rationales.

    Args:
        tokenizer: The tokenizer, with its chat template.
        sessions: The sessions.
        context: The context of a policy.
        prompt: The form of its prompts.
        max_prompt_tokens: The largest number of tokens of its prompts.
        long_pages: Its treatment of steps with a page that is too long.
        personas: The texts of the users' personas, as in `observe_session`.

    Raises:
        BadConfig: Two prompts of a step differ; the line shows where.
    """
    for session in sessions:
        session = _shorten(session)
        for variant in _variants(context, budget=sum(len(step.page) for step in session.steps) // 2 + 1):
            prompts = _check_steps(tokenizer, session, variant, prompt, max_prompt_tokens, long_pages, personas)
            if prompts and variant.grows_by_appending:
                (page,) = encode(tokenizer, [session.steps[0].page])
                limit = len(prompts[0].tokens) - len(page) // 2  # so small that pages are left out, and cut
                _check_steps(tokenizer, session, variant, prompt, limit, long_pages, personas)


def describe_pages(tokenizer: Any, sessions: Iterable[Session], marks: bool = False) -> str:
    """Returns a line on the tokens of a page, and on the names of elements that are tokens of their own.

    Args:
        tokenizer: The tokenizer.
        sessions: The sessions.
        marks: Whether the pages are shown with marks (`context.marks`).

    Raises:
        BadConfig: More than a tenth of the pages are one token each although they have elements. A few may be, such as
            a home page that is always the same.
    """
    pages: Counter[str] = Counter()
    for session in sessions:
        shown = [step.page for step in session.steps]
        pages.update(
            mark_pages(shown, [action_json(written_action(step.action)) for step in session.steps]) if marks else shown
        )
    names_by_page = {page: [element.name for element in find_elements(page)] for page in pages}
    lengths = {page: len(ids) for page, ids in zip(pages, encode(tokenizer, pages), strict=True)}
    hidden = [page for page, names in names_by_page.items() if names and lengths[page] == 1]
    if len(hidden) > len(pages) / 10:
        raise BadConfig(
            f"the tokenizer makes one token of {len(hidden)} of {len(pages)} pages, among them one with the element "
            f"'{names_by_page[hidden[0]][0]}', so no policy can read them. Build a tokenizer by model.path = None."
        )
    mean = sum(lengths[page] * count for page, count in pages.items()) / max(1, pages.total())
    names = dict.fromkeys(name for names in names_by_page.values() for name in names)
    whole = sum(len(ids) == 1 for ids in encode(tokenizer, names))
    page = "a page with marks" if marks else "a page"
    return f"{page} is {mean:.0f} tokens, {whole} of {len(names)} element names are tokens of their own"


def _shorten(session: Session) -> Session:
    """Returns the first steps of a session, without the middle of their pages, which would take time."""
    steps = [
        msgspec.structs.replace(step, page=step.page[:HALF_PAGE] + step.page[HALF_PAGE:][-HALF_PAGE:])
        for step in session.steps[:MAX_STEPS]
    ]
    return msgspec.structs.replace(session, steps=tuple(steps))


def _variants(context: ContextConfig, *, budget: int) -> Iterable[ContextConfig]:
    changes: tuple[dict[str, Any], ...] = ({}, {"scope": "whole_session"}, {"scope": "latest_step"}, {"budget": budget})
    variants = [msgspec.structs.replace(context, **change) for change in changes]
    return dict.fromkeys(
        msgspec.structs.replace(variant, rationales=rationales)
        for variant in variants
        for rationales in (context.rationales, not context.rationales)
    )


def _check_steps(
    tokenizer: Any,
    session: Session,
    context: ContextConfig,
    prompt: PromptConfig,
    limit: int,
    long_pages: LongPages,
    personas: Mapping[str, str] | None,
) -> list[FittedPrompt]:
    """Checks the steps of a session in one context; returns their prompts."""
    trunks = tokenize_session(tokenizer, session, context, prompt, limit, personas, long_pages, inferred=True)
    trained = {reply.step_index: trunk.tokens[: reply.start] for trunk in trunks for reply in trunk.replies}
    prompts = []
    for step, observation in enumerate(observe_session(session, context, personas)):
        fitted = fit_prompt(tokenizer, observation, prompt, limit, long_pages, context)
        if fitted is None:
            continue
        prompts.append(fitted)
        place = f"step {step + 1} of session '{session.session_id}' ({_describe(context)})"
        asked = tokenizer.decode(fitted.tokens)
        if (before_reply := trained.get(step, fitted.tokens)) != fitted.tokens:
            parting = _parting(tokenizer.decode(before_reply), asked)
            raise BadConfig(
                f"{place}: a reply is trained behind {parting[0]}, and the agent's prompt has {parting[1]}."
            )
        messages = chat_messages(tokenizer, render_prompt(fitted.observation, prompt))
        (expected,) = encode(tokenizer, [render(tokenizer, messages, generation_prompt=True)], special=True)
        rendered = tokenizer.decode(expected)
        if _comparable(tokenizer, asked) != _comparable(tokenizer, rendered):
            parting = _parting(asked, rendered)
            raise BadConfig(
                f"{place}: the prompt has {parting[0]}, and the chat template writes {parting[1]}: it rewrites "
                "messages by their contents; give the model another template."
            )
    return prompts


def _describe(context: ContextConfig) -> str:
    budget = "" if context.budget is None else f", budget {context.budget}"
    return f"{context.scope}{budget}, {'with' if context.rationales else 'without'} rationales"


def _comparable(tokenizer: Any, text: str) -> str:
    """Returns the text, without blanks if the tokenizer writes one before each text that is encoded alone."""
    (letter,) = encode(tokenizer, ["a"])
    return text if tokenizer.decode([*letter, *letter]) == "aa" else "".join(text.split())


def _parting(first: str, second: str) -> tuple[str, str]:
    """Returns excerpts of two texts around the place where they part.

    >>> _parting("user: tea, model:", "user: tea, <think>")
    ("'user: tea, model:'", "'user: tea, <think>'")
    """
    pairs = zip(first, second, strict=False)
    part = next((index for index, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))
    window = slice(max(0, part - EXCERPT), part + EXCERPT)
    return repr(first[window]), repr(second[window])
