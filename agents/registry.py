"""Builds agents from what users type: names, classes, files, checkpoints.

random                              a registered name (catalogue.py, or a package's entry point `shop_r1.agents`)
my_package.module:MyAgent           a class that can be imported; the current folder counts
path/to/file.py:MyAgent             a class in a file
path/to/file.py:my_function         a function; if its first parameter is called `observation`, it is itself the
                                    agent and returns replies, otherwise it returns an agent
runs/demo/sft                       a checkpoint folder (it holds shop_r1_checkpoint.json)
runs/demo/sft?temperature=0         any of these with arguments: ?key=value&key2=value2, JSON where it parses
SFT greedy=runs/demo/sft?temperature=0        any of these with the label that tables show
"""

import importlib.metadata
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from urllib.parse import quote, unquote

from agents.adapted import FunctionAgent, PolicyAdapter, answers_itself, check_arguments, is_policy
from agents.catalogue import AGENTS, AgentEntry, entry_of, is_own
from replay_sessions.foundation.errors import BadConfig, MissingExtra, ShopR1Error, UnknownAgent, did_you_mean
from replay_sessions.foundation.plugins import NoSuchName, error_with_line, load_own, requires_extra
from replay_sessions.store import SessionStore
from shop_env.evaluation.answering import AnsweringAgent
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.waves import CHECKPOINT_MARKER, AgentSpec
from shop_env.observation import ContextConfig
from shop_env.train_view import TrainView

if getattr(sys.modules["agents"], "__project__", None) != "shop-r1":
    raise ImportError(
        f"The package 'agents' that was loaded ({sys.modules['agents'].__file__}) is not shop-r1's. The distribution "
        "'openai-agents' installs a package of the same name: remove it from this environment, or use an environment "
        "of its own."
    )


Build = Callable[..., Any]
ENTRY_POINTS = "shop_r1.agents"
MOST_CALLS = 1024  # at the same time; each has a thread


def parse_spec(text: str) -> AgentSpec:
    """Parses `label=target?key=value&key2=value2`; if the label is missing, the text itself is the label.

    >>> parse_spec("greedy=runs/sft?temperature=0&name=a%20b")
    AgentSpec(target='runs/sft', arguments={'temperature': 0, 'name': 'a b'}, label='greedy')
    """
    labelled = re.match(r"([^?:/\\]+)=(.*)", text, re.DOTALL)
    label, target_and_query = labelled.groups() if labelled else (text, text)
    target, _, query = target_and_query.partition("?")
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


def format_spec(spec: AgentSpec) -> str:
    """Returns the text, without a label, that `parse_spec` parses to this agent.

    >>> format_spec(parse_spec('my.py:Mine?word="1"&size=2&fast=true&path=a%20b'))
    'my.py:Mine?word=%221%22&size=2&fast=true&path=a%20b'
    """
    pairs = [
        f"{key}={quote(str(value) if _json_or_text(str(value)) == value else json.dumps(value), safe='/+?=')}"
        for key, value in spec.arguments.items()
    ]
    return spec.target + ("?" if pairs else "") + "&".join(pairs)


def make_agent(
    spec: str | AgentSpec,
    *,
    store: SessionStore | TrainView | None = None,
    context: ContextConfig | None = None,
    **arguments: Any,
) -> Agent:
    """Builds the agent that `spec` names.

    Args:
        spec: A name, `module:Class`, `file.py:Class` or checkpoint folder, with optional arguments (see the module).
            Functions and policies (objects with `predict` and without `act`) are agents too (agents/adapted.py).
        store: The store that the agent will be evaluated on. A constructor with a parameter called `store` gets its
            train split (agents/adapted.py), because the other splits hold the answers. A view is passed on as it is.
        context: The context in which the agent will see sessions; fitted baselines learn from sessions in it.
        arguments: Arguments of the constructor; they override those in the spec.

    Raises:
        UnknownAgent: No agent has this name.
        BadConfig: The constructor rejected the arguments or failed, or its result is no agent.
    """
    spec = parse_spec(spec) if isinstance(spec, str) else spec
    build, leading = agent_class(spec)
    merged = spec.arguments | arguments
    if answers_itself(build):
        build, leading = FunctionAgent, (build,)
    parameters = inspect.signature(build).parameters
    if "store" in parameters and "store" not in merged:
        if store is not None:
            merged["store"] = store if isinstance(store, TrainView) else TrainView(store, context or ContextConfig())
        elif parameters["store"].default is inspect.Parameter.empty:
            raise BadConfig(f"Agent '{spec.target}' is made for a session store: give one (--store, or ?store=demo)")
    check_arguments(f"Agent '{spec.target}'", build, leading, merged)
    try:
        agent = build(*leading, **merged)
    except ShopR1Error:
        raise
    except (Exception, SystemExit) as error:
        raise BadConfig(f"Agent '{spec.target}' cannot be made: {error_with_line(error)}") from error
    if is_policy(agent):
        return PolicyAdapter(agent)
    if isinstance(agent, AnsweringAgent) and not is_own(spec):
        agent.reads_whole_sessions = False  # a subclass of ours in a user's file; `rank --trust` lets it
    if problem := protocol_problem(agent):
        raise BadConfig(f"'{spec.target}' is no agent: it has {problem} (see shop_env/evaluation/protocol.py)")
    return agent  # type: ignore[no-any-return]  # it has both methods; `shop-r1 agents check` checks more


