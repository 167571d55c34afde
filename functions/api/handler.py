"""The HTTP API: the same FastAPI app that runs on a laptop, behind API Gateway."""

from mangum import Mangum

from instar.wiring import api

handler = Mangum(api.build(), lifespan="off")
