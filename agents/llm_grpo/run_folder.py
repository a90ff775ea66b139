"""Begins, resumes and extends the folder of a run.

An existing run can be extended by the phases of another table, and by more agents to evaluate:

    run.json's configuration ─┐
    the call's configuration ─┴─► extend_config ─► the same run, with the phases and agents that it lacked at its end

A phase depends on its own numbers, the model, the store, the seed, and the phases in its `start` and `same_compute_as`;
no other phase affects it. So everything but the phases must be equal, and so must phases of the same name. Their
labels, comparisons and further temperatures belong to the table and may differ, and so may the agents beside them.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.data import rationale_coverage
from agents.llm_grpo.named_code import named_code, remember_run
from replay_sessions.foundation.config_errors import what_is_wrong
from replay_sessions.foundation.durable_files import replace_json
from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch
from replay_sessions.foundation.locks import TRAINING_LOCK
from replay_sessions.foundation.provenance import provenance
from replay_sessions.store import SessionStore
from shop_env.evaluation.results_file import digest_file
from shop_env.observation import drop_former_keys
from shop_env.versions import SCORING_VERSION
from train.metrics_file import METRICS_FILE

# No training or evaluation depends on these keys. The path of the store may differ, but not its fingerprint.
FREE = ("store", "save_every_s", "watch")
OF_THE_TABLE = ("label", "against", "temperatures")
ROWS_BESIDE = ("agents", "most_probable_action")

T = TypeVar("T")


def read_config(folder: Path) -> TrainConfig:
    """Reads the configuration of the run in a folder.

    Raises:
        BadConfig: The folder holds no run, or its configuration cannot be read.
    """
    try:
        return msgspec.convert(_read_record(folder)["config"], TrainConfig)
    except FileNotFoundError as error:
        raise BadConfig(f"'{folder}' holds no run to go on with: it has no run.json.") from error
    except (ValueError, KeyError) as error:
        reason = what_is_wrong(error, TrainConfig).rstrip(". ")
        raise BadConfig(f"'{folder}/run.json' cannot be read: {reason}. Start a new run.") from error


def has_begun(folder: Path) -> bool:
    """Returns whether the folder holds a run; a run that failed before its first step does not count."""
    if not (folder / "run.json").exists():
        return False
    metrics = folder / METRICS_FILE
    others = {file.name for file in folder.iterdir()} - {"run.json", METRICS_FILE, TRAINING_LOCK}
    return bool(others) or not metrics.exists() or metrics.stat().st_size > 0


def check_store(folder: Path, store: SessionStore) -> None:
    """Checks that the run in a folder began with this store.

    Raises:
        CheckpointMismatch: The run began with another store.
    """
    begun_with = _read_record(folder)["store"]["fingerprint"]
    if begun_with != store.fingerprint:
        raise CheckpointMismatch(
            f"the run in '{folder}' began with store {begun_with[:12]}, but '{store.path}' is now "
            f"{store.fingerprint[:12]}. Put the former store back, or start a new run."
        )


def read_template_date(folder: Path) -> str:
    """Returns the day that chat templates write which ask for the date: that on which the run began."""
    record = _read_record(folder)
    date: str = record.get("template_date") or record["time"][:10]
    return date


def extend_config(begun: TrainConfig, config: TrainConfig, folder: Path) -> TrainConfig:
    """Returns the configuration of a run with the phases and agents of `config` that it lacks.

    Args:
        begun: The configuration of the run in `folder`.

    Raises:
        BadConfig: The configurations differ in more than their phases and agents.
    """
    shared = begun.phases.keys() & config.phases.keys()
    if differing := sorted(_differences(_decisive(begun, shared), _decisive(config, shared))):
        raise BadConfig(
            f"'{folder}' holds a run of another configuration ({'; '.join(differing)}): give another --out, or the "
            "same options."
        )
    phases = config.phases | begun.phases
    for name in shared:
        first, second = begun.phases[name], config.phases[name]
        phases[name] = msgspec.structs.replace(
            first,
            against=_union(first.against, second.against),
            temperatures=_union(first.temperatures, second.temperatures),
        )
    evaluation = msgspec.structs.replace(
        config.evaluation, agents=_union(begun.evaluation.agents, config.evaluation.agents)
    )
    in_order = {name: phases[name] for name in _union(begun.phases, config.phases)}
    return msgspec.structs.replace(config, phases=in_order, evaluation=evaluation)


def record_extension(folder: Path, config: TrainConfig, store: SessionStore) -> None:
    """Adds an extension to run.json, which is replaced atomically."""
    begun = read_config(folder)
    if config == begun:
        return
    record = _read_record(folder)
    now = provenance(config, store=store, seed=config.seed)
    added = {
        "phases": [name for name in config.phases if name not in begun.phases],
        "agents": [name for name in config.evaluation.agents if name not in begun.evaluation.agents],
    }
    record["config"] = now["config"]
    record.setdefault("extended", []).append(added | {key: now[key] for key in ("time", "commit", "dirty")})
    _write_record(folder, record)


def _union(first: Iterable[T], second: Iterable[T]) -> tuple[T, ...]:
    """Returns the values of both in order, without repetition."""
    return tuple(dict.fromkeys([*first, *second]))


def _decisive(config: TrainConfig, phases: Collection[str]) -> dict[str, Any]:
    """Returns the keys of a configuration that decide these phases and their evaluation."""
    tables: dict[str, Any] = msgspec.to_builtins(config)
    for name in FREE:
        del tables[name]
    del tables["model"]["gradient_checkpointing"]  # saves memory and changes no result
    for name in ROWS_BESIDE:
        del tables["evaluation"][name]
    tables["phases"] = {
        name: {key: value for key, value in tables["phases"][name].items() if key not in OF_THE_TABLE}
        for name in phases
    }
    return tables


def _differences(first: Any, second: Any, path: str = "") -> Iterator[str]:
    """Yields each key with different values, as `grpo.steps: 70, now 5`."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in first.keys() | second.keys():
            yield from _differences(first.get(key), second.get(key), f"{path}.{key}" if path else key)
    elif first != second:
        yield f"{path}: {json.dumps(first)}, now {json.dumps(second)}"


