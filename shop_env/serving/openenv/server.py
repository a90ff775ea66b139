"""Builds and runs the server from its options: OpenEnv's HTTP and WebSocket interface on one port.

A client's session lives as long as its WebSocket. It is freed when the socket closes, when the client's machine no
longer answers pings, or when the client sends no request for `idle_timeout_s`.
"""

import functools
from collections.abc import Callable

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.types import ConcurrencyConfig

from replay_sessions.foundation.errors import BadConfig, ShopR1Error
from replay_sessions.foundation.guard import Guard
from replay_sessions.foundation.serving import Server
from replay_sessions.foundation.serving import serve as serve_until_stopped
from shop_env.reward.score import reward_preset
from shop_env.serving.openenv.environments import ReplayedSteps, ShopAction, ShopObservation
from shop_env.serving.openenv.options import ServerOptions

ENV_NAME = "shop_r1"  # in the paths of OpenEnv's task API: /shop_r1/splits

_PING_EVERY_S = 20.0
_MAX_MESSAGE_BYTES = 100 << 20  # the limit of OpenEnv's client; a longer reply closes the socket


def build_app(options: ServerOptions) -> FastAPI:
    """Builds the ASGI app, and a first task, so that wrong options are reported before a client connects."""
    app = create_app(
        _environment(options),
        ShopAction,
        ShopObservation,
        env_name=ENV_NAME,
        concurrency_config=ConcurrencyConfig(
            max_concurrent_envs=options.max_sessions, session_timeout=options.idle_timeout_s
        ),
    )
    app.add_exception_handler(ShopR1Error, _bad_request)
    # A call to OpenEnv's tool interface would occupy a session until the idle timeout.
    app.router.routes = [route for route in app.routes if not getattr(route, "path", "").startswith("/mcp")]
    app.add_middleware(Guard, hosts=(options.host, *options.hosts), token=options.token)
    return app


def _environment(options: ServerOptions) -> Callable[[], ReplayedSteps]:
    tasks = options.build_tasks(reward=reward_preset(options.reward), extraction=options.extraction)
    if not (filled := [split for split in options.splits if tasks.count(split)]):
        raise BadConfig(f"store '{options.store}' has no step to ask about in split {', '.join(options.splits)}")
    tasks.task(filled[0], 0)
    return functools.partial(ReplayedSteps, tasks, options.splits)


async def _bad_request(request: Request, error: Exception) -> JSONResponse:
    """Returns the error of a wrong call over plain HTTP; over the WebSocket OpenEnv sends the message itself."""
    return JSONResponse({"detail": str(error)}, status_code=400)


def serve(options: ServerOptions) -> int:
    """Runs the server until Ctrl-C or SIGTERM; the first line on standard output is its address."""
    server = Server(
        build_app(options),
        options.host,
        options.port,
        ws_max_size=_MAX_MESSAGE_BYTES,
        ws_ping_interval=_PING_EVERY_S,
        # A client that generates in its event loop answers no pings meanwhile, but is still connected.
        ws_ping_timeout=options.idle_timeout_s,
    )
    address = server.address + (f"/{options.token}" if options.token else "")
    greeting = f"serving {options.store} at {address} (WebSocket /ws); Ctrl-C stops"
    return serve_until_stopped(server, greeting, lambda: f"{options.store} at {address}")
