"""From what a user types to an agent: names, classes, files, checkpoints.

    random                              a registered name (below, or another package's entry point `shop_r1.agents`)
    my_package.module:MyAgent           a class that can be imported; the current folder counts
    path/to/file.py:MyAgent             a class in a file
    path/to/file.py:my_function         a function: one whose first parameter is called `observation` is an agent itself
                                        and answers with the reply; any other makes an agent
    runs/demo/sft                       a checkpoint folder (it holds shop_r1_checkpoint.json)
    runs/demo/sft?temperature=0         any of these with arguments: ?key=value&key2=value2, JSON where it parses
    SFT greedy=runs/demo/sft?temperature=0        any of these with the label that tables show

Classes are imported when they are asked for, so that a missing extra costs nothing until it is used.
"""

import importlib.metadata
import inspect
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import msgspec

from agents.adapted import FunctionAgent, PolicyAdapter, answers_itself, is_policy
from agents.protocol import Agent
from agents.train_view import TrainView
from replay_sessions.errors import BadConfig, MissingExtra, UnknownAgent, did_you_mean
from replay_sessions.plugins import NoSuchName, load, load_file, member
from replay_sessions.store import SessionStore

__all__ = [
    "AGENTS",
    "CHECKPOINT_MARKER",
    "GROUPS",
    "AgentSpec",
    "agent_class",
    "extra_of",
    "known_agents",
    "made_for_a_store",
    "make_agent",
    "parse_spec",
]

AGENTS = {
    "random": "agents.scripted.random:RandomAgent",
    "majority": "agents.scripted.majority:MajorityAgent",
    "repeat_last": "agents.scripted.repeat_last:RepeatLastAgent",
    "copy_match": "agents.scripted.copy_match:CopyMatchAgent",
    "oracle": "agents.scripted.oracle:OracleAgent",
    "context_majority": "agents.floors.context_majority:ContextMajority",
    "ngram": "agents.floors.ngram:Ngram",
    "nearest": "agents.floors.nearest:Nearest",
    "logistic": "agents.floors.logistic:Logistic",
    "boosting": "agents.floors.boosting:Boosting",
    "sb3": "agents.sb3.agent:Sb3Agent",
    "local": "agents.local.agent:local",
    "prompting": "agents.prompting.agent:PromptingAgent",
    "human": "agents.human.agent:HumanAgent",
}
# Our agents that need more than the core.
EXTRAS = {
    "agents.floors.": "floors",
    "agents.sb3.": "sb3",
    "agents.llm_grpo.": "train",
    "agents.local.": "train",
    "agents.prompting.": "api",
}
# What a name in --agents stands for when it stands for several.
GROUPS = {"floors": ("context_majority", "ngram", "nearest", "logistic", "boosting")}
ENTRY_POINTS = "shop_r1.agents"
CHECKPOINT_MARKER = "shop_r1_checkpoint.json"
CHECKPOINT_AGENT = "agents.llm_grpo.agent:PolicyAgent"


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to run, as typed by a user: `label=target?key=value`."""

    target: str
    arguments: dict[str, Any] = {}
    label: str

    @property
    def is_checkpoint(self) -> bool:
        return os.path.isfile(os.path.join(self.target, CHECKPOINT_MARKER))  # False too for what no path can be


def parse_spec(text: str) -> AgentSpec:
    """Takes `label=target?key=value&key2=value2` apart; the label is the text itself where none is given.

    >>> parse_spec("greedy=runs/sft?temperature=0&name=a%20b")
    AgentSpec(target='runs/sft', arguments={'temperature': 0, 'name': 'a b'}, label='greedy')
    """
    labelled = re.match(r"([^?:/\\]+)=(.*)", text, re.DOTALL)
    label, rest = labelled.groups() if labelled else (text, text)
    target, _, query = rest.partition("?")
    if not target.strip() or not label.strip():
        raise BadConfig(
            f"No agent in {text!r}: expected [LABEL=]NAME, MODULE:CLASS, FILE.py:CLASS or a checkpoint folder"
        )
    arguments = {}
    for pair in filter(None, query.split("&")):
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise BadConfig(f"Bad argument {pair!r} in {text!r}: expected key=value, as in 'random?key=1&other=word'")
        arguments[key] = _json_or_text(unquote(value))
    return AgentSpec(target=target.strip(), arguments=arguments, label=label.strip())


def make_agent(spec: str | AgentSpec, *, store: SessionStore | None = None, **arguments: Any) -> Agent:
    """Builds the agent that `spec` names.

    Args:
        spec: A name, `module:Class`, `file.py:Class` or checkpoint folder, with arguments if need be (see above).
        store: What the agent will be evaluated on; a constructor with a parameter called `store` is given its train
            split (agents/train_view.py): the answers of the others are what the agent will be asked.
        arguments: For the constructor; they go before those in the spec.

    Raises:
        UnknownAgent: Nothing of that name.
        BadConfig: The constructor refused the arguments.

    Functions and policies (an object with `predict`, and without `act`) are taken too: agents/adapted.py.
    """
    spec = parse_spec(spec) if isinstance(spec, str) else spec
    build, leading = agent_class(spec)
    given = spec.arguments | arguments
    if answers_itself(build):
        build, leading = FunctionAgent, (build,)
    parameters = inspect.signature(build).parameters
    if "store" in parameters and "store" not in given:
        if store is not None:
            given["store"] = TrainView(store)
        elif parameters["store"].default is inspect.Parameter.empty:
            raise BadConfig(f"Agent '{spec.target}' is made for a session store: give one (--store, or ?store=demo)")
    try:
        inspect.signature(build).bind(*leading, **given)
    except TypeError as error:
        accepted = ", ".join(name for name in list(parameters)[len(leading) :]) or "none"
        raise BadConfig(f"Agent '{spec.target}': {error}; it takes these arguments: {accepted}") from error
    agent = build(*leading, **given)
    if is_policy(agent):
        return PolicyAdapter(agent)
    for method in ("reset", "act"):
        if not callable(getattr(agent, method, None)):
            raise BadConfig(f"'{spec.target}' is no agent: it has no method '{method}' (see agents/protocol.py)")
    return agent  # type: ignore[no-any-return]  # both methods are there; `python -m agents check` looks closer


def made_for_a_store(spec: AgentSpec) -> bool:
    """Whether the agent learns from the store that `make_agent` is given."""
    build, _ = agent_class(spec)
    return "store" in inspect.signature(build).parameters and "store" not in spec.arguments


def agent_class(spec: AgentSpec) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The class (or factory function) behind a spec, and what goes before its keyword arguments."""
    target = spec.target
    if spec.is_checkpoint:
        return _imported(CHECKPOINT_AGENT, target), (Path(target),)
    names = AGENTS if target in AGENTS else known_agents()  # asking installed packages takes milliseconds
    if target in names:
        return _imported(names[target], target), ()
    file, colon, class_name = target.rpartition(":")
    if colon and file.endswith(".py"):
        module = _load_file(Path(file), target)
        return _callable(lambda: member(module, class_name), class_name, target), ()
    if colon and re.fullmatch(r"\w+(\.\w+)*", file):
        return _imported(target, target), ()
    if os.path.isdir(target):
        raise UnknownAgent(f"Folder '{target}' is no checkpoint: it holds no {CHECKPOINT_MARKER}")
    if re.search(r"[/\\]", target):
        raise UnknownAgent(f"No checkpoint folder at '{target}', and no agent of that name")
    raise UnknownAgent(
        f"Unknown agent '{target}'. {did_you_mean(target, names)} "
        "Or give MODULE:CLASS, FILE.py:CLASS or a checkpoint folder."
    )


