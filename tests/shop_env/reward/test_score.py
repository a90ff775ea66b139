"""The reward, row by row by hand (tests/golden/reward_table.json), and its properties for every reply."""

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit
from shop_env.replies import MalformedReply, Reply, format_reply, parse_reply
from shop_env.reward import (
    REWARD_PRESETS,
    RewardBreakdown,
    RewardConfig,
    best_breakdown,
    reward_preset,
    score_reply,
)
from shop_env.reward.click_types import CLICK_TYPES
from tests.json_files import read_json
from tests.processes import ROOT

ROWS = read_json(ROOT / "tests" / "golden" / "reward_table.json")
NAMES = (
    st.sampled_from(["", "cart", "a.b.c.d", "a.b.c.x", "红色", "search_results.red_kettle.view_product"]) | st.text()
)
WORDS = st.from_regex(r"[abc1][!-~]{0,12}", fullmatch=True)


def actions(names: st.SearchStrategy[str]) -> st.SearchStrategy[Action]:
    return st.one_of(
        st.builds(lambda name: Click(name=name), names),
        st.builds(lambda name, text: TypeAndSubmit(name=name, text=text), names, names),
        st.just(Terminate()),
    )


ACTIONS = actions(NAMES)
PRESETS = st.sampled_from(sorted(REWARD_PRESETS))


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['preset']}: {row['why']}" for row in ROWS])
def test_row_of_the_reward_table(row):
    logged = msgspec.convert(row["logged"], Action)
    reply = row["reply"] if "reply" in row else json.dumps({"rationale": "Because.", "action": row["action"]})
    breakdown = score_reply(reply, logged, reward_preset(row["preset"]), self_certainty=row.get("self_certainty"))
    earned = {name: value for name, value in msgspec.structs.asdict(breakdown).items() if value}
    earned.pop("self_certainty_weight", None)
    assert earned == pytest.approx(row["parts"], rel=1e-12)
    assert breakdown.total == pytest.approx(row["total"], rel=1e-12)


# Customer-R1, section 4.3: w(a) of an exact match; every reply earns format 1 besides.
CUSTOMER_WEIGHTS = {
    "review": 1,
    "search": 1,
    "product_option": 10,
    "product_link": 1000,
    "other": 1000,
    "purchase": 1000,
    "nav_bar": 1000,
    "page_related": 1000,
    "quantity": 1000,
    "suggested_term": 1000,
    "cart_side_bar": 1000,
    "cart_page_select": 1000,
    "filter": 1000,
}


@pytest.mark.parametrize(("preset", "wrong"), [("customer_r1", -1), ("customer_r1_rl_only", 0)])
@pytest.mark.parametrize("click_type", CLICK_TYPES)
def test_customer_r1_s_weight_of_each_kind_of_click(click_type, preset, wrong):
    config, logged = reward_preset(preset), Click(name="x17", click_type=click_type)
    right = score_reply(format_reply("", Click(name="x17")), logged, config)
    assert (right.exact, right.wrong_click, right.total) == (
        CUSTOMER_WEIGHTS[click_type],
        0,
        CUSTOMER_WEIGHTS[click_type] + 1,
    )
    other = score_reply(format_reply("", Click(name="x18")), logged, config)
    assert (other.exact, other.wrong_click, other.total) == (0, wrong, 1 + wrong)


@pytest.mark.parametrize("preset", ["customer_r1", "customer_r1_rl_only"])
def test_customer_r1_s_weights_off_clicks(preset):
    config, typed = reward_preset(preset), TypeAndSubmit(name="q", text="kettle")
    actions: list[Action] = [typed, Terminate(), TypeAndSubmit(name="q", text="kettles")]
    earned = [[score_reply(format_reply("", a), logged, config).total for a in actions] for logged in actions[:2]]
    assert earned == [[2001, 1, 1], [1, 2, 1]]


@given(preset=PRESETS, logged=ACTIONS, predicted=ACTIONS, certainty=st.none() | st.floats(0, 50))
def test_the_parts_sum_to_the_total(preset, logged, predicted, certainty):
    reply = format_reply("Because.", predicted)
    breakdown = score_reply(reply, logged, REWARD_PRESETS[preset], self_certainty=certainty)
    parts = msgspec.structs.asdict(breakdown)
    measured, weight = parts.pop("self_certainty"), parts.pop("self_certainty_weight")
    assert measured == certainty
    assert breakdown.without_certainty == sum(parts.values())
    assert breakdown.total == sum(parts.values()) + (0.0 if measured is None else weight * measured)


@given(logged=actions(WORDS), predicted=actions(WORDS))
def test_rewards_of_ascii_texts_by_the_rouge_score_package_are_the_same(logged, predicted):
    reply, other = format_reply("", predicted), RewardConfig(similarity="rouge_score")
    assert score_reply(reply, logged, RewardConfig()) == score_reply(reply, logged, other)


