"""What a leaderboard run is made of, and what makes two runs of an agent the same run."""

import hashlib
import inspect
from pathlib import Path
from typing import Any, Literal

import msgspec

from agents.registry import AgentSpec, agent_class, parse_spec
from replay_sessions.errors import BadConfig
from replay_sessions.schema import Split
from replay_sessions.store import SessionStore
from shop_env.context import ContextConfig

__all__ = ["LeaderboardConfig", "agent_specs", "made_with"]


class LeaderboardConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ranks agents on the steps of a split.

    Attributes:
        agents: What to rank, separated by commas or spaces: a name, MODULE:CLASS, FILE.py:CLASS or a checkpoint folder,
            each with ?key=value arguments and LABEL= before it if need be.
        out: The folder for results.json, leaderboard.md and each agent's records.
        store: `demo` or the path of a session store.
        split: Which of its splits to run on.
        seed: Seeds the agents and the bootstrap.
        sessions: Only the first so many sessions of the split; None: all.
        context: What of a session the agents are shown.
        reward: The reward preset for the column `reward`.
        preset: The metrics preset: which paper's choices the figures follow.
        first_action: Score each session's first action too.
        cluster: What the bootstrap draws: whole sessions, or whole users with all their sessions.
        samples: How many bootstrap samples the intervals rest on.
        batch_size: Steps in one call of an agent that answers batches.
        likelihood: Also ask agents that can give them for the probabilities of each page's actions: columns NLL (nats),
            top-1 and top-3. Language models take many times as long.
        fresh: Run all agents again, also those whose records are there.
    """

    agents: tuple[str, ...]
    out: str
    store: str = "demo"
    split: Split | Literal["all"] = "test"
    seed: int = 0
    sessions: int | None = None
    context: ContextConfig = ContextConfig()
    reward: str = "shop_r1"
    preset: str = "shop_r1"
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
    specs = [parse_spec(text) for given in texts for text in given.split(",") if text.strip()]
    if not specs:
        raise BadConfig("--agents names no agent; for example --agents random,majority")
    labels = [spec.label for spec in specs]
    for label in labels:
        if labels.count(label) > 1:
            raise BadConfig(f"--agents names '{label}' twice: tell them apart as LABEL={label}")
    return specs


def made_with(spec: AgentSpec, config: LeaderboardConfig, store: SessionStore) -> dict[str, Any]:
    """Everything that decides an agent's records: records made with the same are not made again."""
    return {
        "target": spec.target,
        "arguments": spec.arguments,
        "code": _code_digest(spec),
        "store": store.fingerprint,
        "split": config.split,
        "sessions": config.sessions,
        "seed": config.seed,
        "context": msgspec.to_builtins(config.context),
        "reward": config.reward,
        "first_action": config.first_action,
        "likelihood": config.likelihood,
    }


def _code_digest(spec: AgentSpec) -> str:
    """A digest of the agent itself: its source file, and all files of a checkpoint, be it the target or an argument."""
    digest = hashlib.blake2b(digest_size=16)
    build, _ = agent_class(spec)
    try:
        files = [Path(inspect.getsourcefile(inspect.unwrap(build)) or "")]
    except TypeError:  # built in: it has no source
        files = []
    folders = [spec.target] if spec.is_checkpoint else []
    folders += [value for value in spec.arguments.values() if isinstance(value, str) and Path(value).is_dir()]
    for folder in folders:
        files += sorted(path for path in Path(folder).rglob("*") if path.is_file())
    for file in filter(Path.is_file, files):
        digest.update(file.name.encode())
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "blake2b").digest())
    return digest.hexdigest()
