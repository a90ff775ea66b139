"""The budget is never exceeded, whoever asks at once, whatever ends badly, and over all runs with one file."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.prompting.account import UNITS, Account, Budget, Cost, Prices, most_tokens
from agents.prompting.agent import PromptingAgent
from agents.prompting.answers import NoAnswer
from replay_sessions.foundation.errors import BadConfig, WriteFailed
from shop_env.evaluation.generate import generate_batch
from shop_env.observation import Observation
from tests.agents.prompting.scripted_server import Said, ScriptedServer, completion, error

MakeAgent = Callable[..., PromptingAgent]
INPUT_PRICE, OUTPUT_PRICE = 0.15, 0.6  # of a million tokens
BUDGET = 0.002


def pages(count: int) -> list[Observation]:
    return [{"page": f"<p>{n}</p>", "history": (), "persona": "", "goal": "", "step": 0} for n in range(count)]


def dear(request: dict[str, Any], times: int) -> Said:
    """Charges all that the request may cost."""
    return completion(usage=most_tokens(request, request["max_tokens"]))._replace(after_s=0.005)


def charged(server: ScriptedServer) -> int:
    """What the server asks for all that it answered, in units."""
    prices = Prices.of(INPUT_PRICE, OUTPUT_PRICE)
    assert prices is not None
    return sum(
        prices.cost(*most_tokens(one.request, one.request["max_tokens"])) for one in server.heard if one.said.is_answer
    )


def at_once(agent: PromptingAgent, observations: list[Observation], threads: int = 32) -> list[Any]:
    found: list[Any] = [None] * len(observations)

    def work(first: int) -> None:
        for place in range(first, len(observations), threads):
            (found[place],) = generate_batch(agent, [observations[place]], [0])

    workers = [threading.Thread(target=work, args=(first,)) for first in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return found


@pytest.mark.parametrize("broken", [0.0, 0.3])
def test_thirty_two_at_once_spend_no_more_than_the_budget_and_nearly_all_of_it(
    make_prompting: MakeAgent, broken: float
) -> None:
    def script(request: dict[str, Any], times: int) -> Said:
        bad = hash(request["messages"][-1]["content"]) % 100 < 100 * broken
        return dear(request, times)._replace(cut=30) if bad and times == 0 else dear(request, times)

    limit = int(BUDGET * UNITS)
    with ScriptedServer(script) as server:
        agent = make_prompting(
            server, budget=BUDGET, input_price=INPUT_PRICE, output_price=OUTPUT_PRICE, max_new_tokens=64
        )
        found = at_once(agent, pages(64))
        spent = agent._chat.account.spending().cost.money
        assert charged(server) <= spent <= limit
    refused = [one for one in found if isinstance(one, NoAnswer)]
    assert {one.cause for one in refused} == {"budget used up"}
    assert sum(isinstance(one, str) for one in found) == len(server.answered) > 0
    one_more = most_tokens(server.heard[0].request, 64)
    assert spent + Prices.of(INPUT_PRICE, OUTPUT_PRICE).cost(*one_more) * 1.01 > limit  # type: ignore[union-attr]


def test_what_was_set_aside_and_not_needed_is_spent_by_others(make_prompting: MakeAgent) -> None:
    """Each answer costs a tenth of what it may cost; threads wait for room instead of giving up."""
    with ScriptedServer(completion(usage=(100, 5))._replace(after_s=0.01)) as server:
        agent = make_prompting(server, budget_tokens=12_000, max_new_tokens=64)
        found = at_once(agent, pages(60))
        assert all(isinstance(one, str) for one in found)
        assert agent._chat.account.spending().cost.tokens == 60 * 105


def test_a_budget_holds_over_runs_and_what_was_answered_costs_nothing_again(make_prompting: MakeAgent) -> None:
    with ScriptedServer(dear) as server:
        options = {"budget": BUDGET, "input_price": INPUT_PRICE, "output_price": OUTPUT_PRICE, "max_new_tokens": 64}
        first = at_once(make_prompting(server, **options), pages(64))
        for _ in range(3):
            agent = make_prompting(server, **options)
            assert [isinstance(one, str) for one in at_once(agent, pages(64))] == [
                isinstance(one, str) for one in first
            ]
        assert charged(server) == agent._chat.account.spending().cost.money <= int(BUDGET * UNITS)


def test_another_process_with_the_same_file_has_the_same_budget(tmp_path: Path) -> None:
    budget, most = Budget(tokens=100), Cost(0, 60)
    with Account(tmp_path / "asked", budget) as one, Account(tmp_path / "asked", budget) as other:
        one.reserve(most)
        with pytest.raises(NoAnswer, match="60 of 100 tokens are spent, and this may take 60"):
            other.reserve(most)
        one.settle(most, Cost(0, 40))
        other.reserve(most)
        assert one.spending().cost == Cost(0, 100)


def test_many_that_come_at_once_to_a_new_file_share_one_budget(tmp_path: Path) -> None:
    refused: list[NoAnswer] = []

    def spend() -> None:
        with Account(tmp_path / "asked", Budget(tokens=10 * 7)) as account:
            for _ in range(3):
                try:
                    account.reserve(Cost(1, 7))
                    account.settle(Cost(1, 7), Cost(1, 7))
                except NoAnswer as failure:
                    refused.append(failure)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Account(tmp_path / "asked", Budget()) as account:
        assert account.spending() == (Cost(10, 70), 10, 0)
    assert len(refused) == 14


def test_what_was_under_way_at_a_kill_stays_counted_at_its_most(tmp_path: Path) -> None:
    with Account(tmp_path / "asked", Budget(money=100)) as killed:
        killed.reserve(Cost(70, 7))
    with Account(tmp_path / "asked", Budget(money=100)) as later:
        assert later.spending() == (Cost(70, 7), 1, 1)
        with pytest.raises(NoAnswer, match="budget used up"):
            later.reserve(Cost(31, 1))
        later.reserve(Cost(30, 1))


@pytest.mark.parametrize(
    ("said", "charged_for"),
    [
        (error(500, "oh no"), False),
        (error(429, "slow down"), False),
        (completion()._replace(cut=9), True),
        (Said(b"?"), True),
    ],
)
def test_a_try_without_an_answer_costs_nothing_if_the_server_said_so_else_its_most(
    make_prompting: MakeAgent, said: Said, charged_for: bool
) -> None:
    with ScriptedServer(said) as server:
        agent = make_prompting(server, tries=2)
        assert isinstance(at_once(agent, pages(1), threads=1)[0], NoAnswer)
        most = sum(most_tokens(server.heard[0].request, 512))
        spending = agent._chat.account.spending()
        assert (spending.cost.tokens, spending.unknown) == ((2 * most, 2) if charged_for else (0, 0))


def test_a_server_that_says_nothing_of_tokens_is_counted_at_the_most(make_prompting: MakeAgent) -> None:
    with ScriptedServer(completion(usage=None)) as server:
        agent = make_prompting(server)
        at_once(agent, pages(1), threads=1)
        assert agent._chat.account.spending().cost.tokens == sum(most_tokens(server.heard[0].request, 512))


def test_nothing_is_sent_when_it_cannot_be_written_down(make_prompting: MakeAgent, tmp_path: Path) -> None:
    with ScriptedServer() as server:
        agent = make_prompting(server)
        agent._chat.account._file.execute("PRAGMA query_only = ON")  # the disk is full, as far as SQLite can tell
        (failure,) = generate_batch(agent, pages(1), [0])
        assert isinstance(failure, WriteFailed)
        assert not server.heard


def test_what_is_no_cache_is_not_touched(make_prompting: MakeAgent, tmp_path: Path) -> None:
    (tmp_path / "asked.sqlite").write_text("my notes, kept for years " * 100)
    with pytest.raises(BadConfig, match=r"asked\.sqlite' cannot be used .*choose another file"):
        make_prompting("http://127.0.0.1:1/v1")
    assert (tmp_path / "asked.sqlite").read_text().startswith("my notes")


def test_money_is_counted_exactly() -> None:
    prices = Prices.of(0.1, 0.3)
    assert prices is not None
    assert sum(prices.cost(1, 1) for _ in range(10**6)) == int(0.4 * UNITS)
    assert Budget.of(0.29, None, priced=True).money == 290_000_000_000


def test_a_request_takes_no_more_tokens_than_it_has_bytes() -> None:
    text = "検索🛒\n\"'\\ é" * 50
    read, _ = most_tokens({"messages": [{"role": "user", "content": text}]}, 1)
    assert read >= len(text.encode()) + 32
