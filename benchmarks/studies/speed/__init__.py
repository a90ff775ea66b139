"""Speed: the parts of `python -m benchmarks.speed`, each against the usual way to do the same, and whole programs.

env reward simplify training rollouts training_precision training_gpu       parts, in one command
collect import_at_scale import_raw_pages import_recording simplify_against   programs of their own
"""
