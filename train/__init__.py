"""Training: SFT and GRPO on session trees.

store ─► tokens (chat template) ─► SFT ─► rollouts ─► session tree ─► policy statistics ─► reward ─► GRPO loss
"""
