"""The server with its defaults, on the demo shop, for programs that ask for an ASGI app by name (openenv.yaml):

  uvicorn shop_env.serving.openenv.demo_app:app

`shop-r1 serve openenv` takes options, and longer replies and slower clients than uvicorn by itself.
"""

from shop_env.serving.openenv.options import ServerOptions
from shop_env.serving.openenv.server import build_app

app = build_app(ServerOptions())
