from collections.abc import Callable

import msgspec
import pytest

from replay_sessions import Click, Session, SessionStore, Step, Terminate, TypeAndSubmit
from replay_sessions.__main__ import main
from replay_sessions.store.audit.judge import AuditReport, audit_store
from replay_sessions.store.splits import SplitPlan

pytestmark = pytest.mark.long

MakeStore = Callable[..., SessionStore]


def page(number: int) -> str:
    return f'<a name="go.{number}">go</a><input name="search_{number}"><p>page {number} of the shop</p>'


def walk(number: int, *, shift: int = 0, **changes: object) -> Session:
    """A session whose step k acts on what stands on page k; `shift` shows the page of another step instead."""
    base = number * 100
    actions = [
        TypeAndSubmit(name=f"search_{base + k}", text="kettle") if k % 2 else Click(name=f"go.{base + k}")
        for k in range(5)
    ]
    taken = [Step(page=page(base + k + shift), action=action) for k, action in enumerate(actions)]
    session = Session(session_id=f"walk-{number}", user_id=f"user-{number}", source="test", steps=tuple(taken))
    return msgspec.structs.replace(session, **changes)


def codes(report: AuditReport) -> list[str]:
    return [finding.code for finding in report.faults]


def test_a_sound_store_has_no_faults(make_store):
    report = audit_store(make_store([walk(i) for i in range(40)]))
    assert codes(report) == []
    assert report.warnings == ()
    assert {(row.action_type, row.targets, row.on_page) for row in report.grounding} == {
        ("click", 120, 120),
        ("type_and_submit", 80, 80),
    }
    assert (report.session_steps.median, report.steps) == (5, 200)


@pytest.mark.parametrize(("shift", "offset", "where"), [(1, "-1", "one step earlier"), (-1, "+1", "one step later")])
def test_shifted_pages_are_found_and_the_offset_named(make_store, shift, offset, where):
    report = audit_store(make_store([walk(i, shift=shift) for i in range(40)]))
    assert set(codes(report)) == {"ungrounded", "shifted"}
    message = next(finding.message for finding in report.faults if finding.code == "shifted")
    assert f"offset {offset}: 100% of targets stand on the page {where}, 0% on their own" in message


def test_grounding_is_told_per_action_type(make_store):
    lost = [
        msgspec.structs.replace(step, action=Click(name="nowhere")) if isinstance(step.action, Click) else step
        for step in walk(0).steps
    ]
    store = make_store([walk(0, steps=tuple(lost)), walk(1)])
    report = audit_store(store)
    assert codes(report) == ["ungrounded"]
    assert "3 of 6 click targets of test (50%)" in report.faults[0].message
    assert report.faults[0].sessions == ("walk-0",)


def test_few_clicks_without_a_word_may_coincide(make_store):
    def wordless(number: int) -> Session:
        steps = tuple(msgspec.structs.replace(step, rationale=None) for step in walk(0).steps)
        clicks = tuple(step for step in steps if isinstance(step.action, Click))
        return msgspec.structs.replace(walk(number), goal=None, steps=clicks)

    assert codes(audit_store(make_store([wordless(0), wordless(1)]))) == []


def test_near_repetitions_across_splits_are_found(make_store):
    by_session = SplitPlan(by="session")
    store = make_store([walk(i) for i in range(40)], "plain", by_session)
    in_train = store.session(store.session_ids("train")[0])
    near = [
        msgspec.structs.replace(in_train, session_id=f"near-{i}", steps=(*in_train.steps[:-1], last(in_train, i)))
        for i in range(30)
    ]
    leaky = make_store([*store.sessions(), *near], "leaky", by_session)
    assert "near_duplicates" in codes(audit_store(leaky))
    other_goal = [msgspec.structs.replace(session, goal=f"goal {i}") for i, session in enumerate(near)]
    assert codes(audit_store(make_store([*store.sessions(), *other_goal], "other", by_session))) == []


def last(session: Session, number: int) -> Step:
    return msgspec.structs.replace(session.steps[-1], action=Click(name=f"something.else.{number}"))


def test_users_in_several_splits_are_a_fault_only_when_users_were_to_be_split(make_store):
    sessions = [walk(i, user_id=f"user-{i % 5}") for i in range(40)]
    by_session = audit_store(make_store(sessions, "by_session", SplitPlan(by="session")))
    assert codes(by_session) == []
    assert "5 of 5 users have sessions in more than one split" in by_session.warnings[0].message
    by_user = audit_store(make_store(sessions, "by_user"))
    assert [finding.code for finding in (*by_user.faults, *by_user.warnings)] == ["empty_split"]


