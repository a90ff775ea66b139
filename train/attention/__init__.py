"""Attention over session trees, equal to that of unpacked rows.

partial      the kernels: queries meet some keys, forward and backward, and results are merged by log-sums
structured   a pack: trunks causally, replies against parts of their trunk and themselves
trial        what a machine computes beside what plain code gives
choice       which kernel a trunk has, and what is kept for the backward pass
"""
