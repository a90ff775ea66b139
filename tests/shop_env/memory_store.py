"""A store in memory: what the env asks of one, without files."""

from replay_sessions.schema import Session

__all__ = ["MemoryStore"]


class MemoryStore:
    """Sessions that are all in the same split."""

    def __init__(self, sessions: list[Session], fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self._sessions = {session.session_id: session for session in sessions}

    def session_ids(self, split: str = "all") -> list[str]:
        return list(self._sessions)

    def step_count(self, session_id: str) -> int:
        return len(self._sessions[session_id].steps)

    def inferred_steps(self, session_id: str) -> list[int]:
        return [number for number, step in enumerate(self._sessions[session_id].steps) if step.is_inferred]

    def user_id(self, session_id: str) -> str:
        return self._sessions[session_id].user_id

    def session(self, session_id: str) -> Session:
        return self._sessions[session_id]
