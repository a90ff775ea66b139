"""Training: SFT and GRPO on session trees.

store ─► tokens (chat template) ─► SFT ─► rollouts ─► session tree ─► policy statistics ─► reward ─► GRPO loss
"""

import os

# Makes waiting threads of torch give up their core soon. On a machine shared with other work, spinning threads made
# GRPO on two cores a hundred times slower. OpenMP reads this when torch is loaded; a value set by the user stays.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
