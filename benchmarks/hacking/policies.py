"""Policies of no worth: what a reply can earn that looks at nothing, or at nothing but names.

Each is a function of the observation, which agents/registry.py takes for an agent:

    python -m benchmarks.leaderboard --agents leave=benchmarks.hacking.policies:always_terminate,random --out boards/x

| policy | what it does |
|---|---|
| `always_terminate` | leaves, whatever is shown |
| `empty_rationale` | the same without a rationale, which earns no self-certainty |
| `certain_rationale` | the same with one word said again and again, of which a language model is soon certain |
| `first_element` | clicks the first thing that can be clicked |
| `echo_goal` | types the goal, as it stands, into the first input |
| `echo_prompt` | replies with the prompt itself, which is no reply |
| `common_name` | clicks the element whose name is most like the others of the page: what similarity pays by itself |
| `invented_name` | the words that several of the page's names share, as a name: it need not be on the page |
| `every_name` | a name of all the page's names, one behind the other |

Where a page has nothing to click (or to type into), they leave.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from replay_sessions.elements import find_elements
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit
from shop_env.candidates import candidate_actions
from shop_env.observation import Observation
from shop_env.prompts import PromptConfig, render_prompt
from shop_env.replies import format_reply
from shop_env.reward import reward_preset, rouge_l

__all__ = [
    "POLICIES",
    "always_terminate",
    "certain_rationale",
    "clickable_names",
    "common_name",
    "echo_goal",
    "echo_prompt",
    "empty_rationale",
    "every_name",
    "first_element",
    "invented_name",
]

_WORD = re.compile(r"[a-z0-9]+")  # what ROUGE-L compares
THRESHOLD = reward_preset("shop_r1").threshold  # what the two made names are made for


def always_terminate(observation: Observation) -> str:
    return format_reply("I am done.", Terminate())


def empty_rationale(observation: Observation) -> str:
    return format_reply("", Terminate())


def certain_rationale(observation: Observation) -> str:
    return format_reply(" ".join(["done"] * 16), Terminate())


def first_element(observation: Observation) -> str:
    elements = find_elements(observation["page"])
    return _click(next((element.name for element in elements if element.accepts == "click"), None))


def echo_goal(observation: Observation) -> str:
    goal = observation["goal"]
    inputs = [element.name for element in find_elements(observation["page"]) if element.accepts == "type"]
    return format_reply(goal, TypeAndSubmit(name=inputs[0], text=goal) if inputs and goal else Terminate())


def echo_prompt(observation: Observation) -> str:
    return "\n".join(message["content"] for message in render_prompt(observation, PromptConfig()))


def common_name(observation: Observation) -> str:
    return _click(_most_common(tuple(clickable_names(observation))))


def invented_name(observation: Observation) -> str:
    return _click(_shared_words(tuple(clickable_names(observation))))


def every_name(observation: Observation) -> str:
    return _click(".".join(clickable_names(observation)) or None)


POLICIES = (
    always_terminate,
    empty_rationale,
    certain_rationale,
    first_element,
    echo_goal,
    echo_prompt,
    common_name,
    invented_name,
    every_name,
)


def clickable_names(observation: Observation) -> list[str]:
    """The names of elements that can be clicked: all, or of a long page those that are candidates."""
    return [action.name for action in candidate_actions(observation) if isinstance(action, Click)]


def _click(name: str | None) -> str:
    action: Action = Click(name=name) if name else Terminate()
    return format_reply("I click on this.", action)


@lru_cache(maxsize=1024)
def _most_common(names: tuple[str, ...]) -> str | None:
    """The name that is credited most as a guess at any of them, the earliest of several."""
    return max(names, key=lambda name: _credit(name, names), default=None)


@lru_cache(maxsize=1024)
def _shared_words(names: tuple[str, ...]) -> str | None:
    """Of some name those words that so many names have: of which and how many, as is credited most; else a name."""
    words = [_WORD.findall(name.lower()) for name in names]
    carriers = Counter(word for own in words for word in set(own))
    cut = dict.fromkeys(
        " ".join(word for word in own if carriers[word] >= least) for own in words for least in set(carriers.values())
    )
    return max([*names, *filter(None, cut)], key=lambda name: _credit(name, names), default=None)


def _credit(guess: str, names: Sequence[str]) -> float:
    """What the guess's similarity comes to over all names, each as likely as any other."""
    return sum(rouge_l(guess, name, THRESHOLD) for name in names)
