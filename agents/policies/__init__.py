"""Two tiny policies of the demo shop that come with the package, so that a first ranking has a trained agent.

    shop-r1 rank --agents demo_shop_r1,demo_sft,page_counts --store demo --sessions 100

They are `sft` and `shop_r1` of a run of `make train` (preset tiny_cpu, seed 0), in bfloat16. To update them:

    python -m agents.policies runs/demo

demo.py   the two policies as agents
"""

from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = ("sft", "shop_r1")
