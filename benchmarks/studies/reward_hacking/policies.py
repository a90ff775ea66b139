"""Trivial policies: what a reply can earn that looks at nothing, or only at names.

Each is a function of the observation, which agents/registry.py takes for an agent:

    python -m benchmarks.leaderboard --agents spam=benchmarks.studies.reward_hacking.policies:always_terminate --out x

| policy | what it does |
|---|---|
| `always_terminate` | terminates on every page |
| `empty_rationale` | the same without a rationale, which earns no self-certainty |
| `certain_rationale` | the same with one word repeated, of which a language model is soon certain |
| `first_element` | clicks the first thing that can be clicked |
| `echo_goal` | types the goal, as it stands, into the first input |
| `echo_prompt` | replies with the prompt itself, which is malformed |
| `common_name` | clicks the element whose name is most similar to the others of the page: what similarity alone pays |
| `invented_name` | the words that several of the page's names share, as a name: it need not be on the page |
| `every_name` | a name of all the page's names, one after the other |

Where a page has nothing to click (or to type into), they terminate.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from replay_sessions.elements import find_elements
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit
from shop_env.candidates import candidate_actions
from shop_env.observation import Observation
from shop_env.prompts import PromptConfig, render_prompt
from shop_env.replies import Reply, format_reply, parse_reply
from shop_env.reward import reward_preset, rouge_l

_WORD = re.compile(r"[a-z0-9]+")  # what ROUGE-L compares
THRESHOLD = reward_preset("shop_r1").threshold  # the threshold that both names are optimized for


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


def get_action(policy: Callable[[Observation], str], observation: Observation) -> Action:
    """The action of a policy whose replies are well-formed."""
    reply = parse_reply(policy(observation))
    assert isinstance(reply, Reply), f"{policy} wrote a malformed reply"
    return reply.action


def clickable_names(observation: Observation) -> list[str]:
    """The names of elements that can be clicked: all, or on a long page those that are candidates."""
    return [action.name for action in candidate_actions(observation) if isinstance(action, Click)]


def _click(name: str | None) -> str:
    action: Action = Click(name=name) if name else Terminate()
    return format_reply("I click on this.", action)


@lru_cache(maxsize=1024)
def _most_common(names: tuple[str, ...]) -> str | None:
    """The name with the highest credit as a guess at any of them, the earliest of several."""
    return max(names, key=lambda name: _credit(name, names), default=None)


@lru_cache(maxsize=1024)
def _shared_words(names: tuple[str, ...]) -> str | None:
    """The candidate with the highest credit: a name, or those of its words that at least n names have, for any n."""
    words = [_WORD.findall(name.lower()) for name in names]
    counts = Counter(word for of_name in words for word in set(of_name))
    shortened = dict.fromkeys(
        " ".join(word for word in of_name if counts[word] >= least)
        for of_name in words
        for least in set(counts.values())
    )
    return max([*names, *filter(None, shortened)], key=lambda name: _credit(name, names), default=None)


def _credit(guess: str, names: Sequence[str]) -> float:
    """The sum of the guess's similarities to all names, each as likely as any other."""
    return sum(rouge_l(guess, name, THRESHOLD) for name in names)
