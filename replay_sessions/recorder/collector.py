"""The collector over HTTP, which decides who may post and how much.

    POST /TOKEN/batches      a batch (batches.py)          200 {"new": true}, once it is on the disk
    GET  /TOKEN/recorder.js  rrweb's recorder and the snippet

A refusal is {"error": …} with a status: 400 no batch, 403 a wrong token, 408 too slow, 409 another batch has the
number, 413 too long, 503 too much at once, 507 the disk is full. After 408, 5xx, or no answer, a batch may be posted
again; it is never written twice.

The token is in the path because a closing page can only send a beacon, and a beacon cannot have custom headers. Every
page with the snippet contains the token, so it is no secret from shoppers. It keeps others from filling the disk, and
only the recorder can be read with it. A shop and its collector may have different origins, so any page may read the
answers (`Access-Control-Allow-Origin`), which contain no data.
"""

import asyncio
import errno
import hmac
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable

import uvicorn  # noqa: F401 - the server needs it: a missing extra is reported before anything is written
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from replay_sessions.foundation.errors import BadSession, WriteFailed
from replay_sessions.foundation.serving import Server
from replay_sessions.foundation.table import plain_text
from replay_sessions.recorder.batches import read_batch
from replay_sessions.recorder.journal import Journal
from replay_sessions.recorder.session_file import OtherEvents, SessionFull

logger = logging.getLogger(__name__)

MOST_BATCH_BYTES = 16 << 20
_SLOWEST_S = 60  # for a whole request
_MOST_AT_ONCE_BYTES = 256 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CACHE_CONTROL = "private, max-age=3600, stale-if-error=604800"  # pages keep recording while the collector is down
_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
}
_STATUS: dict[type[Exception], int] = {BadSession: 400, OtherEvents: 409, SessionFull: 413}


class Collector:
    """Appends posted batches to a journal.

    Args:
        token: The token that each request must have.
        most_bytes: The longest accepted request.
        script: The recorder that pages load.
    """

    def __init__(self, journal: Journal, token: str, *, script: bytes, most_bytes: int = MOST_BATCH_BYTES) -> None:
        self._journal = journal
        self._token = token.encode()
        self._most_bytes = most_bytes
        self._script = script
        self._refused: Counter[int] = Counter()  # requests, by status
        self._held_bytes = 0  # of requests in progress

    @property
    def routes(self) -> list[BaseRoute]:
        return [
            Route("/{token}/batches", self._with_token(self._receive_batch), methods=["POST"]),
            Route("/{token}/recorder.js", self._with_token(self._send_script)),
        ]

    def _with_token(self, answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Wraps an endpoint so that it checks the token first."""

        async def endpoint(request: Request) -> Response:
            if not hmac.compare_digest(request.path_params["token"].encode(), self._token):
                raise HTTPException(403, "that is not this collector's token: take the address that it has printed")
            return await answer(request)

        return endpoint

    async def _send_script(self, request: Request) -> Response:
        return Response(
            self._script, media_type="text/javascript", headers={**_HEADERS, "Cache-Control": _CACHE_CONTROL}
        )

    async def _receive_batch(self, request: Request) -> Response:
        too_long = HTTPException(413, f"a batch has at most {self._most_bytes:,} bytes")
        if int(request.headers.get("content-length", 0)) > self._most_bytes:
            raise too_long
        body = bytearray()
        try:
            async with asyncio.timeout(_SLOWEST_S):
                async for piece in request.stream():
                    body += piece
                    self._held_bytes += len(piece)
                    if len(body) > self._most_bytes:
                        raise too_long
                    if self._held_bytes > _MOST_AT_ONCE_BYTES:
                        raise HTTPException(503, "too much at once: post it again later")
            is_new = await asyncio.wrap_future(self._journal.append(read_batch(bytes(body))))
        except TimeoutError as error:
            raise HTTPException(408, f"it took longer than {_SLOWEST_S} seconds: post it again") from error
        except ClientDisconnect:
            return Response(status_code=400)  # the client has gone
        except (BadSession, OtherEvents, SessionFull) as error:
            raise HTTPException(_STATUS[type(error)], str(error)) from error
        except WriteFailed as error:
            logger.warning("%s", plain_text(str(error)))
            reason = error.__cause__
            is_full = isinstance(reason, OSError) and reason.errno in _FULL
            raise HTTPException(507 if is_full else 500, "it cannot be written: post it again later") from error
        finally:
            self._held_bytes -= len(body)
        return JSONResponse({"new": is_new}, headers=_HEADERS)

    async def refusal(self, request: Request, error: Exception) -> Response:
        """Answers a request that is refused or has no route."""
        assert isinstance(error, HTTPException)
        self._refused[error.status_code] += 1
        count = self._refused[error.status_code]
        if not count & (count - 1):  # only at 1, 2, 4, 8 …, because anybody can cause these lines
            logger.warning("refused (%d), %d times so far: %s", error.status_code, count, plain_text(error.detail))
        answer = json.dumps({"error": error.detail}).encode()
        # The connection is closed because the rest of the request is not read.
        return Response(answer, error.status_code, {**_HEADERS, "Connection": "close"}, "application/json")


def collector_server(
    journal: Journal, token: str, *, script: bytes, host: str, port: int, most_bytes: int = MOST_BATCH_BYTES
) -> Server:
    """Builds a server that only collects."""
    collector = Collector(journal, token, script=script, most_bytes=most_bytes)
    return Server(Starlette(routes=collector.routes, exception_handlers={HTTPException: collector.refusal}), host, port)
