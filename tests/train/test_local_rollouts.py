"""The local engine samples what the model itself would."""

import pytest
import torch

from tests.oracles.unpacked_policy import unpacked_log_probs
from tests.train.conftest import Tiny
from train.policy import Policy
from train.rollout_engines import local
from train.rollout_engines.local import LocalEngine, generate
from train.rollout_engines.sampling import SamplingConfig, StopReason


def prompts_of(tiny: Tiny, sessions: int) -> list[list[int]]:
    return [trunk.tokens[: reply.start] for trunk in tiny.trunks[:sessions] for reply in trunk.replies]


def test_greedy_replies_equal_those_of_the_models_own_generate(tiny: Tiny) -> None:
    prompts = prompts_of(tiny, 4)
    config = SamplingConfig(temperature=0, max_new_tokens=9, end_token=tiny.tokenizer.eos_token_id)
    plain = tiny.plain_model()
    for prompt, (reply,) in zip(prompts, generate(Policy(tiny.model), prompts, config), strict=True):
        expected = plain.generate(
            torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)), max_new_tokens=9, do_sample=False
        )
        assert reply.tokens == expected[0, len(prompt) :].tolist()


def test_order_of_prompts_and_batch_size_do_not_change_a_greedy_reply(tiny: Tiny) -> None:
    prompts = prompts_of(tiny, 6)
    config = SamplingConfig(temperature=0, max_new_tokens=6, end_token=tiny.tokenizer.eos_token_id)
    small = SamplingConfig(temperature=0, max_new_tokens=6, end_token=config.end_token, max_batch_tokens=100)
    backwards = generate(Policy(tiny.model), prompts[::-1], config)[::-1]
    assert generate(Policy(tiny.model), prompts, small) == generate(Policy(tiny.model), prompts, config) == backwards


def test_trunks_that_are_read_one_by_one_give_the_same_replies(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = prompts_of(tiny, 6)
    config = SamplingConfig(temperature=0, max_new_tokens=6, end_token=tiny.tokenizer.eos_token_id)
    together = generate(Policy(tiny.model), prompts, config)
    monkeypatch.setattr(local, "READ_AT_ONCE", 1)
    assert generate(Policy(tiny.model), prompts, config) == together


def test_a_reply_ends_with_the_end_token_or_at_the_limit(tiny: Tiny) -> None:
    end = tiny.tokenizer.eos_token_id
    config = SamplingConfig(temperature=3.0, max_new_tokens=40, end_token=end, replies=20)
    replies = [reply for group in generate(Policy(tiny.model), prompts_of(tiny, 3), config) for reply in group]
    for reply in replies:
        assert end not in reply.tokens[:-1]
        assert (reply.tokens[-1] == end) == (reply.stop == StopReason.END)
        assert reply.stop == StopReason.END or len(reply.tokens) == 40
    assert {reply.stop for reply in replies} == {StopReason.END, StopReason.LENGTH}


def test_the_same_seed_samples_the_same_replies(tiny: Tiny) -> None:
    config = SamplingConfig(temperature=1.0, max_new_tokens=8, end_token=tiny.tokenizer.eos_token_id, replies=3)
    engine = LocalEngine(Policy(tiny.model))
    first, second, other = (engine.sample(prompts_of(tiny, 3), config, seed=seed) for seed in (5, 5, 6))
    assert first == second != other


def test_sampled_tokens_follow_the_models_probabilities(tiny: Tiny) -> None:
    prompt = tiny.trunks[0].tokens[: tiny.trunks[0].replies[1].start]
    config = SamplingConfig(temperature=0.6, max_new_tokens=2, end_token=-1, replies=4000)
    (sampled,) = generate(Policy(tiny.model), [prompt], config, torch.Generator().manual_seed(0))
    replies = [reply.tokens for reply in sampled]
    first = max({reply[0] for reply in replies}, key=lambda token: sum(reply[0] == token for reply in replies))
    then = [reply[1] for reply in replies if reply[0] == first]
    plain = tiny.plain_model()
    with torch.no_grad():
        share = unpacked_log_probs(plain, prompt, [first], 0.6).exp().item()
        likeliest = max(set(then), key=then.count)
        share_then = unpacked_log_probs(plain, prompt, [first, likeliest], 0.6)[1].exp().item()
    assert abs(len(then) / len(replies) - share) < 4 * (share * (1 - share) / len(replies)) ** 0.5
    assert abs(then.count(likeliest) / len(then) - share_then) < 4 * (share_then * (1 - share_then) / len(then)) ** 0.5


@pytest.mark.parametrize("by_uniforms", [False, True])
def test_a_reply_says_with_which_probability_each_of_its_tokens_was_drawn(tiny: Tiny, by_uniforms: bool) -> None:
    prompts = prompts_of(tiny, 2)
    config = SamplingConfig(temperature=0.6, max_new_tokens=7, end_token=tiny.tokenizer.eos_token_id, replies=3)
    uniforms = torch.rand(len(prompts), 3, 7, generator=torch.Generator().manual_seed(1)) if by_uniforms else None
    plain = tiny.plain_model()
    for prompt, replies in zip(prompts, generate(Policy(tiny.model), prompts, config, uniforms=uniforms), strict=True):
        for reply in replies:
            with torch.no_grad():
                expected = unpacked_log_probs(plain, prompt, reply.tokens, 0.6)
            assert reply.log_probs == pytest.approx(expected.tolist(), abs=1e-5)
