"""A change of a tiny shop's pages, asked of agents whose answers are known: shifts by hand, honest checks, refusals."""

import math
from pathlib import Path

import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from benchmarks.ab.pages.__main__ import main
from benchmarks.ab.pages.config import PagesConfig
from benchmarks.ab.pages.question import PagesResults, Shift, run_pages
from benchmarks.ab.pages.report import sentences
from replay_sessions.foundation.command_line import parse_options
from replay_sessions.schema import Click, Persona, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.store import StoreWriter
from replay_sessions.store.splits import SplitPlan
from tests.json_files import read_json

USERS = 10
PRODUCT = (
    '<html><body><a name="home">Home</a><b>$4 shipping</b><button name="tea.add_to_cart">Add</button>\n{}</body></html>'
)
START = "<html><body><a name='tea'>Tea</a></body></html>"
BUY = '<button name="tea.buy_now">Buy</button>'
FREE = """
[[rule]]
select = "b"
replace = { "$4 shipping" = "Free shipping" }
"""

# Each call is counted, so that nothing is asked twice unseen.
AGENTS = '''
import pathlib, random
from replay_sessions.foundation.command_line import parse_options
from replay_sessions.schema import Click, Terminate
from shop_env.replies import format_reply

ASKED = pathlib.Path(__file__).with_name("asked.txt")
UP = pathlib.Path(__file__).with_name("up")
ADD, BUY = Click(name="tea.add_to_cart"), Click(name="tea.buy_now")

def reply(action):
    with ASKED.open("a") as file:
        file.write("x")
    return format_reply("", action)

def sees_it(observation):
    """Buys where shipping is free, unless it is the one who never does."""
    return reply(BUY if "Free" in observation["page"] and "never" not in observation["persona"] else ADD)

def looks_back(observation):
    return reply(ADD if len(observation["history"]) == 1 else Terminate())

def draws(observation, seed=None):
    return reply(random.Random(seed).choice([ADD, BUY, Terminate()]))

def minds_blank_lines(observation):
    return reply(BUY if "\\n\\n" in observation["page"] else ADD)

def always_buys(observation):
    return reply(BUY)

def rambles(observation):
    return "I would buy it." if "Free" in observation["page"] else reply(BUY)

def fails_once(observation):
    if "Free" in observation["page"] and "never" in observation["persona"] and not UP.exists():
        raise OSError("server down")
    return sees_it(observation)

def types(observation):
    return '{"rationale": "", "action": {"type": "input", "name": "home", "text": "tea"}}'

def is_down(observation):
    raise OSError("server down")

class Weighs:
    """20% buy where shipping costs, 50% where it is free."""

    def reset(self, *, seed=None):
        pass

    def act(self, observation):
        return format_reply("", ADD)

    def probabilities(self, observations):
        found = []
        for observation in observations:
            share = 0.5 if "Free" in observation["page"] else 0.2
            found.append({BUY: share, ADD: 0.7 - share, Terminate(): 0.3})
            reply(ADD)
        return found
'''


