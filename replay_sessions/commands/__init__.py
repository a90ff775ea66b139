"""The command line of replay_sessions: one module a command, and what all of the project's commands share."""
