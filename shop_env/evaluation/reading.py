"""Summarises the comparisons of a training run in sentences, for the terminal and the report.

    EvaluationLog ─► a sentence for each policy: what is better and what is worse; the training time of each phase;
    the limits of one training seed

A policy that gains in exact match may lose in macro-F1. The intervals of one run are over users and say nothing about
another seed.
"""

from collections.abc import Iterator
from itertools import groupby

from shop_env.evaluation.results_file import EvaluationLog

COMPARED = {"exact_accuracy": "exact match", "type_f1_macro": "macro-F1"}


def training_sentences(log: EvaluationLog) -> Iterator[str]:
    """Yields the sentences; none for a leaderboard."""
    if log.training is None:
        return
    against: dict[str, list[str]] = {}
    for (first, second), tests in groupby(log.training.comparisons, lambda test: (test.first, test.second)):
        figures = (f"{test.text()} of {COMPARED.get(test.metric, test.metric)} ({test.verdict})" for test in tests)
        against.setdefault(first, []).append(f"{', '.join(figures)} against {second}")
    yield from (f"{first}: {'; '.join(texts)}." for first, texts in against.items())
    phases = log.provenance["config"]["phases"]
    times = (
        f"{phases[name]['label']} {phase['seconds']:.0f} s ({phase['steps']:,} steps)"
        for name, phase in log.training.phases.items()
        if phase["steps"]
    )
    yield f"Time in training steps: {', '.join(times)}."
    yield from convergence_sentences(log)
    yield "The intervals are over users, for one training seed; another seed may order the policies otherwise."


def convergence_sentences(log: EvaluationLog) -> Iterator[str]:
    """Yields a sentence for each phase whose NLL on validation was still falling at its end."""
    assert log.training is not None, "the log of a training run"
    for name, phase in log.training.phases.items():
        if phase.get("is_converged") is False:
            label = log.provenance["config"]["phases"][name]["label"]
            yield f"{label}: not converged: by NLL on validation sessions the best step is the last."
