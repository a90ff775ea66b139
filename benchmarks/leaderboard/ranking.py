"""A leaderboard run: what is missing of each agent's replies is generated; records, figures and tables follow.

    LeaderboardConfig ─► agents ─► evaluation.evaluate ─► Entry ─► EvaluationLog ─► results.json, leaderboard.md

A run that was stopped goes on where it was, and steps at which an agent failed (a server that was down) are run again.
"""

import contextlib
import unicodedata
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from agents.agent_code import gives_probabilities, reply_identity
from agents.agent_process import make_foreign_agent
from agents.child_process import Limits
from agents.registry import AGENTS, FORMER_GROUPS, GROUPS, format_spec, is_own, make_agent, parse_spec
from replay_sessions.foundation.config_errors import convert_fields
from replay_sessions.foundation.errors import BadConfig, BadSession
from replay_sessions.foundation.locks import working_alone_in
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.provenance import provenance
from replay_sessions.store import SessionStore
from shop_env.evaluation.entries import ORDER_CHECK, AgentToEvaluate, build_entry, fill_entry_cache, remarks_of
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.log import Entry, EvaluationLog, folder_name, read_log, write_log
from shop_env.evaluation.reply_cache import merge_replies
from shop_env.evaluation.results import ceiling_rows, results_table
from shop_env.evaluation.scored_steps import EvaluationConfig

WHOLE_FOLDER = "results.json and its table"  # beside the labels in what verify reports
INCOMPLETE = "A row with errors (steps without a reply) is not ranked; its figures are of the steps with a reply."


