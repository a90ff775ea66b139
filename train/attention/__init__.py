"""Attention over session trees: implementations of one protocol, each equal to unpacked rows.

merged         each chunk of a trunk by all replies behind it at once, then merged: CPU, where pages are long
structured     each trunk causally, each step's replies against the trunk up to their fork: CPU, and wherever torch runs
depth_first    one chunk of a trunk and one step's replies at a time: where memory is short
"""