def begin_run(folder: Path, config: TrainConfig, store: SessionStore) -> str | None:
    """Writes run.json of a new or extended run.

    Returns:
        A line for the log: the number of training steps with a rationale; of an existing run, its files that changed,
        or that it began under other rules of scoring.

    Raises:
        BadConfig: Too few training steps have a rationale for the reward.
        CheckpointMismatch: The existing run began with another store.
    """
    if has_begun(folder):
        check_store(folder, store)
        record_extension(folder, config, store)
        record = _read_record(folder)
        former = record.get("files", {})
        now = _digests(former)
        changed = [file for file in former if former[file] != now.get(file)]
        if (version := record.get("scoring", 2)) != SCORING_VERSION:
            changed.append(f"the rules of scoring (version {version}, now {SCORING_VERSION}: CHANGELOG.md)")
        return f"warning: changed since this run began: {', '.join(changed)}" if changed else None
    coverage = rationale_coverage(store.sessions("train"), inferred=config.inferred)
    if problem := coverage.problem(config):
        raise BadConfig(problem)
    record = provenance(config, store=store, seed=config.seed)
    files = _digests(name.partition(":")[0] for name in named_code(record["config"]))
    record |= {"scoring": SCORING_VERSION, "template_date": record["time"][:10], "rationales": coverage._asdict()}
    _write_record(folder, record | {"files": files})
    return coverage.describe(config)


def _digests(files: Iterable[str]) -> dict[str, str]:
    """Returns the digest of each text that is the path of a file."""
    return {file: digest_file(Path(file)) for file in files if os.path.isfile(file)}


def _read_record(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(drop_former_keys((folder / "run.json").read_bytes()))
    return record


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    replace_json(folder / "run.json", record)
    if named_code(record["config"]):
        remember_run(folder / "run.json")