class Shop:
    """A store of ten people with three steps each, agents beside it, and the command."""

    results: PagesResults

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        (folder / "mine.py").write_text(AGENTS, encoding="utf-8")
        self.change = self.rules(FREE)
        self.store = folder / "store"
        self.fill(USERS)

    def fill(self, users: int, test: float = 1.0) -> None:
        with StoreWriter(self.store, source="test", splits=SplitPlan(test=test, validation=0.0)) as writer:
            for number in range(users):
                writer.write(
                    Session(
                        session_id=f"s{number}",
                        user_id=f"u{number}",
                        source="test",
                        persona=Persona(text="I never buy." if number == 0 else "I buy."),
                        steps=(
                            Step(page=START, action=Click(name="tea")),
                            Step(page=PRODUCT.format(BUY), action=Click(name="tea.buy_now" if number < 4 else "home")),
                            Step(page="<html><body><p>Bye</p></body></html>", action=Terminate()),
                        ),
                    )
                )

    def rules(self, text: str, name: str = "change.toml") -> Path:
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def words(self, *agents: str, more: tuple[str, ...] = ()) -> list[str]:
        named = [f"{name}={self.folder}/mine.py:{name}" for name in agents]
        words = ["--agents", *named, "--store", str(self.store), "--change", str(self.change)]
        return [*words, "--out", str(self.folder / "out"), *more]

    def call(self, *agents: str, more: tuple[str, ...] = (), code: int = 0) -> str:
        """What the command prints."""
        assert main(self.words(*agents, more=more)) == code
        told = self._capsys.readouterr()
        return " ".join((told.err if code == 2 else told.out).split())

    def ask(self, *agents: str, more: tuple[str, ...] = ()) -> str:
        """What the command would print below its tables."""
        config = parse_options(PagesConfig, self.words(*agents, more=more), program="pages")
        config.out.mkdir(exist_ok=True)
        self.results = run_pages(config)
        return " ".join(sentences(self.results))

    @property
    def asked(self) -> int:
        file = self.folder / "asked.txt"
        return file.stat().st_size if file.exists() else 0

    def shifts(self, label: str) -> dict[str, Shift]:
        return next(row for row in self.results.rows if row.label == label).shifts


@pytest.fixture
def shop(tmp_path, capsys) -> Shop:
    return Shop(tmp_path, capsys)


def test_shifts_intervals_and_p_are_those_worked_out_by_hand(shop):
    """Nine of ten people go from cart to purchase: a difference of 1 for nine, of 0 for one."""
    text = shop.ask("sees_it", "looks_back")
    results = shop.results
    assert (results.touched, results.step_count, results.users) == (10, 20, 10)
    assert results.shoppers == {
        "purchase": 0.4, "cart": 0.0, "other clicks": 0.6, "search": 0.0, "leave": 0.0, "impossible": 0.0,
    }  # fmt: skip
    purchase, cart, leave = (shop.shifts("sees_it")[kind] for kind in ("purchase", "cart", "leave"))
    assert (purchase.on_a, purchase.on_b) == (0.0, 0.9)
    error = math.sqrt(0.9 * 0.1 * 10 / 9) / math.sqrt(10)
    effect = purchase.difference.effect
    assert effect.difference == pytest.approx(0.9)
    assert effect.standard_error == pytest.approx(error)
    reach = stats.t(9).ppf(0.975) * error
    assert (effect.low, effect.high) == pytest.approx((0.9 - reach, 0.9 + reach))
    p_value = 2 * stats.t(9).sf(0.9 / error)
    assert purchase.difference.p_value == pytest.approx(p_value)
    assert purchase.difference.holm_p_value == pytest.approx(6 * p_value)  # of six kinds
    power = TTestPower().solve_power(nobs=10, alpha=0.05, power=0.8)
    assert purchase.difference.could_be_seen == pytest.approx(power * error * math.sqrt(10), rel=1e-3)
    assert cart.difference.effect.difference == pytest.approx(-0.9)
    assert leave.difference.p_value == 1
    assert "sees_it: purchase +90.0 [67.4, 112.6] points; cart −90.0 [−112.6, −67.4] points. Placebo: no" in text
    assert "looks_back: answers B exactly as A, on every page" in text


def test_probabilities_are_asked_for_once_and_shift_without_chance(shop):
    shop.ask("Weighs")
    assert shop.asked == 3 * 10  # A, B, placebo
    shifts = shop.shifts("Weighs")
    assert (shifts["purchase"].on_a, shifts["purchase"].on_b) == pytest.approx((0.2, 0.5))
    assert (shifts["cart"].on_a, shifts["cart"].on_b) == pytest.approx((0.5, 0.2))
    effect = shifts["purchase"].difference.effect
    assert (effect.difference, effect.low, effect.high) == pytest.approx((0.3, 0.3, 0.3))
    assert shifts["purchase"].difference.p_value == pytest.approx(2 / 2**10)
    assert shifts["leave"].on_b == pytest.approx(0.3)
    assert shop.results.rows[0].draws == 0
    shop.ask("Weighs")
    assert shop.asked == 3 * 10


