"""Many agents, stores, trained seeds and decoding draws from one file: leaderboards, filled and pooled."""