def protocol_problem(agent: object) -> str:
    """Returns what an object lacks to be an agent, as far as that is visible without calling it; "" for nothing."""
    missing = [method for method in ("reset", "act") if not callable(getattr(agent, method, None))]
    if missing:
        return f"no method {' or '.join(map(repr, missing))}"
    concurrency = getattr(agent, "concurrency", 1)
    if type(concurrency) is not int or not 1 <= concurrency <= MOST_CALLS:
        return f"concurrency {concurrency!r}, which must be a whole number of 1 to {MOST_CALLS}"
    return ""


def names_nothing(spec: AgentSpec) -> bool:
    """Returns whether the agent is a registered one and none of its arguments is a text or a container.

    A text may name any function, file or address, and so may the texts within a container.
    """
    plain = bool | int | float | None
    return spec.target in AGENTS and all(isinstance(value, plain) for value in spec.arguments.values())


def is_trusted(spec: AgentSpec, trust: Sequence[str]) -> bool:
    """Returns whether one of these texts names the agent, with its arguments."""
    return any((agent.target, agent.arguments) == (spec.target, spec.arguments) for agent in map(parse_spec, trust))


def agent_class(spec: AgentSpec) -> tuple[Build, tuple[Any, ...]]:
    """Returns the class or factory function that a spec names, and its leading positional arguments."""
    target = spec.target
    if entry := entry_of(spec):
        checkpoint = Path(target) if spec.is_checkpoint else entry.checkpoint
        return _load(entry), (checkpoint,) if checkpoint else ()
    installed = installed_agents()  # takes milliseconds
    target = installed.get(target, target)
    file, colon, _ = target.rpartition(":")
    if colon and file.endswith(".py"):
        if not os.path.isfile(file):  # also False for texts that cannot be paths
            raise UnknownAgent(f"No file '{file}'")
        return _load_foreign(target, spec.target), ()
    if colon and re.fullmatch(r"\w+(\.\w+)*", file):
        return _load_foreign(target, spec.target, module=file), ()
    if os.path.isdir(target):
        raise UnknownAgent(f"Folder '{target}' is no checkpoint: it holds no {CHECKPOINT_MARKER}")
    if re.search(r"[/\\]", target):
        raise UnknownAgent(f"No checkpoint folder at '{target}', and no agent of that name")
    raise UnknownAgent(
        f"Unknown agent '{target}'. {did_you_mean(target, (*AGENTS, *installed))} "
        "Or give MODULE:CLASS, FILE.py:CLASS or a checkpoint folder."
    )


def installed_agents() -> dict[str, str]:
    """Returns the agents that installed packages register, as a mapping of names to `module:Class`."""
    entries = importlib.metadata.entry_points(group=ENTRY_POINTS)
    return {entry.name: entry.value for entry in entries if entry.name not in AGENTS}


def _load(agent: AgentEntry) -> Build:
    with requires_extra(agent.extra or "train"):
        build: Build = resolve_name(agent.target)
        return build


def _load_foreign(target: str, label: str, module: str = "") -> Build:
    """Loads a class or function that does not belong to this project.

    Args:
        target: `module:NAME` or `file.py:NAME`.
        label: The agent's name in messages.
        module: The module in `target`; "" if that is a file.
    """
    name = target.rpartition(":")[2]
    try:
        build = load_own(target)
    except NoSuchName as error:
        raise UnknownAgent(f"No class '{name}' for agent '{label}'. {error}") from error
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise UnknownAgent(
                f"No module '{module}' for agent '{label}': it is neither installed nor in the current folder"
            ) from error
        raise MissingExtra(f"Agent '{label}' needs the package '{error.name}', which is not installed") from error
    if not callable(build):
        raise UnknownAgent(f"'{name}' of agent '{label}' is {build!r:.40}, and no class or function")
    return build  # type: ignore[no-any-return]  # mypy cannot infer the return type from callable()


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
