"""Runs a leaderboard: generates each agent's missing replies, then computes records, metrics and tables.

    LeaderboardConfig ─► agents ─► evaluation.evaluate ─► Entry ─► EvaluationLog ─► results.json, leaderboard.md

A run that was stopped resumes, and steps at which an agent failed (a server that was down) are run again.
"""

import unicodedata
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agents.agent_identity import gives_probabilities, reply_identity
from agents.catalogue import AGENTS, GROUPS, WITHOUT_PAGE, is_own
from agents.child_process import STEP_LIMIT_S, build_agent
from agents.llm_grpo.run_folder import has_begun
from agents.registry import format_spec, is_trusted, parse_spec
from replay_sessions.foundation.config_errors import convert_fields, keyword_signature
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.locks import working_alone_in
from replay_sessions.foundation.provenance import provenance
from replay_sessions.store import SessionStore
from shop_env.evaluation.entries import AgentToEvaluate, build_entry, build_log, prepare_agent, remarks_of, run_agent
from shop_env.evaluation.results import intervals_text, results_table
from shop_env.evaluation.results_file import EvaluationLog, folder_name, write_log
from shop_env.evaluation.scored_steps import EvaluationConfig
from shop_env.evaluation.waves import AgentSpec
from train.model_paths import check_model

WHOLE_FOLDER = "results.json and its table"  # a key, beside the labels of agents, in the mismatches of `verify`
INCOMPLETE = "A row with errors (steps without a reply) is not ranked; its metrics are of the steps with a reply."


class LeaderboardConfig(EvaluationConfig):
    """Ranks agents on the steps of a split.

    Attributes:
        agents: Agents to rank, separated by commas or spaces: a name, MODULE:CLASS, FILE.py:CLASS or a checkpoint
            folder, each with optional ?key=value arguments and a LABEL= before it. `baselines` stands for all fitted
            baselines.
        out: The folder for results.json, leaderboard.md and each agent's steps.
        no_page: Replace page_counts and ngram by history_counts and history_ngram, which learn without pages.
        reward: The reward preset for the column `reward`, or FILE.py:FUNCTION of your own.
        trust: Agents of your own files, of those in --agents, that may read all steps of a session together, as this
            project's language models do. They could copy the answers; a note below the table names them.
        fresh: Run all agents again, also at steps with a saved reply.
        step_time_limit_s: The time limit for one reply of an external agent, in seconds.
    """

    agents: tuple[str, ...]
    out: str
    reward: str = "shop_r1"
    no_page: bool = False
    trust: tuple[str, ...] = ()
    fresh: bool = False
    step_time_limit_s: float = STEP_LIMIT_S

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.step_time_limit_s > 0:
            raise BadConfig(f"--step-time-limit-s is {self.step_time_limit_s:g}; it must be more than 0")

    @property
    def folder(self) -> Path:
        return Path(self.out)

    @property
    def evaluation(self) -> EvaluationConfig:
        """The settings that affect the metrics."""
        return EvaluationConfig(**{name: getattr(self, name) for name in EvaluationConfig.__struct_fields__})


def rank(**options: Any) -> EvaluationLog:
    """Ranks agents from Python: the options of `shop-r1 rank`, with their names and values.

        log = rank(agents=["random", "runs/first/sft"], store="demo", out="runs/board", context={"persona": "none"})
        log.to_pandas()

    Raises:
        BadConfig: An option does not exist or does not fit.
    """
    return run_leaderboard(convert_fields(options, LeaderboardConfig, "rank"))


vars(rank)["__signature__"] = keyword_signature(LeaderboardConfig, result=EvaluationLog)


def run_leaderboard(config: LeaderboardConfig) -> EvaluationLog:
    """Runs the agents at the steps that are missing, and writes results.json and leaderboard.md."""
    store = SessionStore.open(config.store)
    store.check_content()
    evaluation, folder = config.evaluation, config.folder
    if has_begun(folder):
        raise BadConfig(f"'{folder}' holds a training run, whose results.json would be lost: give another --out")
    specs = agent_specs(config.agents, no_page=config.no_page)
    for spec in specs:
        if spec.target == "local" and isinstance(path := spec.arguments.get("path"), str):
            check_model(path)
    evaluation.check_functions()
    for text in config.trust:
        if not any(is_trusted(spec, (text,)) and not is_own(spec) for spec in specs):
            raise BadConfig(f"--trust {text} names no agent of your own in --agents: give it as there, without a label")
    agents = [agent_to_evaluate(spec, config, store) for spec in specs]
    keys, entries = evaluation.keys(store), []
    with working_alone_in(folder):
        for agent in agents:
            prepare_agent(agent, fresh=config.fresh)
            entries.append(build_entry(agent, run_agent(agent, keys))[0])
        # Made after the agents ran, so that it lists all packages that they loaded.
        described = provenance(config, store=store, seed=config.seed)
        log = build_log(evaluation, store, entries, provenance=described)
        write_log(folder, log, markdown(log))
    return log


