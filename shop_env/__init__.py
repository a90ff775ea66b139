"""The environment: replays logged sessions and scores replies."""
