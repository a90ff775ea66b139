"""Speed, each part against the usual way to do the same, in the same run."""
