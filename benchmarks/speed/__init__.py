"""The speed of the packages, part by part: the command of benchmarks/studies/speed, which measures a checkout."""
