"""Training: SFT and GRPO on session trees.

store ─► tokens (chat template) ─► SFT ─► rollouts ─► session tree ─► policy statistics ─► reward ─► GRPO loss
"""

import os

# Threads of torch that wait for one another give up their core soon. On a machine shared with other work, spinning on
# it slowed GRPO on two cores a hundredfold. Read when torch is loaded; a value set by the user stays.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
