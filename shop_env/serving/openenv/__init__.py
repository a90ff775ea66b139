"""A server of the env for OpenEnv's clients, and so for trainers that use them (TRL, Unsloth, SkyRL, verifiers, …).

    options.py ─► server.py ─► environments.py (the messages, and one instance for each client)

`shop-r1 serve openenv` starts it. All modules except options.py need the extra `openenv`.
"""