def known_agents() -> dict[str, str]:
    """Name -> `module:Class` of every registered agent: ours first, then those of installed packages."""
    others = importlib.metadata.entry_points(group=ENTRY_POINTS)
    return {entry.name: entry.value for entry in others} | AGENTS


def extra_of(module: str) -> str | None:
    """The extra that brings what an agent of ours needs; None where the core is enough."""
    return next((extra for room, extra in EXTRAS.items() if module.startswith(room)), None)


def _imported(address: str, target: str) -> Callable[..., Any]:
    module_name, _, class_name = address.partition(":")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:  # an installed command starts without it
        sys.path.append(str(Path.cwd()))
    try:
        return _callable(lambda: load(address), class_name, target)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise UnknownAgent(
                f"No module '{module_name}' for agent '{target}': it is neither installed nor in the current folder"
            ) from error
        extra = extra_of(module_name)
        install = f": pip install 'shop-r1[{extra}]'" if extra else ""
        raise MissingExtra(
            f"Agent '{target}' needs the package '{error.name}', which is not installed{install}"
        ) from error


def _load_file(file: Path, target: str) -> ModuleType:
    if not os.path.isfile(file):
        raise UnknownAgent(f"No file '{file}' for agent '{target}'")
    try:
        return load_file(file)
    except ModuleNotFoundError as error:
        raise MissingExtra(f"Agent '{target}' needs the package '{error.name}', which is not installed") from error


def _callable(find: Callable[[], Any], class_name: str, target: str) -> Callable[..., Any]:
    try:
        found = find()
    except NoSuchName as error:
        raise UnknownAgent(f"No class '{class_name}' for agent '{target}'. {error}") from error
    if not callable(found):
        raise UnknownAgent(f"'{class_name}' of agent '{target}' is {found!r:.40}, and no class or function")
    return found  # type: ignore[no-any-return]  # callable() does not tell mypy the return type


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