def test_an_agent_that_ignores_the_change_draws_the_same_by_the_same_seeds(shop):
    shop.ask("draws", more=("--draws", "20"))
    shifts = shop.shifts("draws").values()
    for one in [shift.difference for shift in shifts] + [shift.placebo for shift in shifts]:
        assert (one.effect.difference, one.effect.low, one.effect.high, one.p_value) == (0, 0, 0, 1)
    assert 0.2 < shop.shifts("draws")["purchase"].on_a < 0.5


def test_a_page_that_only_looks_other_raises_the_placebo_alarm(shop):
    text = shop.ask("minds_blank_lines")
    assert "minds_blank_lines: answers B exactly as A" in text and "Placebo: a false alarm in purchase, cart" in text


def test_a_placebo_of_ones_own_takes_the_place_of_blank_lines(shop):
    own = shop.rules('[[rule]]\nselect = "b"\nreplace = { "$4" = "$4.00" }', "placebo.toml")
    assert "Placebo: no false alarm" in shop.ask("sees_it", "minds_blank_lines", more=("--placebo", str(own)))
    assert shop.shifts("minds_blank_lines")["purchase"].placebo.effect.difference == 0
    elsewhere = shop.rules('[[rule]]\nselect = "p"\nhide = true', "elsewhere.toml")
    text = shop.call("sees_it", more=("--placebo", str(elsewhere)), code=2)
    assert "changes none of the pages that the change does" in text


def test_a_click_on_an_element_that_b_removed_is_impossible(shop):
    shop.change = shop.rules('[[rule]]\nselect = "[name$=buy_now]"\nhide = true')
    shop.ask("always_buys")
    purchase, impossible = (shop.shifts("always_buys")[kind] for kind in ("purchase", "impossible"))
    assert (purchase.on_a, purchase.on_b) == (1.0, 0.0)
    assert (impossible.on_a, impossible.on_b) == (0.0, 1.0)
    shop.change = shop.rules(FREE)
    shop.ask("rambles")  # a reply that nobody can read is nothing that can be done either
    assert shop.shifts("rambles")["impossible"].on_b == 1.0


def test_a_step_without_an_answer_is_in_no_share_and_is_asked_again(shop):
    text = shop.ask("fails_once")
    assert (shop.results.rows[0].steps, shop.results.rows[0].failed) == (9, 1)
    assert shop.shifts("fails_once")["purchase"].on_b == 1.0
    assert "no answer to 1 of 10 pages, which are in no share" in text
    (shop.folder / "up").touch()
    text = shop.ask("fails_once")
    assert shop.results.rows[0].failed == 0 and "no answer" not in text
    assert shop.shifts("fails_once")["purchase"].on_b == 0.9
    assert "is_down: no answer to any page" in shop.call("is_down", code=1)


def test_another_change_is_another_question_about_b_alone(shop):
    shop.ask("sees_it", more=("--draws", "1"))
    before = shop.asked
    shop.change = shop.rules(FREE.replace("Free shipping", "Free delivery"))
    shop.ask("sees_it", more=("--draws", "1"))
    assert shop.asked == before + 10


