"""The env for other tools: thin interfaces that all serve and score the same tasks.

    SessionStore ─► tasks.py ─┬─► openenv/               a server for OpenEnv's clients (TRL and others)
                              ├─► verifiers_taskset.py   a taskset for verifiers
                              ├─► inspect_task.py        a task for Inspect
                              └─► __main__.py            JSON lines for everything else

A replayed step is one single-turn task (tasks.py says why). Each interface needs its tool, which the extra of the same
name installs, and no other module imports it. docs/serving.md shows how to use each of them.
"""
