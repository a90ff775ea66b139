"""The end of a run: every policy, baseline and ceiling on people held out, and what the paired differences say.

    checkpoints, baselines, oracle ─► evaluate (same steps for all) ─► table ─► results.json, results.md, steps/*.jsonl

Decoding is the paper's (temperature 0.6), greedy beside it. Nothing here has any part in choosing weights: that is done
on the validation split.
"""

import json
import os
from collections.abc import Sequence
from typing import Any

import msgspec

from agents.evaluate import evaluate
from agents.llm_grpo.agent import PolicyAgent
from agents.llm_grpo.config import EvaluationConfig
from agents.llm_grpo.training_run import EVALUATION_BATCH, TrainingRun
from agents.protocol import Agent
from agents.registry import make_agent
from agents.results import ResultRow, markdown_table, render_table, results_console, summarise
from agents.scripted.oracle import OracleAgent, ceiling, is_demo_store
from replay_sessions.provenance import provenance
from shop_env.metrics import StepRecord, paired_difference
from shop_env.metrics.intervals import Cluster

__all__ = ["Comparison", "evaluate_run", "verdict"]

LABELS = {"sft": "SFT", "sft_longer": "SFT, same time", "shop_r1": "Shop-R1"}
CLUSTER: Cluster = "user"


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A paired difference on the same steps, `first` minus `second`, with its 95% interval over users."""

    first: str
    second: str
    metric: str
    difference: float
    low: float
    high: float

    def sentence(self) -> str:
        """In words, in percentage points."""
        verdict = "differ" if self.low > 0 or self.high < 0 else "cannot be told apart"
        return (
            f"{self.first} − {self.second}, {self.metric}: {100 * self.difference:+.1f} points "
            f"[{100 * self.low:+.1f}, {100 * self.high:+.1f}]: they {verdict}."
        )


def evaluate_run(run: TrainingRun) -> list[ResultRow]:
    """Evaluates everything the run made, prints the table, and writes results.json and results.md."""
    config = run.config.evaluation
    records = {label: _records(run, agent, label) for label, agent in _agents(run)}
    rows = [summarise(rows, label=label, cluster=CLUSTER) for label, rows in records.items()]
    comparisons = _comparisons(records, config)
    _print(run, rows, comparisons)
    _write(run, rows, comparisons)
    return rows


def _agents(run: TrainingRun) -> list[tuple[str, Agent]]:
    """Every row of the table: baselines, trained policies (sampled, then greedy), the oracle where it is known."""
    config = run.config.evaluation
    agents: list[tuple[str, Agent]] = [(name, make_agent(name, store=run.store)) for name in config.agents]
    for name in run.results:
        path = str(run.checkpoint(name))
        agents.append((_sampled(name, config), PolicyAgent(path, temperature=config.temperature)))
        if config.greedy:
            agents.append((_greedy(name), PolicyAgent(path, temperature=0.0)))
    if is_demo_store(run.store):
        agents.append((f"oracle, T {config.temperature:g}", OracleAgent(config.temperature)))
        agents.append(("oracle, greedy", OracleAgent(0.0)))
    return agents


def _sampled(name: str, config: EvaluationConfig) -> str:
    return f"{LABELS[name]}, T {config.temperature:g}"


def _greedy(name: str) -> str:
    return f"{LABELS[name]}, greedy"


def _records(run: TrainingRun, agent: Agent, label: str) -> list[StepRecord]:
    config = run.config
    return evaluate(
        agent,
        run.store,
        config.evaluation.split,
        context=config.context,
        reward=config.reward_config,
        seed=config.seed,
        max_sessions=config.evaluation.sessions,
        batch_size=EVALUATION_BATCH,
        progress=label,
    )


def _comparisons(records: dict[str, list[StepRecord]], config: EvaluationConfig) -> list[Comparison]:
    """Shop-R1 against SFT and against SFT of the same time, sampled and greedy; exact match and macro-F1."""
    comparisons = []
    for decoding in (_sampled, lambda name, _: _greedy(name)):
        for other in ("sft", "sft_longer"):
            first, second = decoding("shop_r1", config), decoding(other, config)
            if first not in records or second not in records:
                continue
            for metric in ("exact_accuracy", "type_f1_macro"):
                figures = paired_difference(records[first], records[second], metric, cluster=CLUSTER)
                difference, low, high = figures
                comparisons.append(
                    Comparison(first=first, second=second, metric=metric, difference=difference, low=low, high=high)
                )
    return comparisons


def verdict(comparisons: Sequence[Comparison]) -> str:
    """What the exact match of Shop-R1 says, in one sentence, whatever it is; "" where there is nothing to compare."""
    exact = [comparison for comparison in comparisons if comparison.metric == "exact_accuracy"]
    parts = [f"{_signed(c)} against {c.second}" for c in exact]
    if not parts:
        return ""
    sampled, greedy = exact[0], next((c for c in exact if c.first.endswith("greedy")), None)
    if greedy is None or sampled.low <= 0:
        reading = "GRPO raised exact match" if sampled.low > 0 else "GRPO did not raise exact match"
    elif greedy.low > 0:
        reading = "GRPO raised exact match under both decodings"
    else:
        reading = (
            "GRPO raised exact match when sampling only: it sharpened the policy, the likeliest reply is no better"
        )
    return f"In one sentence: {reading} (points of exact match, Shop-R1 minus the other: {'; '.join(parts)})."


def _signed(comparison: Comparison) -> str:
    told_apart = comparison.low > 0 or comparison.high < 0
    return f"{100 * comparison.difference:+.1f}{'' if told_apart else ' (not told apart from 0)'}"


def _print(run: TrainingRun, rows: Sequence[ResultRow], comparisons: Sequence[Comparison]) -> None:
    console = results_console()
    split, users = run.config.evaluation.split, "users held out" if _users_held_out(run) else "sessions held out"
    title = f"{run.store.path.name}, {split} split: {rows[0].sessions} sessions, {users}; 95% intervals over users"
    console.print(render_table(rows, title=title, width=console.width))
    for comparison in comparisons:
        console.print(comparison.sentence(), highlight=False, soft_wrap=True)
    if sentence := verdict(comparisons):
        console.print(sentence, highlight=False, soft_wrap=True)
    console.print(f"Written: {run.folder}/results.md, results.json", highlight=False)


def _users_held_out(run: TrainingRun) -> bool:
    store = run.store
    trained = {store.user_id(session_id) for session_id in store.session_ids("train")}
    return not any(store.user_id(session_id) in trained for session_id in store.session_ids("test"))


def _write(run: TrainingRun, rows: Sequence[ResultRow], comparisons: Sequence[Comparison]) -> None:
    config = run.config
    results: dict[str, Any] = {
        "rows": msgspec.to_builtins(rows),
        "comparisons": msgspec.to_builtins(comparisons),
        "ceiling": msgspec.to_builtins(_ceiling(run)),
        "phases": msgspec.to_builtins(run.results),
        "users_held_out": _users_held_out(run),
        "provenance": provenance(msgspec.to_builtins(config), store=run.store, seed=config.seed),
    }
    text = [
        f"# {run.folder.name}\n",
        markdown_table(rows),
        *(f"- {c.sentence()}" for c in comparisons),
        verdict(comparisons),
    ]
    for name, content in (("results.json", json.dumps(results, indent=2)), ("results.md", "\n".join(text))):
        partial = run.folder / (name + ".partial")
        partial.write_text(content + "\n", encoding="utf-8")
        os.replace(partial, run.folder / name)


def _ceiling(run: TrainingRun) -> Any:
    if not is_demo_store(run.store):
        return None
    config = run.config.evaluation
    return ceiling(run.store, config.split, temperature=config.temperature, max_sessions=config.sessions)
