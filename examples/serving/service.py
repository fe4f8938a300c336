"""The HTTP interface: validated JSON in, JSON out.

GET  /health    200 {"status": "ok", "estimator": "SVC", "features": 20}
POST /predict   {"instances": [[…], …], "output": "predict"}  →  200 {"predictions": […]}
                "output" is "predict" (default), "decision_function" or "predict_proba", if the model has it

A request that is not valid JSON is answered with 400, one that does not fit the model with 422, one that is too large
with 413, and 503 means that too many rows are waiting. The body of an error is {"error": "…"}.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from .batching import Batcher, OverloadedError

#: Largest body of a request in bytes.
MAX_BODY_BYTES = 2**24

OUTPUTS = ("predict", "decision_function", "predict_proba")


class RequestError(Exception):
    """A request cannot be answered: the status code and why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def create_app(model: Any) -> Starlette:
    """Return the service of a fitted model."""
    batcher = Batcher(model)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(batcher.run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def health(_: Request) -> JSONResponse:
        known = {"status": "ok", "estimator": type(model).__name__, "features": int(model.n_features_in_)}
        return JSONResponse(known)

    async def predict(request: Request) -> JSONResponse:
        try:
            X, output = parse(await read_body(request), model)
            found = await batcher.predict(X, output)
        except RequestError as error:
            return JSONResponse({"error": str(error)}, error.status)
        except OverloadedError:
            return JSONResponse({"error": "too many rows are waiting; try again later"}, 503)
        return JSONResponse({"predictions": found.tolist()})

    return Starlette(routes=[Route("/health", health), Route("/predict", predict, methods=["POST"])], lifespan=lifespan)


async def read_body(request: Request) -> bytes:
    """Return the body, never more than the limit."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise RequestError(413, f"the request has more than {MAX_BODY_BYTES} bytes")
    return bytes(body)


def parse(body: bytes, model: Any) -> tuple[np.ndarray, str]:
    """Return the samples of a request, and the method of the model."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, "the request is not valid JSON") from error
    if not isinstance(given, dict) or "instances" not in given or given.keys() - {"instances", "output"}:
        raise RequestError(422, 'the request must be an object {"instances": [[…], …], "output": "predict"}')
    output = given.get("output", "predict")
    if output not in OUTPUTS or not hasattr(model, output):
        known = ", ".join(name for name in OUTPUTS if hasattr(model, name))
        raise RequestError(422, f"output must be one of {known}")
    try:
        X = np.array(given["instances"], dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise RequestError(422, "instances must be a list of lists of numbers of the same length") from error
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] != model.n_features_in_:
        raise RequestError(422, f"instances must have {model.n_features_in_} features each, the shape is {X.shape}")
    if not np.isfinite(X).all():
        raise RequestError(422, f"instance {int(np.argmin(np.isfinite(X).all(axis=1)))} has a value that is not finite")
    return X, output
