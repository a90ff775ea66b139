"""The papers' rewards by name.

| preset | what | source |
|---|---|---|
| `shop_r1` | hierarchical, DARS 1000, format 0.5, self-certainty 0.005 | Shop-R1, table 1 |
| `no_format` | without the format reward | Shop-R1, table 4 |
| `no_rationale` | without the rationale reward (self-certainty) | Shop-R1, table 4 |
| `no_dars` | without the reward scale: ROUGE-L counts once | Shop-R1, table 4 |
| `binary_action` | 1 for an exact match in place of the hierarchical action reward; format and self-certainty stay | Shop-R1, table 4 |
| `binary_action_scaled` | the same with 1000 for an exact match of any type | Shop-R1, table 4 |
| `binary` | 1 for an exact match and nothing else: "RL (Binary)", "SFT + RL (Binary)" | Shop-R1, table 2 |
| `customer_r1` | exact match weighed by kind of action, a wrong click -1, format 1 | Customer-R1, section 4.3 |
| `customer_r1_rl_only` | the same with a wrong click 0, for RL without SFT | Customer-R1, section 4.3 |

Table 4's first row (no SFT) trains with `shop_r1`. Its row "binary" has a tick at "Reward Scale" and does not say what is
scaled where nothing is long text: hence two presets.
"""  # noqa: E501 - a table row is a line

from collections.abc import Mapping

from replay_sessions.foundation.errors import BadConfig, did_you_mean
from shop_env.reward.score import RewardConfig

REWARD_PRESETS: Mapping[str, RewardConfig] = {
    "shop_r1": RewardConfig(),
    "no_format": RewardConfig(format=0.0),
    "no_rationale": RewardConfig(self_certainty_weight=0.0),
    "no_dars": RewardConfig(dars=1.0),
    "binary_action": RewardConfig(kind="binary"),
    "binary_action_scaled": RewardConfig(kind="binary", exact_points=1000.0),
    "binary": RewardConfig(kind="binary", format=0.0, self_certainty_weight=0.0),
    "customer_r1": RewardConfig(kind="customer_r1", format=1.0, self_certainty_weight=0.0),
    "customer_r1_rl_only": RewardConfig(kind="customer_r1", format=1.0, self_certainty_weight=0.0, wrong_click=0.0),
}


def reward_preset(name: str) -> RewardConfig:
    """The reward of that name.

    >>> reward_preset("no_dars").dars
    1.0
    """
    if name not in REWARD_PRESETS:
        raise BadConfig(f"Unknown reward preset {name!r}. {did_you_mean(name, REWARD_PRESETS)}")
    return REWARD_PRESETS[name]
