"""Speed of asking an agent through a process of its own, beside asking the same agent in this process; wall time.

    python -m benchmarks.speed agents

2,000 steps of the demo shop. `copy_match` reads every page, `majority` does nothing: there the way alone is measured.
"""

import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import islice

from agents.agent_process import AgentProcess
from agents.registry import make_agent, parse_spec
from benchmarks.studies.speed.measurement import Measurement, Options, compare_rates, median_times
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import generate_replies
from shop_env.evaluation.scored_steps import scored_steps

_STEPS, _QUICK_STEPS = 2_000, 100
_RUNS = 9


def measure(options: Options) -> Iterator[Measurement]:
    """Replies to the same steps, by turns."""
    runs, store = options.get_runs(_RUNS), SessionStore.open("demo")
    steps = list(islice(scored_steps(store, "all"), _QUICK_STEPS if options.quick else _STEPS))
    for name in ("copy_match", "majority"):
        child = AgentProcess(parse_spec(name), store)
        agents = {"ours": child, "in_process": make_agent(name, store=store)}
        tasks = {
            label: partial(lambda agent: deque(generate_replies(agent, steps), 0), agent)
            for label, agent in agents.items()
        }
        seconds = median_times(tasks, runs, clock=time.perf_counter)
        child.close()
        yield compare_rates(f"agents.{name}.in_process", "replies/s", len(steps), seconds, "in_process", runs)
