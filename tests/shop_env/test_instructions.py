"""Our prompts say each point of the papers' instructions, and nothing else.

Sources: Shop-R1, appendix A; Customer-R1, appendix B. `None` marks what ours has beyond them (docs/paper_tables.md).
"""

import re

import pytest

from replay_sessions.schema import Typing
from shop_env.observation import Observation
from shop_env.prompts import PromptConfig, Style, render_prompt

Points = dict[str | None, str]
TYPE_AND_SUBMIT = '{"type": "type_and_submit", "name": "<name of the input>", "text": "<what is typed>"}'
INPUT = '{"type": "input", "name": "<name of the input>", "text": "<what is typed>"}'
ACTIONS: Points = {
    "actions are JSON objects of the types that follow": "An action is a JSON object of one of these types.",
    "click: a button or clickable element": "- `click` clicks a button, or whatever else can be clicked, by its name:",
    "click's JSON": '{"type": "click", "name": "<name of the element>"}',
    "terminate: unsatisfied, wants to buy nothing, closes the window": (
        "- `terminate` is for somebody who is not satisfied with what was found and will not buy: the window is closed,"
        " and the visit is over:"
    ),
    "terminate's JSON": '{"type": "terminate"}',
}
SHOP_R1: Points = {
    "you are a user of an online shop, searching for a product to purchase": (
        "Put yourself in the place of a person on the website of an online shop who is looking for something to buy."
    ),
    "past actions and the context are provided": (
        "You are given what this person did so far and what the browser shows."
    ),
    "predict the next action and the rationale, from previous actions and context": (
        "From both, work out what the person does next, and why."
    ),
    **ACTIONS,
    "type_and_submit: type a text and press enter": (
        "- `type_and_submit` types a text into an input and submits it at once, as if enter were pressed:"
    ),
    "type_and_submit's JSON": TYPE_AND_SUBMIT,
    "the context is a simplified page": "A page is shown as simplified HTML.",
    "some elements have a unique name, by which to click or type": (
        "Some elements that can be used have an attribute `name`, which no other element of the page has: an action"
        " says by it which element is clicked or typed into."
    ),
    "the rationale: first person, what you think as you act, short, explains why": (
        "What goes through your mind as you act, in the first person: a single short sentence that gives the reason for"
        " the action."
    ),
    "strict JSON": "Keep strictly to this form of JSON:",
    "its keys": '{"rationale": "<the sentence>", "action": {"type": "<type>", ...}}',
    "a single JSON object": "Write this one JSON object.",
    "nothing else": "Nothing may stand before or after it.",
}
CUSTOMER_R1: Points = {
    **ACTIONS,
    "input: type a text": "- `input` types a text into an input, given by its name:",
    "input's JSON": INPUT,
    "the rationale: why the user acts": "It says why the customer does something.",
    "some rationales are provided": "Of some of the past actions you are told.",
    "the context is the page's HTML": "You see the HTML of the shop's page on which the customer is.",
    "some elements have a unique name": (
        "Some elements that can be used have an attribute `name`, which no other element of the page has: an action"
        " says by it which element is clicked or typed into."
    ),
    "the persona: demographics, personality, preferences": (
        "This describes the customer: age and circumstances, character, and taste in shopping."
    ),
    "first identify what of it is relevant here": (
        "Find out first what in it may matter for what the customer is looking at."
    ),
    "consider that only where it aligns with the journey": (
        "Let that count only where it agrees with the course of the visit so far by itself."
    ),
    "do not rely on it": "Do not lean on it.",
    "predict rationale and action": "Predict the rationale and the next action that belongs to it.",
    "strict JSON": "Keep strictly to this form of JSON:",
    "its keys": '{"rationale": "<the reason>", "action": {"type": "<type>", ...}}',
    "a single JSON object": "Write this one JSON object.",
    "nothing else": "Nothing may stand before or after it.",
}
OUR_FORM: Points = {None: "Where the reason for a past action is not known, its rationale restates the action."}
RATIONALES = ("the rationale: why the user acts", "some rationales are provided", "predict rationale and action")
WITHOUT_RATIONALES: Points = {key: text for key, text in CUSTOMER_R1.items() if key not in RATIONALES} | {
    "predict the action": "Predict the next action alone.",
    "strict JSON": "Keep strictly to this form of JSON, with an empty rationale:",
    "its keys": '{"rationale": "", "action": {"type": "<type>", ...}}',
}
PERSONA = "Ada is 36 and counts her money."
HEADINGS = re.compile(r"^## (?:Actions|Pages|Rationale|Persona|Reply)$", re.MULTILINE)


def instructions(style: Style, persona: str = "", *, rationales: bool = True, typing: Typing | None = None) -> str:
    observation: Observation = {"page": "", "history": (), "persona": persona, "goal": "", "step": 1}
    system, _ = render_prompt(observation, PromptConfig(style=style, rationales=rationales, typing=typing))
    return system["content"]


def rest_of(text: str, points: Points) -> str:
    """What remains of a prompt without its headings and the sentences that are listed."""
    for sentence in sorted(points.values(), key=len, reverse=True):
        assert sentence in text, sentence
        text = text.replace(sentence, "")
    return HEADINGS.sub("", text).strip()


def test_shop_r1_s_prompt_has_exactly_the_content_of_appendix_a():
    assert rest_of(instructions("shop_r1"), SHOP_R1 | OUR_FORM) == ""


@pytest.mark.parametrize("rationales", [True, False])
def test_customer_r1_s_prompts_have_exactly_the_content_of_appendix_b(rationales):
    points = CUSTOMER_R1 | OUR_FORM if rationales else WITHOUT_RATIONALES
    text = instructions("customer_r1", PERSONA, rationales=rationales, typing="input")
    assert rest_of(text, points) == PERSONA
    nobody = instructions("customer_r1", rationales=rationales, typing="input")
    assert "## Persona" not in nobody and "persona" not in nobody


@pytest.mark.parametrize("typing", ["type_and_submit", "input", "both"])
@pytest.mark.parametrize("style", ["full", "shop_r1", "customer_r1"])
def test_every_style_knows_the_words_for_typing_of_the_store_and_no_others(style, typing):
    text = instructions(style, typing=typing)
    assert (TYPE_AND_SUBMIT in text, INPUT in text) == (typing != "input", typing != "type_and_submit")
    assert ("enter were pressed" in text or "press enter." in text) == (typing != "input")


def test_our_own_prompt_has_the_content_of_both_appendices():
    text = instructions("full", PERSONA)
    for words in (
        "on the website of a shop, looking for something to buy",
        "what this person has in the browser, along with what the person has done so far",
        "Say what the person does next, and why.",
        TYPE_AND_SUBMIT,
        "press enter",
        '{"type": "click", "name": "<name of the element>"}',
        "a button, a link, or whatever else can be clicked",
        "Close the window without buying: nothing that was found will do, and the person does not want to buy",
        "simplified HTML",
        "a unique `name`",
        "one short sentence in the first person, the thought behind the action at that moment",
        "one JSON object of exactly this form, and nothing around it",
        "See first what of it matters",
        "never go by the persona alone",
        PERSONA,
    ):
        assert words in text, words
