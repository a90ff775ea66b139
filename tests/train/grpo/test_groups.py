"""The work of sampling a batch, by hand."""

from shop_env.reward import RewardConfig
from tests.train.test_grpo import sampled
from train.flops import Work
from train.grpo.groups import sampled_work, score_group


def test_a_trunk_is_prefilled_once_and_each_reply_is_decoded_behind_its_fork(tiny):
    trunk = tiny.trunks[0]
    first, second = trunk.replies[0], trunk.replies[1]
    groups = [
        score_group(trunk, step, sampled(tiny, replies), tiny.tokenizer, RewardConfig())
        for step, replies in ((second, [[5] * 3, [5] * 2]), (first, [[5] * 4]))
    ]
    prompt = second.start  # the last fork
    # A reply of n tokens feeds n - 1 of them back, which see the prompt and one another.
    pairs = prompt * (prompt + 1) // 2 + (2 * second.start + 3) + (1 * second.start + 1) + (3 * first.start + 6)
    assert sampled_work(groups) == Work(tokens=prompt + 2 + 1 + 3, targets=3 + 2 + 4, pairs=pairs)
