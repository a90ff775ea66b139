"""Random, mutated and hostile replies: each gives a breakdown, none an exception, and quickly."""

import json
import math
import random
import time
from collections.abc import Iterator

import pytest

from replay_sessions.schema import Click, Terminate, TypeAndSubmit
from shop_env.prompts import STYLES
from shop_env.replies import MalformedReply, Reply, format_reply, parse_reply
from shop_env.reward import RewardBreakdown, reward_preset, score_reply

CONFIGS = [reward_preset(name) for name in ("shop_r1", "binary", "customer_r1")]
LOGGED = [
    Click(name="search_results.red_kettle_1_7_l.view_product", click_type="product_link"),
    TypeAndSubmit(name="search_input", text="red kettle 红色水壶"),
    Terminate(),
]
SIGNS = "{}[]\",:\\/ \n\t\r\x00\x1f\x7f\u2028\ud800\udfff\ufeffaZ09é红🫖-+.eE'`#"
SNIPPETS = [
    "null",
    "true",
    "NaN",
    "Infinity",
    "-1e999",
    "\\u0000",
    "\\ud800",
    "\\ud83d\\ude00",
    '"rationale"',
    '"action"',
]
SNIPPETS += [
    '"type"',
    '"name":',
    '"click"',
    '{"type": "terminate"}',
    "```json",
    "<think>",
    "</s>",
    "<|im_end|>",
    "//x\n",
]

INSTRUCTIONS = STYLES["full"]["actions"] + STYLES["full"]["reply"]


def base_reply(rng: random.Random) -> str:
    return format_reply(rng.choice(["I want it.", 'He said "no".', "", "x" * 300]), rng.choice(LOGGED))


def mutated(rng: random.Random) -> str:
    text = base_reply(rng)
    for _ in range(rng.randrange(1, 5)):
        place, other = rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)
        low, high = sorted((place, other))
        text = rng.choice(
            [
                text[:place] + rng.choice(SIGNS) + text[place:],
                text[:place] + rng.choice(SNIPPETS) + text[place:],
                text[:low] + text[min(high, low + 5) :],
                text[:low] + text[low:high] * 2 + text[high:],
                text[:place],
                text.swapcase(),
            ]
        )
    return text


def wrong_types(rng: random.Random) -> str:
    values = [None, True, 3, -0.0, 1e308, [], {}, "", "click", [["x"]], {"type": "click"}, 10**30, "\ud800"]
    action = {
        "type": rng.choice([*values, "click", "terminate"]),
        "name": rng.choice(values),
        "text": rng.choice(values),
    }
    fields = {"rationale": rng.choice(values), "action": rng.choice([action, *values])}
    return json.dumps(fields, ensure_ascii=rng.random() < 0.5)


def deep(rng: random.Random) -> str:
    depth = rng.choice([10, 200, 900, 3_000])
    opening, closing = rng.choice([("[", "]"), ('{"a":', "}"), ('{"rationale":', "}"), ('{"action":{"x":', "}}")])
    return opening * depth + rng.choice(["1", ""]) + closing * rng.choice([0, depth])


def noise(rng: random.Random) -> str:
    return "".join(rng.choice(SIGNS) for _ in range(rng.randrange(60)))


def any_text(rng: random.Random) -> str:
    return "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randrange(40)))


def snippets(rng: random.Random) -> str:
    return "".join(rng.choice([*SNIPPETS, *SIGNS]) for _ in range(rng.randrange(30)))


def echo(rng: random.Random) -> str:
    cut = rng.randrange(len(INSTRUCTIONS))
    return rng.choice([INSTRUCTIONS[:cut], INSTRUCTIONS[cut:] + base_reply(rng), base_reply(rng) * 2])


MAKERS = [base_reply, mutated, mutated, mutated, wrong_types, deep, noise, any_text, snippets, echo]


def hostile_replies(count: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(count):
        yield rng.choice(MAKERS)(rng)


def check(reply: str, number: int) -> None:
    breakdown = score_reply(reply, LOGGED[number % 3], CONFIGS[number // 3 % 3], self_certainty=1.0)
    assert isinstance(breakdown, RewardBreakdown)
    assert math.isfinite(breakdown.total)


def check_many(count: int, seed: int) -> None:
    seconds = []
    for number, reply in enumerate(hostile_replies(count, seed)):
        begin = time.perf_counter()
        check(reply, number)
        if len(reply) < 10_000:
            seconds.append(time.perf_counter() - begin)
        if number % 50 == 0:
            parsed = parse_reply(reply)
            assert isinstance(parsed, Reply | MalformedReply)
            if isinstance(parsed, Reply):
                start, end = parsed.rationale_span
                assert json.loads(f'"{reply[start:end]}"') == parsed.rationale
    assert sorted(seconds)[int(0.95 * len(seconds))] < 1e-3


def test_thousands_of_hostile_replies_give_a_breakdown_within_a_millisecond() -> None:
    check_many(20_000, seed=1)


@pytest.mark.slow  # about a minute
def test_a_million_hostile_replies_give_a_breakdown_within_a_millisecond() -> None:
    check_many(1_000_000, seed=2)


@pytest.mark.parametrize(
    "reply",
    [
        "x" * 10_000_000,
        "[" * 10_000_000,
        '"' * 10_000_000,
        " " * 10_000_000 + "{",
        '{"rationale": "' + "a" * 10_000_000 + '", "action": {"type": "terminate"}}',
        '{"rationale": "", "action": {"type": "click", "name": "' + "red kettle " * 900_000 + '"}}',
        '{"rationale": "", "action": {"type": "click", "name": "' + "\\u0061" * 1_500_000 + '"}}',
        '{"rationale": "", "action": {"type": "click", "name": [' + "1," * 5_000_000 + "1]}}",
        '{"rationale": ' + "9" * 10_000_000 + "}",
    ],
    ids=["letters", "brackets", "quotes", "spaces", "rationale", "name", "escapes", "list", "number"],
)
def test_ten_megabytes_give_a_breakdown(reply: str) -> None:
    for number in range(3):
        check(reply, number)