@given(preset=PRESETS, logged=ACTIONS, predicted=ACTIONS)
def test_no_reply_earns_more_than_the_logged_action(preset, logged, predicted):
    config = REWARD_PRESETS[preset]
    best = best_breakdown(logged, config)
    assert score_reply(format_reply("Because.", logged), logged, config) == best
    assert score_reply(format_reply("Because.", predicted), logged, config).total <= best.total


@pytest.mark.parametrize("preset", sorted(REWARD_PRESETS))
def test_the_perfect_reply_to_a_text_that_was_not_submitted_earns_most(preset):
    config, text = REWARD_PRESETS[preset], TypeAndSubmit(name="search", text="kettle", submitted=False)
    reply = format_reply("", text)
    assert score_reply(reply, text, config) == best_breakdown(text, config) != RewardBreakdown()
    assert score_reply(reply, Terminate(), config, extraction="strict_input").format == config.format


@pytest.mark.parametrize("preset", [*REWARD_PRESETS, f"{__name__}:three_points"])
def test_an_empty_rationale_earns_nothing_where_the_reward_requires_one(preset):
    free, click = reward_preset(preset), Click(name="cart")
    strict = msgspec.structs.replace(free, requires_rationale=True)
    for empty in ("", " \n"):
        assert score_reply(format_reply(empty, click), click, strict, self_certainty=20.0) == RewardBreakdown()
        assert score_reply(format_reply(empty, click), click, free) == best_breakdown(click, free)
    written = format_reply("I buy it.", click)
    assert score_reply(written, click, strict) == score_reply(written, click, free)
    assert best_breakdown(click, strict) == best_breakdown(click, free)


def three_points(reply: Reply, logged: Action) -> float:
    return 3.0


@given(preset=PRESETS, logged=ACTIONS, predicted=ACTIONS)
def test_a_field_that_was_not_logged_pays_nothing_whatever_is_predicted(preset, logged, predicted):
    """The logged name, or text, is taken away: what is predicted there no longer matters."""
    config = REWARD_PRESETS[preset]
    for field in set(msgspec.structs.asdict(logged)) & {"name", "text"}:
        unlogged = msgspec.structs.replace(logged, **{field: ""})
        earned = score_reply(format_reply("", predicted), unlogged, config)
        assert getattr(earned, f"{field}_similarity") == getattr(earned, f"{field}_present") == earned.exact == 0
        if type(predicted) is type(logged):
            other = msgspec.structs.replace(predicted, **{field: "something else"})
            assert score_reply(format_reply("", other), unlogged, config) == earned


def test_an_empty_click_does_not_hit_the_jackpot_where_no_name_was_logged():
    empty = '{"rationale": "", "action": {"type": "click"}}'
    totals = {name: score_reply(empty, Click(name=""), config).total for name, config in REWARD_PRESETS.items()}
    assert totals == {
        "shop_r1": 0.8,
        "no_format": 0.3,
        "no_rationale": 0.8,
        "no_dars": 0.8,
        "binary_action": 0.5,
        "binary_action_scaled": 0.5,
        "binary": 0,
        "customer_r1": 1,
        "customer_r1_rl_only": 1,
    }
    typed = TypeAndSubmit(name="", text="kettle")  # half of it is known
    assert score_reply(format_reply("", typed), typed, RewardConfig()).total == 0.5 + 0.3 + 0.1 + 1000


def test_a_click_is_no_wrong_one_where_the_log_cannot_tell():
    click, config = format_reply("", Click(name="cart")), reward_preset("customer_r1")
    unknown: list[Action] = [Click(name=""), TypeAndSubmit(name="", text="")]
    assert [score_reply(click, logged, config).wrong_click for logged in unknown] == [0, -1]


def test_reply_text_and_parsed_reply_score_alike():
    text = format_reply("Because.", Click(name="cart"))
    config = reward_preset("shop_r1")
    assert score_reply(text, Click(name="cart"), config) == score_reply(parse_reply(text), Click(name="cart"), config)
    assert score_reply(MalformedReply("not_json", ""), Terminate(), config) == RewardBreakdown()


def test_unmeasured_self_certainty_is_none_and_measured_zero_is_zero():
    text, config = format_reply("Because.", Terminate()), reward_preset("shop_r1")
    assert score_reply(text, Terminate(), config).self_certainty is None
    assert score_reply(text, Terminate(), config, self_certainty=0.0).self_certainty == 0.0


@pytest.mark.parametrize("logged", [5, 4])
def test_a_similarity_equal_to_the_threshold_pays_if_it_is_enough_to_reach_it(logged):
    """3 words of 5 are 0.7499999999999999 in floating point, 3 words of 4 with another one 0.75."""
    words = ["a", "b", "c", "d", "e"][:logged]
    name, reply = ".".join(words), format_reply("", Click(name=".".join(words[:3] + ["x"] * (5 - logged))))
    paid = {
        (rule, tau): score_reply(reply, Click(name=name), RewardConfig(threshold=tau, threshold_rule=rule)).total > 700
        for rule in ("exceeds", "reaches")
        for tau in (0.749, 0.75, 0.751)
    }
    assert [key for key in paid if paid[key]] == [("exceeds", 0.749), ("reaches", 0.749), ("reaches", 0.75)]


