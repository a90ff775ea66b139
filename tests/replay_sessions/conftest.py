"""Sessions to store: small ones by hand, and any that the schema allows (hypothesis)."""

from collections.abc import Callable

import pytest
from hypothesis import strategies as st

from replay_sessions import Click, Persona, Session, SessionStore, Step, Terminate, TypeAndSubmit
from replay_sessions.store.splits import SplitPlan
from tests.stores import store_at

PAGE = '<form><input name="search_input" aria-label="Search"/></form><a name="nav_bar.cart">Cart</a>'


def make_session(number: int = 0, *, user: str | None = None, steps: int = 2, page: str = PAGE) -> Session:
    """A session of some clicks and a terminate at its end."""
    clicks = [Step(page=page, action=Click(name="nav_bar.cart"), rationale=f"step {i}") for i in range(steps - 1)]
    return Session(
        session_id=f"session-{number:04}",
        user_id=user or f"user-{number // 2:04}",
        steps=(*clicks, Step(page=page, action=Terminate())),
        source="test",
        goal="a red kettle",
    )


@pytest.fixture
def make_store(tmp_path) -> Callable[..., SessionStore]:
    """Writes sessions into a store of the test's own folder and opens it."""

    def write(sessions: list[Session], name: str = "store", splits: SplitPlan | None = None) -> SessionStore:
        return store_at(tmp_path / name, sessions, splits=splits)

    return write


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
optional_text = st.none() | text
actions = (
    st.builds(Click, name=text, click_type=optional_text)
    | st.builds(TypeAndSubmit, name=text, text=text, submitted=st.booleans())
    | st.just(Terminate())
)
steps = st.builds(
    Step,
    page=text,
    action=actions,
    rationale=optional_text,
    url=optional_text,
    timestamp=optional_text,
    gap=st.integers(0, 10),
)
sessions = st.builds(
    Session,
    session_id=text.filter(bool),
    user_id=text.filter(bool),
    steps=st.lists(steps, min_size=1, max_size=5).map(tuple),
    source=text,
    persona=st.none() | st.builds(Persona, text=text, traits=st.dictionaries(text, text, max_size=3)),
    goal=optional_text,
    official_split=st.sampled_from([None, "train", "validation", "test"]),
)
