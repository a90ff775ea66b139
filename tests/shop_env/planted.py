"""Records of planted agents, whose figures can be counted by hand."""

import random
from collections.abc import Callable

from hypothesis import strategies as st

from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from shop_env.metrics.step_record import StepRecord, record_step
from shop_env.replies import format_reply
from shop_env.reward.score import reward_preset

__all__ = ["answer", "noisy", "random_action", "random_sessions", "ten_steps"]

REWARD = reward_preset("shop_r1")
NAMES = (
    "cart",
    "product.buy_now",
    "product.reviews",
    "search_results.red_kettle.view_product",
    "refinements.brand.acme",
)
TEXTS = ("red kettle", "Red  Kettle", "red kettle steel", "toaster")
ACTIONS = st.one_of(
    st.builds(lambda name: Click(name=name), st.text()),
    st.builds(lambda name, text: TypeAndSubmit(name=name, text=text), st.text(), st.text()),
    st.just(Terminate()),
)


def _session(name: str, user: str, actions: list[Action]) -> Session:
    steps = tuple(Step(page="<p>page</p>", action=action) for action in [Click(name="home"), *actions])
    return Session(session_id=name, user_id=user, source="test", steps=steps)


def ten_steps() -> list[Session]:
    """Ten scored steps in three sessions of two users: 6 clicks, 2 typed, 2 leaving; one session ends in a purchase."""
    click, buy, typed = (
        Click(name="product.reviews", click_type="review"),
        Click(name="product.buy_now", click_type="purchase"),
        TypeAndSubmit(name="q", text="red kettle"),
    )
    return [
        _session("a", "ada", [typed, click, click, buy]),
        _session("b", "ada", [typed, click, Terminate()]),
        _session("c", "bob", [click, click, Terminate()]),
    ]  # fmt: skip


def random_sessions(count: int, seed: int, *, users: int = 7) -> list[Session]:
    """Sessions of 2 to 9 random actions by a few users; intervals need eight."""
    rng = random.Random(seed)
    return [
        _session(f"s{number}", f"u{rng.randrange(users)}", [random_action(rng) for _ in range(rng.randrange(1, 9))])
        for number in range(count)
    ]


def random_action(rng: random.Random) -> Action:
    kind = rng.random()
    if kind < 0.6:
        return Click(name=rng.choice(NAMES))
    return TypeAndSubmit(name="q", text=rng.choice(TEXTS)) if kind < 0.8 else Terminate()


def noisy(share: float, seed: int) -> Callable[[Session, int], Action | str]:
    """An agent that is right in a share of the steps, and else answers anything or nothing that can be read."""
    rng = random.Random(seed)

    def reply(session: Session, index: int) -> Action | str:
        return session.steps[index].action if rng.random() < share else rng.choice(["?", random_action(rng)])

    return reply


def copy_the_log(session: Session, index: int) -> Action:
    """The reply of an agent that is always right."""
    return session.steps[index].action


def answer(sessions: list[Session], reply: Callable[[Session, int], Action | str | None]) -> list[StepRecord]:
    """Records of an agent; its reply is an action, a text, or None for a failure."""
    records = []
    for session in sessions:
        for index in range(1, len(session.steps)):
            given = reply(session, index)
            text = given if given is None or isinstance(given, str) else format_reply("Because.", given)
            records.append(record_step(session, index, text, REWARD, error="timed out" if given is None else None))
    return records
