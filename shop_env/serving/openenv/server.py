"""From the server's options to a running server: HTTP and WebSocket on one port, as OpenEnv lays them out.

A client's session lives as long as its WebSocket. It is freed when the socket closes, when the client's machine no
longer answers pings, and when it has asked nothing for `idle_timeout_s`.
"""

import functools
import socket
import sys
from collections.abc import Callable

import gymnasium
import msgspec
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import ConcurrencyConfig

import shop_env  # noqa: F401 - registers ShopLive-v0
from replay_sessions.foundation.errors import BadConfig, ShopR1Error
from replay_sessions.foundation.serving import Guard, bounded_connections
from shop_env.reward.score import reward_preset
from shop_env.serving.openenv.environments import LiveShop, ReplayedSteps, ShopAction, ShopObservation
from shop_env.serving.openenv.options import ServerOptions
from shop_env.serving.tasks import StepTasks

ENV_NAME = "shop_r1"  # in the paths of OpenEnv's task API: /shop_r1/splits

_PING_EVERY_S = 20.0
_MAX_MESSAGE_BYTES = 100 << 20  # what OpenEnv's client takes too; a longer reply closes the socket
_SHUTDOWN_S = 3


def build_app(options: ServerOptions) -> FastAPI:
    """The ASGI app. A first page is made at once: what is wrong with the options is told before anybody connects."""
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
    closed = () if options.mcp else ("/mcp",)
    app.add_middleware(Guard, hosts=(options.host, *options.hosts), token=options.token, closed=closed)
    return app


def _environment(options: ServerOptions) -> Callable[[], Environment]:
    if options.env == "live":
        make_env = functools.partial(
            gymnasium.make,
            "ShopLive-v0",
            max_episode_steps=options.max_replies,
            page_size=options.page_size,
            context=msgspec.to_builtins(options.context),
            reward=options.live_reward,
            extraction=options.extraction,
        )
        factory = functools.partial(LiveShop, make_env, options.prompt)
        factory().reset(seed=0)
        return factory
    tasks = StepTasks(
        options.store,
        context=options.context,
        prompt=options.prompt,
        reward=reward_preset(options.reward),
        extraction=options.extraction,
        first_action=options.first_action,
    )
    if not (filled := [split for split in options.splits if tasks.count(split)]):
        raise BadConfig(f"store '{options.store}' has no step to ask about in split {', '.join(options.splits)}")
    tasks.task(filled[0], 0)
    return functools.partial(ReplayedSteps, tasks, options.splits)


async def _bad_request(request: Request, error: Exception) -> JSONResponse:
    """What is wrong with a call over plain HTTP; over the WebSocket OpenEnv sends the message itself."""
    return JSONResponse({"detail": str(error)}, status_code=400)


def serve(options: ServerOptions) -> int:
    """Listens until Ctrl-C or SIGTERM; the first line on standard output says where."""
    app = build_app(options)
    listening = _listen(options.host, options.port)
    host, port = listening.getsockname()[:2]
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    address += f"/{options.token}" if options.token else ""
    sys.stdout.write(f"serving {options.env} at http://{address} (WebSocket /ws); Ctrl-C stops\n")
    sys.stdout.flush()
    config = uvicorn.Config(
        app,
        http=bounded_connections(),
        log_level="warning",
        ws_max_size=_MAX_MESSAGE_BYTES,
        ws_ping_interval=_PING_EVERY_S,
        # A client that generates in its event loop answers no ping meanwhile; it is not gone for that.
        ws_ping_timeout=options.idle_timeout_s,
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )
    uvicorn.Server(config).run(sockets=[listening])
    return 0


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadConfig(
            f"cannot listen on {host}, port {port} ({error.strerror or error}): "
            "choose another --host or --port; port 0 takes a free one"
        ) from error
