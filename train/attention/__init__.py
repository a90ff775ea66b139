"""Attention over session trees; its results equal those of attention over unpacked rows.

partial      the kernels: queries attend to a part of the keys, forward and backward; results are merged by log-sum-exp
structured   attention over a pack: trunks attend causally, replies to parts of their trunk and to themselves
trial        compares a kernel's results on this machine with those of plain code
choice       selects the kernel of trunks, and which activations are kept for the backward pass
"""
