"""When a policy has collapsed: it answers nearly everything with one type of action, or with one same action.

Told from the figures of some steps running, so that a batch with an odd mix says nothing, and only where the shoppers
did otherwise on the same steps: a log that is 97% clicks makes no policy that clicks a collapsed one.
"""

from collections.abc import Mapping, Sequence

__all__ = ["COLLAPSED_SHARE", "COLLAPSE_STEPS", "LOGGED_SHARE", "collapse"]

COLLAPSED_SHARE = 0.95  # of the readable replies of each step; above it is the collapse
LOGGED_SHARE = 0.8  # of the logged actions over the same steps; from it on the data itself is that uniform
COLLAPSE_STEPS = 5  # running

_SAMPLED, _LOGGED = "sampled_", "logged_"  # the action mixes of train.grpo.figures


def collapse(latest: Sequence[Mapping[str, float]]) -> str:
    """What the policy has collapsed onto over the last `COLLAPSE_STEPS` steps, in words; "" where it has not.

    >>> step = {"sampled_click": 0.97, "logged_click": 0.6, "sampled_terminate": 0.03, "logged_terminate": 0.2}
    >>> collapse([step] * 5)
    "the policy has collapsed onto 'click': over 95% of its readable replies 5 steps running, under 80% of the log"
    >>> collapse([step] * 4), collapse([step | {"logged_click": 0.9}] * 5)
    ('', '')
    """
    steps = list(latest)[-COLLAPSE_STEPS:]
    if len(steps) < COLLAPSE_STEPS:
        return ""
    kinds = [name.removeprefix(_SAMPLED) for name in steps[-1] if name.startswith(_SAMPLED)]
    for kind in kinds:
        sampled = [step.get(_SAMPLED + kind, 0.0) for step in steps]
        logged = [step.get(_LOGGED + kind, 0.0) for step in steps]
        if min(sampled) > COLLAPSED_SHARE and sum(logged) / len(steps) < LOGGED_SHARE:
            named = "one same action" if kind == "commonest" else repr(kind)
            return (
                f"the policy has collapsed onto {named}: over {COLLAPSED_SHARE:.0%} of its readable replies "
                f"{COLLAPSE_STEPS} steps running, under {LOGGED_SHARE:.0%} of the log"
            )
    return ""