def test_doubtful_steps_and_long_pages_are_warned_of(make_store, monkeypatch):
    store = make_store(
        [
            walk(0, steps=(Step(page=page(0), action=Terminate()), *walk(0).steps)),
            walk(1, steps=(Step(page=" ", action=Terminate()),)),
            walk(2, steps=(*walk(2).steps, Step(page=page(2) + "x" * 5000, action=Click(name="")))),
            walk(
                3,
                steps=tuple(
                    msgspec.structs.replace(step, timestamp=str(time))
                    for step, time in zip(walk(3).steps, (1, 3, 2), strict=False)
                ),
            ),
        ],
        splits=SplitPlan(by="session"),
    )
    monkeypatch.setattr("replay_sessions.store.audit.judge.CONTEXT_TOKENS", 1000)
    told = " / ".join(warning.message for warning in audit_store(store).warnings)
    assert "1 session with steps after a terminate" in told
    assert "1 session with an empty page" in told
    assert "1 session with an action without a name" in told
    assert "1 session with times that decrease" in told
    assert "about 1 page alone, and 1 session as a whole, would not fit a context of 1,000 tokens" in told
    assert "no session is in" in told


def test_private_data_is_counted_by_kind_and_never_printed(make_store):
    address = "<p>Write to maria.lindqvist@example.org</p>"
    store = make_store([walk(i, steps=(Step(page=page(i * 100) + address, action=Terminate()),)) for i in range(20)])
    found = next(w for w in audit_store(store).warnings if w.code == "private_data")
    assert "in 20 sessions (20 email; 20 pages searched)" in found.message
    assert len(found.sessions) == 20
    assert b"lindqvist" not in msgspec.json.encode(audit_store(store))
    few = audit_store(store, private_pages=5)
    assert any("in 5 sessions (5 email; 5 pages searched)" in warning.message for warning in few.warnings)
    assert all(w.code != "private_data" for w in audit_store(store, private_pages=0).warnings)


def test_another_stores_shard_of_the_same_ids_is_found(make_store, monkeypatch, capsys):
    """Same ids, same lengths, same size: only what it holds is another."""
    monkeypatch.setattr("replay_sessions.store.writer._SHARD_SESSIONS", 10)
    mine = make_store([walk(i) for i in range(30)])
    other = make_store([msgspec.structs.replace(walk(i), goal="a blue tent") for i in range(30)], "other")
    theirs = other.path / other.manifest.shards[1].file
    (mine.path / mine.manifest.shards[1].file).write_bytes(theirs.read_bytes())
    pretend_size(mine, 1, theirs.stat().st_size)
    assert main(["check", str(mine.path)]) == 1
    assert "10 sessions cannot be read" in capsys.readouterr().out
    report = audit_store(SessionStore.open(mine.path))
    assert report.faults[0].sessions == tuple(f"walk-{i}" for i in range(10, 20))
    assert "is not what was written" in report.faults[0].message
    assert main(["check", str(mine.path), "--repair"]) == 0
    assert SessionStore.open(mine.path).session_ids() == [f"walk-{i}" for i in (*range(10), *range(20, 30))]


def pretend_size(store: SessionStore, number: int, size: int) -> None:
    """Makes the manifest agree with a shard's size, which is looked at when a store is opened."""
    shards = list(store.manifest.shards)
    shards[number] = msgspec.structs.replace(shards[number], size_bytes=size)
    manifest = msgspec.structs.replace(store.manifest, shards=tuple(shards))
    (store.path / "manifest.json").write_bytes(msgspec.json.encode(manifest))


