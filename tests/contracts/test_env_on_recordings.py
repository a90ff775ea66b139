"""The env on recordings of rrweb: every logged action earns the maximum, what is unknown in it included."""

import pytest

import shop_env  # noqa: F401 - registers the envs
from replay_sessions import SessionStore
from replay_sessions.__main__ import main
from shop_env.reward.matching import unlogged_fields
from tests.contracts.replayed_logs import assert_the_log_earns_the_maximum
from tests.replay_sessions.importers.rrweb.made_recordings import Recorded, imported

SHOP = "<form><input id='q' name='q' placeholder='Search'><input id='p' type='password' placeholder='Password'></form>"


@pytest.fixture(params=["made", "recordings"])
def store(request, tmp_path) -> SessionStore:
    if request.param == "made":
        tab = (
            Recorded(tmp_path).tab(f"{SHOP}<a id='a' href='/a'>Kettle</a>").type("q", "tea").type("p", "***").click("a")
        )
        return imported(tab.click("q").focus("q").give("q", "********"), terminate_at_end=True)
    source = request.getfixturevalue("shared_data") / "rrweb" / "recordings"
    assert main(f"import rrweb {source} --workers 1 --out {tmp_path}/store".split()) == 0
    return SessionStore.open(tmp_path / "store")


def test_replaying_a_recording_earns_the_maximum_at_every_step(store):
    assert_the_log_earns_the_maximum(store)


def test_a_masked_text_is_one_that_was_not_logged(tmp_path):
    tab = Recorded(tmp_path).tab(SHOP).click("q").focus("q").give("q", "*****").type("p", "abc")
    (session,) = imported(tab).sessions()
    assert [unlogged_fields(step.action) for step in session.steps] == [("text",), ("text",)]
