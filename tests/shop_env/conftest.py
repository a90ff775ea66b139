"""A small session that the tests of this room share."""

from pathlib import Path

import pytest
from hypothesis import settings

from replay_sessions.schema import Click, Persona, Session, Step, Terminate, TypeAndSubmit
from tests.demo_stores import demo_store_at

# A busy machine is no reason to fail.
settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")


@pytest.fixture(scope="module")
def demo_store(tmp_path_factory) -> Path:
    """Forty sessions of the demo shop."""
    return demo_store_at(tmp_path_factory.mktemp("stores") / "demo", 40, seed=3).path


@pytest.fixture
def kettle_session() -> Session:
    """Home page, search, product, goodbye; the second step has no rationale."""
    return Session(
        session_id="kettle-1",
        user_id="user-1",
        source="test",
        persona=Persona(text="Ada, 36, counts her money.", traits={"style": "thrifty"}),
        goal="a red kettle",
        steps=(
            Step(
                page='<input name="search_input" type="text">',
                action=TypeAndSubmit(name="search_input", text="red kettle"),
                rationale="I need a kettle.",
            ),
            Step(
                page='<a name="search_results.red_kettle_1_7_l.view_product">Red kettle</a>',
                action=Click(name="search_results.red_kettle_1_7_l.view_product", click_type="product_link"),
            ),
            Step(
                page='<button name="buy_now">Buy</button>',
                action=Click(name="reviews.read_all", click_type="review"),
                rationale='Is it any "good"?',
            ),
            Step(page="<p>Poor reviews</p>", action=Terminate(), rationale="Nobody likes it."),
        ),
    )