class LeaderboardConfig(EvaluationConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ranks agents on the steps of a split.

    Attributes:
        agents: What to rank, separated by commas or spaces: a name, MODULE:CLASS, FILE.py:CLASS or a checkpoint folder,
            each with ?key=value arguments and LABEL= before it if need be; `baselines` stands for all that are fitted.
        out: The folder for results.json, leaderboard.md and each agent's records.
        reward: The reward preset for the column `reward`, or FILE.py:FUNCTION of your own.
        fresh: Run all agents again, also where their replies are cached.
        in_process: Run somebody else's agents in this process: faster, but they can read the logged actions here.
        sandbox: Cut somebody else's agents off from network and files, where bubblewrap works.
        environment: Variables that somebody else's agents get, such as the key of a server: they get few by themselves.
        step_time_limit_s: The most time for one reply of somebody else's agents, in seconds.
        order_check: At how many steps somebody else's agents are run again in another order, to find replies that
            depend on more than the observation; 0: at none, for agents whose replies cost much.
    """

    agents: tuple[str, ...]
    out: str
    reward: str = "shop_r1"
    fresh: bool = False
    in_process: bool = False
    sandbox: bool = True
    environment: tuple[str, ...] = ()
    step_time_limit_s: float = 600.0
    order_check: int = ORDER_CHECK

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order_check < 0:
            raise BadConfig(f"--order-check is {self.order_check}; it must be 0 or more")
        if self.step_time_limit_s <= 0:
            raise BadConfig(f"--step-time-limit-s is {self.step_time_limit_s:g}; it must be more than 0")

    @property
    def folder(self) -> Path:
        return Path(self.out)

    @property
    def evaluation(self) -> EvaluationConfig:
        """What of it decides the figures."""
        return EvaluationConfig(**{name: getattr(self, name) for name in EvaluationConfig.__struct_fields__})


def rank(**options: Any) -> EvaluationLog:
    """Ranks agents from Python: the options of `python -m benchmarks.leaderboard`, with their names and values.

        log = rank(agents=["random", "runs/first/sft"], store="demo", out="runs/board", context={"persona": "none"})
        log.to_pandas()

    Raises:
        BadConfig: An option does not exist or does not fit.
    """
    return run_leaderboard(convert_fields(options, LeaderboardConfig, "rank"))


def run_leaderboard(config: LeaderboardConfig) -> EvaluationLog:
    """Generates the replies that are missing; writes results.json and leaderboard.md."""
    store = SessionStore.open(config.store)
    evaluation, folder = config.evaluation, config.folder
    evaluation.check_functions()
    agents = [
        AgentToEvaluate(
            spec=spec,
            name=spec.label,
            context=config.context,
            config=evaluation,
            store=store,
            folder=folder,
            probabilities=gives_probabilities(spec),  # a misspelt agent is reported before hours of work, not after
            **_process_of(spec, config, store),
        )
        for spec in agent_specs(config.agents)
    ]
    keys = evaluation.keys(store)
    entries, earlier = [], _earlier_entries(folder)
    with working_alone_in(folder):
        for entry in () if config.fresh else earlier:
            _check_replies(folder, entry)
        for agent in agents:
            filled = fill_entry_cache(agent, keys, fresh=config.fresh)
            entries.append(build_entry(agent, filled, () if config.fresh else earlier)[0])
        log = EvaluationLog(
            # After the agents: by now all that they need is loaded and can be named.
            provenance=provenance(msgspec.to_builtins(config), store=store, seed=config.seed),
            config=evaluation,
            entries=entries,
            ceilings=ceiling_rows(store, evaluation),
        )
        write_log(folder, log, markdown(log))
    return log


def _process_of(spec: AgentSpec, config: LeaderboardConfig, store: SessionStore) -> dict[str, Any]:
    """How an agent is built, and in whose process it runs."""
    identity = reply_identity(spec, config.context, store, config.seed)
    if is_own(spec):
        return {"build": partial(make_agent, spec, store=store), "identity": identity}
    limits = Limits(
        step_time_s=config.step_time_limit_s,
        sandbox=config.sandbox,
        environment=config.environment,
        hidden=(store.path, config.folder),
    )
    process = "evaluator's" if config.in_process else limits.process
    return {
        "build": partial(make_foreign_agent, spec, store, None if config.in_process else limits),
        # Replies of a process in which an agent can look for the answers are not those of another.
        "identity": {**identity, "process": process},
        "process": process,
        "order_check": config.order_check,
    }


def _earlier_entries(folder: Path) -> Sequence[Entry]:
    """The agents of the run before."""
    with contextlib.suppress(BadConfig):
        return read_log(folder).entries
    return ()


def _check_replies(folder: Path, entry: Entry) -> None:
    """Raises BadConfig where cached replies are no longer those that the last results.json was computed from."""
    with contextlib.suppress(BadSession), entry.cache(folder) as cache:
        changed = [r for r in entry.files(folder).read() if r.reply and cache.reply(r.key) not in (None, r.reply)]
        if changed:
            raise BadConfig(
                f"{len(changed)} replies of '{entry.label}' in '{folder}' are not those of its results.json: they were "
                "edited, or a run with --fresh was stopped. Run all of them again by --fresh"
            )


def agent_specs(texts: tuple[str, ...]) -> list[AgentSpec]:
    """The agents of `--agents`, each with a label of its own."""
    specs = [parse_spec(text) for text in agent_texts(texts)]
    if not specs:
        raise BadConfig("--agents names no agent; for example --agents random,majority")
    check_labels(specs)
    return specs


def check_labels(specs: Sequence[AgentSpec]) -> None:
    """Raises BadConfig where a label is taken: by another row, for a row of another kind, or by another agent."""
    labels: dict[str, str] = {}
    for spec in specs:
        # Labels that look alike or have one folder count as the same.
        label = folder_name(unicodedata.normalize("NFC", spec.label)).casefold()
        if label in labels:
            raise BadConfig(
                f"--agents names '{spec.label}' twice (or '{labels[label]}', which is too like it): give one of them "
                f"another label, as LABEL={spec.label}"
            )
        labels[label] = spec.label
        reserved = spec.label == WHOLE_FOLDER or spec.label.startswith("ceiling") or "not ranked" in spec.label
        if reserved or (spec.label in AGENTS and spec.target != spec.label):
            raise BadConfig(
                f"the label '{spec.label}' means something else in tables: give '{spec.target}' another one"
            )


def agent_texts(texts: tuple[str, ...]) -> list[str]:
    """The agents of `--agents` as they were typed, commas and groups taken apart.

    >>> agent_texts(("random, SFT=runs/sft", "baselines"))[:3]
    ['random', 'SFT=runs/sft', 'context_majority']
    """
    named = [text.strip() for listed in texts for text in _split_at_commas(listed)]
    for name in named:
        if name in FORMER_GROUPS:
            raise BadConfig(
                f"the agents {name!r} are now called {FORMER_GROUPS[name]!r}: --agents {FORMER_GROUPS[name]}"
            )
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


def notes_of(log: EvaluationLog) -> list[str]:
    """What a table's reader should know: what stands behind a label, and the remarks."""
    texts = [(entry.label, format_spec(entry.spec)) for entry in log.entries]
    return [*(f"{label} is {text}" for label, text in texts if label != text), *remarks_of(log)]


def markdown(log: EvaluationLog) -> str:
    """leaderboard.md."""
    config, store = log.config, log.provenance["store"]
    commits = {entry.label: ", ".join(dict.fromkeys(map(format_commit, entry.runs))) for entry in log.entries}
    first = "first actions scored" if config.first_action else "first actions not scored"
    first += "" if config.inferred else ", nor inferred ones"
    sessions = "all sessions" if config.sessions is None else f"the first {config.sessions} sessions"
    versions = ", ".join(f"{name} {number}" for name, number in log.versions.items())
    table = results_table(
        log.rows, notes=notes_of(log), further={"process": log.processes, "replies from commit": commits}
    )
    return (
        f"# Leaderboard\n\n{table.markdown()}\n"
        f"Percent, `reward` in points; in brackets 95% intervals (CR2 over {config.cluster}s). Exact accuracy and its "
        f"parts by logged type, {first}; metrics `{config.metrics}`, "
        f"reward `{config.reward}`, replies read `{config.extraction}`. {INCOMPLETE}\n\n"
        f"Store `{store['name']}` ({store['source']}, fingerprint `{store['fingerprint']}`), split `{config.split}`, "
        f"{sessions}, seed {config.seed}. Versions: {versions}. Made at {log.provenance['time']} by "
        f"{format_commit(log.provenance)}, Python {log.provenance['python']}.\n"
    )


def format_commit(described: dict[str, Any]) -> str:
    """The commit of a provenance, for people."""
    if not described["commit"]:
        return "a package"
    return str(described["commit"])[:12] + (" with changes" if described["dirty"] else "")


def merge(folder: Path, other: Path) -> int:
    """Merges the replies of the evaluation `other`, or of a series, into `folder`, whose next run scores them.

    A file of replies is named by everything that decides a reply (store, context, seed, code, …), so replies that do
    not belong to a run are never counted in it.

    Returns:
        How many of its files held something new.

    Raises:
        BadConfig: `other` holds no reply, or another run is at work in an evaluation of `folder`.
    """
    sources = sorted(other.rglob("agents/*/replies/*.jsonl"))
    if not sources:
        raise BadConfig(f"'{other}' holds no replies: is it the folder of a leaderboard?")
    new = 0
    with progress_bar("files of replies", len(sources)) as advance:
        for source in sources:
            path = folder / source.relative_to(other)
            with working_alone_in(path.parents[3]):
                new += merge_replies(source, path, note=True)
            advance(1)
    return new
