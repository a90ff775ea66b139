"""Finds out from the metrics of a run's steps whether the policy has collapsed.

A policy has *collapsed* when nearly all its replies have the same type of action, or the same action. This must hold
for several steps in a row, so that an unusual batch does not count. The shoppers must also have acted differently on
the same steps: with a log of 97% clicks, a policy that nearly always clicks has not collapsed.
"""

from collections.abc import Mapping, Sequence

COLLAPSED_SHARE = 0.95  # a collapsed policy exceeds this share of the readable replies in each step
LOGGED_SHARE = 0.8  # if the logged actions of the same steps reach this share, the data themselves are uniform
COLLAPSE_STEPS = 5


def describe_collapse(latest: Sequence[Mapping[str, float]]) -> str:
    """Describes in one line the action that the policy has collapsed onto in the last `COLLAPSE_STEPS` steps.

    Returns "" if the policy has not collapsed.

    >>> step = {"sampled_click": 0.97, "logged_click": 0.6, "sampled_terminate": 0.03, "logged_terminate": 0.2}
    >>> describe_collapse([step] * 5)
    "the policy has collapsed onto 'click': over 95% of its readable replies 5 steps running, under 80% of the log"
    >>> describe_collapse([step] * 4), describe_collapse([step | {"logged_click": 0.9}] * 5)
    ('', '')
    """
    steps = list(latest)[-COLLAPSE_STEPS:]
    if len(steps) < COLLAPSE_STEPS:
        return ""
    for name in steps[-1]:  # the action shares of train.grpo.groups
        prefix, _, kind = name.partition("_")
        sampled = [step.get(name, 0.0) for step in steps]
        logged = [step.get(f"logged_{kind}", 0.0) for step in steps]
        if prefix == "sampled" and min(sampled) > COLLAPSED_SHARE and sum(logged) / len(steps) < LOGGED_SHARE:
            target = "one same action" if kind == "commonest" else repr(kind)
            return (
                f"the policy has collapsed onto {target}: over {COLLAPSED_SHARE:.0%} of its readable replies "
                f"{COLLAPSE_STEPS} steps running, under {LOGGED_SHARE:.0%} of the log"
            )
    return ""
