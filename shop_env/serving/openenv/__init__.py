"""The env as a server for OpenEnv's clients, and so for what trains through them (TRL, Unsloth, SkyRL, verifiers, …).

    options.py ─► server.py ─► environments.py (one instance for each client, and what travels)

Started by `shop-r1 serve openenv`; all but the command line needs the extra `openenv`.
"""