def test_unreadable_sessions_are_counted_and_the_others_still_checked(make_store):
    store = make_store([walk(i) for i in range(20)])
    shard = store.path / store.manifest.shards[0].file
    content = bytearray(shard.read_bytes())
    content[len(content) // 3] ^= 0xFF
    shard.write_bytes(content)
    report = audit_store(SessionStore.open(store.path))
    assert codes(report) == ["unreadable"]
    assert 0 < len(report.faults[0].sessions) < 20
    assert sum(row.targets for row in report.grounding) == (20 - len(report.faults[0].sessions)) * 5


def test_exit_code_and_json(make_store, capsys):
    sound = make_store([walk(i) for i in range(40)], "sound").path
    shifted = make_store([walk(i, shift=1) for i in range(40)], "shifted").path
    assert main(["check", str(sound)]) == 0
    assert f"{sound}: no faults, 0 warnings" in capsys.readouterr().out
    assert main(["check", str(shifted)]) == 1
    assert "pages look shifted, offset -1" in capsys.readouterr().out
    assert main(["check", str(shifted), "--json"]) == 1
    report = msgspec.json.decode(capsys.readouterr().out, type=AuditReport)
    assert codes(report) == ["ungrounded", "ungrounded", "shifted"]


@pytest.mark.parametrize(
    ("file", "warnings"),
    [("miniwob_human/sessions.jsonl.gz", []), ("autowebbench/sessions.jsonl", ["doubtful_steps", "over_context"]),
     ("webshop_react/sessions.jsonl", ["doubtful_steps"])],
)  # fmt: skip
def test_real_logs_pass(shared_data, tmp_path, file, warnings):
    assert main(["import", "jsonl", str(shared_data / file), "--out", str(tmp_path / "store")]) == 0
    assert main(["check", str(tmp_path / "store")]) == 0
    report = audit_store(SessionStore.open(tmp_path / "store"))
    assert [warning.code for warning in report.warnings if warning.code != "private_data"] == warnings


def test_a_count_below_0_is_told(make_store, capsys):
    assert main(["check", str(make_store([walk(1)]).path), "--private", "-1"]) == 2
    assert "--private is -1, and at least 0 was expected" in capsys.readouterr().err


def test_private_data_is_found_in_every_field(make_store):
    session = walk(0)
    step = msgspec.structs.replace(
        session.steps[0],
        page=session.steps[0].page + '<img alt="Avatar of anna@example.org">',
        rationale="I am anna@example.org.",
        url="https://shop.example/login?email=anna%40example.org",
    )
    store = make_store(
        [msgspec.structs.replace(session, steps=(step, *session.steps[1:]), goal="Send it to anna@example.org")]
    )
    warning = next(warning for warning in audit_store(store).warnings if warning.code == "private_data")
    assert "(4 email; " in warning.message


def visit(number: int, names: str, *, inferred: str = "") -> Session:
    """A session of clicks by letter, "." for a terminate."""
    steps = tuple(
        Step(
            page='<a name="a">A</a><a name="b">B</a>',
            action=Terminate() if name == "." else Click(name=name),
            is_inferred=str(index) in inferred,
        )
        for index, name in enumerate(names)
    )
    return Session(session_id=f"v{number}", user_id=f"u{number}", source="test", steps=steps)


def by_number(make_store: MakeStore, train: list[str], test: list[str], inferred: str = "") -> AuditReport:
    sessions = [visit(number, names, inferred=inferred) for number, names in enumerate([*train, *test])]
    sides = ["train"] * len(train) + ["test"] * len(test)
    official = [msgspec.structs.replace(one, official_split=side) for one, side in zip(sessions, sides, strict=True)]
    return audit_store(make_store(official, splits=SplitPlan(by="official")))


def test_the_auc_of_stops_by_step_number(make_store):
    # Train: at number 1 always b, at number 2 mostly the end.
    report = by_number(make_store, ["abb.", "ab.", "ab.", "ab.", "ab.", "ab."], ["ab.", "aa.", "ab.", "aba."])
    # Shares of ends: (0+s)/7 at 1, (5+s)/7 at 2, (1+s)/2 at 3 with s = 6/13; stops at 2, 2, 2, 3; others 1, 1, 1, 1, 2.
    assert report.stop_auc == pytest.approx((3 * (4 + 0.5) + 1 * 4) / 20)
    assert (report.session_steps.least, report.session_steps.p10, report.session_steps.most) == (3, 3, 4)


@pytest.mark.parametrize(("inferred", "has_auc"), [("", True), ("1", False)])  # all other steps are stops
def test_inferred_steps_do_not_count_in_the_auc(make_store, inferred, has_auc):
    report = by_number(make_store, ["a.", "aa."] * 4, ["a.", "aa."], inferred=inferred)
    assert (report.stop_auc is not None) == has_auc


@pytest.mark.parametrize(("lengths", "is_warned"), [((5, 5), True), ((2, 9), False)])
def test_visits_picked_by_length_are_warned_of(make_store, lengths, is_warned):
    low, high = lengths
    names = ["a" * (low + number % (high - low + 1)) + "." for number in range(160)]
    report = by_number(make_store, names[:80], names[80:])
    assert ("stops_by_number" in [finding.code for finding in report.warnings]) == is_warned