SHOPS = {  # the right product, a wrong one, and two queries that share a word
    "Japanese": ("赤いやかん", "青いポット", "iPhone ケース", "iPhone 充電器"),
    "Chinese": ("红色水壶", "蓝色茶壶", "苹果手机壳", "苹果充电器"),
    "Russian": ("красный_чайник", "синий_горшок", "samsung чёрный чехол", "samsung белый телевизор"),
    "Korean": ("빨간_주전자", "파란_냄비", "아이폰 케이스", "아이폰 충전기"),
    "Hebrew": ("קומקום_אדום", "סיר_כחול", "כיסוי לאייפון", "מטען לאייפון"),
    "pointed Hebrew": ("קוּמְקוּם_אָדֹם", "סִיר_כָּחֹל", "חֻלְצָה לְבָנָה", "חֻלְצָה שְׁחוֹרָה"),
    "Arabic": ("غلاية_حمراء", "قدر_أزرق", "غطاء آيفون", "شاحن آيفون"),
    "vocalised Arabic": ("كِتَاب", "كَاتِب", "كِتَابُ الطَّبْخ", "كِتَابُ الشِّعْر"),
    "Thai": ("กาต้มน้ำสีแดง", "หม้อสีน้ำเงิน", "เคสไอโฟน", "ที่ชาร์จไอโฟน"),
    "Hindi": ("लाल_केतली", "नीला_बर्तन", "किताब", "कीताब"),
    "Greek": ("κόκκινος_βραστήρας", "μπλε_κατσαρόλα", "θήκη iphone", "φορτιστής iphone"),
    "Khmer": ("កំសៀវក្រហម", "ឆ្នាំងខៀវ", "ស្រោមទូរស័ព្ទ", "ឆ្នាំងសាក"),
}


@pytest.mark.parametrize("script", SHOPS)
def test_a_wrong_product_or_query_earns_less_than_the_right_one_in_any_script(script):
    right, wrong, query, other_query = SHOPS[script]
    names = [f"results.{product}.view_product" for product in (right, wrong)]
    pairs: list[tuple[Action, Action]] = [
        (Click(name=names[0]), Click(name=names[1])),
        (TypeAndSubmit(name="search", text=query), TypeAndSubmit(name="search", text=other_query)),
        (TypeAndSubmit(name=names[0], text="a"), TypeAndSubmit(name=names[1], text="a")),
    ]
    for logged, predicted in pairs:
        earned = score_reply(format_reply("", predicted), logged, RewardConfig()).total
        best = best_breakdown(logged, RewardConfig()).total
        assert best > 1000
        assert earned < best


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "sparse"}, r"reward\.kind is 'sparse'; it must be one of hierarchical, binary, customer_r1"),
        ({"self_certainty": "entropy"}, r"reward\.self_certainty is 'entropy'; it must be one of kl_uniform_policy, "),
        ({"similarity": "bleu"}, r"reward\.similarity is 'bleu'; it must be one of rouge_l, rouge_score"),
        ({"threshold": 75}, r"reward\.threshold is 75; .* between 0 and 1"),
        ({"threshold": 1.0}, r"reward\.threshold is 1\.0 and no similarity exceeds 1.*threshold_rule = \"reaches\""),
        ({"threshold_rule": "above"}, r"reward\.threshold_rule is 'above'; it must be one of exceeds, reaches"),
        ({"dars": -1.0}, r"reward\.dars is -1\.0; it must be finite and not negative"),
        ({"format": math.nan}, r"reward\.format is nan; it must be finite and not negative"),
        ({"click_type_points": {"review": -1.0}}, r"reward\.click_type_points is .*; it must be finite"),
        ({"wrong_click": 1.0}, r"reward\.wrong_click is 1\.0; it is a penalty"),
    ],
)
def test_a_wrong_reward_setting_names_the_value_and_the_remedy(options, message):
    with pytest.raises(BadConfig, match=message):
        RewardConfig(**options)


def test_a_misspelt_preset_gets_a_hint():
    with pytest.raises(BadConfig, match=r"Unknown reward preset 'shop_r'\. Did you mean 'shop_r1'\?"):
        reward_preset("shop_r")


def test_the_reward_computed_in_the_docs_is_that_of_the_code(capsys):
    page = (ROOT / "docs" / "your_reward.md").read_text(encoding="utf-8")
    code, printed = page.partition("worked out as in its figure 1")[2].split("```")[1:4:2]
    exec(code.removeprefix("python"), {})
    assert capsys.readouterr().out == printed.removeprefix("\n")