def agent_to_evaluate(spec: AgentSpec, config: LeaderboardConfig, store: SessionStore) -> AgentToEvaluate:
    """Returns an agent to evaluate; a misspelt name is reported here, before hours of work."""
    trusted = is_trusted(spec, config.trust)
    return AgentToEvaluate(
        spec=spec,
        name=spec.label,
        context=config.context,
        identity=reply_identity(spec, config.context, store, config.seed, trusted=trusted),
        build=partial(build_agent, spec, store, config.context, config.step_time_limit_s, trusted=trusted),
        config=config.evaluation,
        store=store,
        folder=config.folder,
        probabilities=gives_probabilities(spec),
    )


def agent_specs(texts: tuple[str, ...], *, no_page: bool = False) -> list[AgentSpec]:
    """Parses the agents of `--agents`.

    With `no_page`, an agent that reads pages is replaced by its counterpart without pages, or left out if that one is
    named too.

    Raises:
        BadConfig: No agent is named, or a label cannot be used (`check_labels`).
    """
    names = agent_texts(texts)
    if no_page:
        names = [WITHOUT_PAGE.get(name, name) for name in names if WITHOUT_PAGE.get(name) not in names]
    specs = list(map(parse_spec, names))
    if not specs:
        raise BadConfig("--agents names no agent; for example --agents random,majority")
    check_labels(specs)
    return specs


def check_labels(specs: Sequence[AgentSpec]) -> None:
    """Raises BadConfig if two agents have the same label, or if a label is reserved or the name of another agent."""
    labels: dict[str, str] = {}
    for spec in specs:
        # Labels that look alike or share a folder count as the same.
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
    """Splits the texts of `--agents` at commas and expands groups; `%2C` stands for a comma in an argument.

    >>> agent_texts(("random, SFT=runs/sft", "baselines"))[:3]
    ['random', 'SFT=runs/sft', 'context_majority']
    """
    names = [text.strip() for listed in texts for text in listed.split(",")]
    return [text for name in names if name for text in GROUPS.get(name, (name,))]


def notes_of(log: EvaluationLog) -> list[str]:
    """Returns the notes below a table: the agents behind labels, agents with malformed replies only, and remarks."""
    texts = {entry.label: format_spec(entry.spec) for entry in log.entries}
    malformed = [
        f"{entry.label}: no reply can be read, and each is a miss. `shop-r1 agents check '{texts[entry.label]}'` says "
        "why; a model may need --extraction lenient, or the instructions it was trained with (style=compact)"
        for entry in log.entries
        if (invalid := entry.row.figures.get("invalid_rate")) and invalid.value == 1.0
    ]
    return [*(f"{label} is {text}" for label, text in texts.items() if label != text), *malformed, *remarks_of(log)]


def markdown(log: EvaluationLog) -> str:
    """Returns the content of leaderboard.md."""
    config, store = log.config, log.provenance["store"]
    first = "first actions scored" if config.first_action else "first actions not scored"
    if log.sample.inferred:
        first += f", inferred ones {'' if config.inferred else 'not '}scored"
    versions = ", ".join(f"{name} {number}" for name, number in log.versions.items())
    table = results_table(log.rows, notes=notes_of(log), sample=log.sample, metrics=config.metrics)
    return (
        f"# Leaderboard\n\n{table.markdown()}\n"
        f"{intervals_text(log.rows, config.reward_config, f'{config.cluster}s')} Exact accuracy and its parts by "
        f"logged type, {first}; metrics `{config.metrics}`, reward `{config.reward}`, replies read "
        f"`{config.extraction}`. {INCOMPLETE}\n\n"
        f"Store `{store['name']}` ({store['source']}, fingerprint `{store['fingerprint']}`), split `{config.split}`, "
        f"{log.sample.text}, seed {config.seed}. Versions: {versions}. Made at {log.provenance['time']} by "
        f"{format_commit(log.provenance)}, Python {log.provenance['python']}.\n"
    )


def format_commit(described: dict[str, Any]) -> str:
    """Formats the commit of a provenance for a sentence."""
    if not described["commit"]:
        return "a package"
    return str(described["commit"])[:12] + (" with changes" if described["dirty"] else "")
