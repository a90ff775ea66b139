"""The command line of replay_sessions: one module per command, and the code that its commands share."""
