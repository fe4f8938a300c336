"""CUDA sources, compiled for the GPU when they are first needed. CuPy keeps the results on disk."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from typing import Any

from maxmargin.cuda.device import cupy


def source_text(name: str) -> str:
    """Return a source file with the files that it includes."""
    text = files("maxmargin.cuda").joinpath("sources", name).read_text(encoding="utf-8")
    return re.sub(r'^#include "(.+)"$', lambda match: source_text(match[1]), text, flags=re.MULTILINE)


@lru_cache(maxsize=256)
def kernel(source: str, name: str, **parameters: object) -> Any:
    """Return a function of a source file, compiled with these values of its compile-time parameters."""
    options = ("--std=c++17", *(f"-D{key}={value}" for key, value in parameters.items()))
    return cupy().RawModule(code=source_text(f"{source}.cu"), options=options, backend="nvrtc").get_function(name)


def launch(
    function: Any, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...], memory: int
) -> None:
    """Launch a function with dynamic shared memory; more than 48 KB must be asked for."""
    if memory > function.max_dynamic_shared_size_bytes:
        function.max_dynamic_shared_size_bytes = memory
    function(grid, block, arguments, shared_mem=memory)
