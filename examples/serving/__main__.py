"""Serve the predictions of a model file.

python -m examples.serving model.maxmargin --port 8000
"""

from __future__ import annotations

import argparse

import uvicorn

import maxmargin

from .service import create_app


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.serving", description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a file written by maxmargin.save or maxmargin train; no code in it is executed")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    app = create_app(maxmargin.load(options.model))
    uvicorn.run(app, host=options.host, port=options.port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
