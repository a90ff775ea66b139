"""What a leaderboard run is made of, and what decides an agent's replies."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from agents.agent_code import code_digest, deciding_arguments
from agents.registry import GROUPS, AgentSpec, parse_spec
from replay_sessions.errors import BadConfig
from replay_sessions.schema import Split
from replay_sessions.store import SessionStore
from shop_env.context import ContextConfig
from shop_env.replies import Extraction
from shop_env.versions import SCORING_VERSION

__all__ = ["LeaderboardConfig", "agent_specs", "agent_texts", "asked_with"]


class LeaderboardConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ranks agents on the steps of a split.

    Attributes:
        agents: What to rank, separated by commas or spaces: a name, MODULE:CLASS, FILE.py:CLASS or a checkpoint folder,
            each with ?key=value arguments and LABEL= before it if need be; `floors` stands for all of agents/floors.
        out: The folder for results.json, leaderboard.md and each agent's records.
        store: `demo` or the path of a session store.
        split: Which of its splits to run on.
        seed: Seeds the agents and the bootstrap.
        sessions: Only the first so many sessions of the split; None: all.
        context: What of a session the agents are shown.
        reward: The reward preset for the column `reward`.
        metrics: The metrics preset: which paper's choices the figures follow.
        extraction: How an action is read out of a reply: `strict` takes the JSON object alone, `lenient` finds it in
            fences, behind <think>, or between other words.
        first_action: Score each session's first action too.
        cluster: What the bootstrap draws: whole users with all their sessions, or whole sessions.
        samples: How many bootstrap samples the intervals rest on.
        batch_size: Steps in one call of an agent that answers batches.
        likelihood: Also ask agents that can give them for the probabilities of each page's actions: columns NLL (nats),
            top-1 and top-3. Language models take many times as long.
        fresh: Ask all agents again, also where their replies are there.
    """

    agents: tuple[str, ...]
    out: str
    store: str = "demo"
    split: Split | Literal["all"] = "test"
    seed: int = 0
    sessions: int | None = None
    context: ContextConfig = ContextConfig()
    reward: str = "shop_r1"
    metrics: str = "shop_r1"
    extraction: Extraction = "strict"
    first_action: bool = False
    cluster: Literal["session", "user"] = "user"
    samples: int = 1000
    batch_size: int = 64
    likelihood: bool = False
    fresh: bool = False

    def __post_init__(self) -> None:
        for name in ("sessions", "samples", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadConfig(f"--{name.replace('_', '-')} is {value}; it must be 1 or more")

    @property
    def folder(self) -> Path:
        return Path(self.out)

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def agent_specs(texts: tuple[str, ...]) -> list[AgentSpec]:
    """The agents of `--agents`, each with a label of its own."""
    specs = [parse_spec(text) for text in agent_texts(texts)]
    if not specs:
        raise BadConfig("--agents names no agent; for example --agents random,majority")
    labels = [spec.label for spec in specs]
    for label in labels:
        if labels.count(label) > 1:
            raise BadConfig(f"--agents names '{label}' twice: tell them apart as LABEL={label}")
    return specs


def agent_texts(texts: tuple[str, ...]) -> list[str]:
    """The agents of `--agents` as they were typed, commas and groups taken apart.

    >>> agent_texts(("random, SFT=runs/sft", "floors"))[:3]
    ['random', 'SFT=runs/sft', 'context_majority']
    """
    named = [text.strip() for given in texts for text in _split_at_commas(given)]
    return [text for name in named if name for text in GROUPS.get(name, (name,))]


def _split_at_commas(text: str) -> list[str]:
    """Takes a list of agents apart; commas inside the JSON of an argument stay.

    >>> _split_at_commas('random,mine?sizes=[1,2]&words={"a": "x,y"}&word="b,c",oracle')
    ['random', 'mine?sizes=[1,2]&words={"a": "x,y"}&word="b,c"', 'oracle']
    """
    parts, depth, quoted = [""], 0, False
    for character, before in zip(text, " " + text, strict=False):
        if character == '"' and (quoted or depth or before == "=") and before != "\\":
            quoted = not quoted
        elif not quoted:
            depth += (character in "[{") - (character in "]}")
        if character == "," and depth <= 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def asked_with(spec: AgentSpec, config: LeaderboardConfig, store: SessionStore) -> dict[str, Any]:
    """Everything that decides what an agent replies to a step."""
    deciding = deciding_arguments(spec)
    resolved = {} if deciding is None else {"resolved": deciding}
    return {
        "target": spec.target,
        "arguments": spec.arguments,
        **resolved,
        "code": code_digest(spec),
        "store": store.fingerprint,
        "context": msgspec.to_builtins(config.context),
        "seed": config.seed,
        "scoring": SCORING_VERSION,
    }
