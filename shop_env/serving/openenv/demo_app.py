"""The server with its default options, on the demo store, for programs that import an ASGI app (openenv.yaml):

  uvicorn shop_env.serving.openenv.demo_app:app

`shop-r1 serve openenv` has options, and allows longer replies and slower clients than uvicorn's defaults.
"""

from shop_env.serving.openenv.options import ServerOptions
from shop_env.serving.openenv.server import build_app

app = build_app(ServerOptions())