def test_the_command_writes_and_prints_effects_and_their_limits(shop):
    text = shop.call("sees_it", more=("--draws", "1"))
    assert "cart 0.0 100.0 10.0 −90.0 5.1e−05" in text and "[−112.6, −67.4]" in text
    assert "the agents never saw B" in text and "docs/demo_shop.md" in text
    record = read_json(shop.folder / "out/pages.json")
    assert record["results"]["rows"][0]["shifts"]["purchase"]["on_b"] == 0.9
    assert record["provenance"]["store"]["sessions"] == 10
    assert "| purchase | 40.0 | 0.0 | 90.0 | +90.0 [67.4, 112.6] |" in (shop.folder / "out/pages.md").read_text()
    diff = (shop.folder / "out/change.diff").read_text(encoding="utf-8")
    assert "-<b>$4 shipping</b>" in diff and "+<b>Free shipping</b>" in diff


def test_a_dry_run_lists_touched_sessions_and_asks_nobody(shop):
    text = shop.call("sees_it", more=("--dry-run",))
    assert "touches 10 of 20 pages, of 10 users" in text and "No agent was evaluated" in text
    assert shop.asked == 0 and not (shop.folder / "out/pages.json").exists()
    assert (shop.folder / "out/change.diff").is_file()


def test_a_change_of_prices_is_warned_of_above_the_tables(shop):
    shop.change = shop.rules('[[rule]]\nselect = "b"\nscale_prices = 2.0')
    text = shop.call("sees_it")
    assert text.index("B shows other prices: 10 of its 10") < text.index("sees_it, by")
    written = (shop.folder / "out/pages.md").read_text(encoding="utf-8")
    assert written.index("B shows other prices: 10 of its 10") < written.index("| share of |")
    shop.change = shop.rules(FREE)  # a price goes, none comes
    assert "other prices" not in shop.call("sees_it")


def test_a_change_that_touches_nothing_is_refused(shop):
    shop.change = shop.rules('[[rule]]\nselect = ".price"\nscale_prices = 2.0')
    assert "touches none of the 20 pages of 'test'" in shop.call("sees_it", code=2)


def test_so_few_users_that_nothing_could_be_told_are_refused_before_anybody_is_asked(shop):
    text = shop.call("sees_it", more=("--sessions", "7"), code=2)
    assert "touches 7 pages of 7 users, and needs 8 users" in text
    assert shop.asked == 0
    shop.change = shop.rules('[[rule]]\nselect = "[name$=buy_now]"\nhide = true')
    assert "purchase −100.0 points" in shop.ask("always_buys", more=("--sessions", "8"))


def test_clicks_are_counted_by_the_names_that_one_gives(shop):
    shop.ask("sees_it", more=("--clicks", "tea=tea.*", "start=home|index"))
    shifts = shop.shifts("sees_it")
    assert list(shifts) == ["tea", "start", "other clicks", "search", "leave", "impossible"]
    assert shifts["tea"].on_a == shifts["tea"].on_b == 1.0
    assert shop.results.shoppers["start"] == 0.6
    assert "'leave' is taken" in shop.call("sees_it", more=("--clicks", "leave=home"), code=2)
    assert "expected LABEL=PATTERN" in shop.call("sees_it", more=("--clicks", "home"), code=2)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--draws", "-1"), "--draws is -1"),
        (("--agents", "ngrm"), "Did you mean 'ngram'?"),
        (("--store", "nowhere"), "nowhere"),
        (("--chang", "x"), "--chang"),
    ],
)
def test_a_wrong_call_is_told_before_anybody_is_asked(more, said, shop):
    assert said in shop.call("sees_it", more=more, code=2)
    assert shop.asked == 0


def test_a_reply_that_types_with_input_as_the_log_does_is_a_search(shop):
    step = Step(page=PRODUCT.format(BUY), action=TypeAndSubmit(name="home", text="tea", submitted=False))
    with StoreWriter(shop.store, source="test", splits=SplitPlan(test=1.0, validation=0.0), overwrite=True) as writer:
        for number in range(USERS):
            writer.write(Session(session_id=f"s{number}", user_id=f"u{number}", source="test", steps=(step, step)))
    shop.ask("types")
    assert shop.results.rows[0].shifts["search"].on_a == 1
