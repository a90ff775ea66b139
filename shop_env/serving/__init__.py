"""The env for other people's tools: each interface is thin, and all of them hand out and score the same tasks.

    SessionStore ─► tasks.py ─┬─► openenv/               a server for OpenEnv's clients (TRL and others)
                              ├─► verifiers_taskset.py   a taskset for verifiers
                              ├─► inspect_task.py        a task for Inspect
                              └─► __main__.py            JSON lines for everything else

A replayed step is one single-turn task (tasks.py says why). Each interface needs its tool, which the extra of the same
name brings, and is imported by nothing else here. docs/serving.md shows each of them in a few lines.
"""
