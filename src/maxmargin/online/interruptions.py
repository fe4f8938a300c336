"""Ctrl-C that waits for a moment when the state is whole.

Python delivers an interruption between any two of its instructions: also between two halves of a change. A memory that
is changed in place must not be left like that, so Ctrl-C is noted, and whoever works looks at the note. Pressed a
second time it acts at once, in case nobody looks.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptions_noted() -> Iterator[threading.Event]:
    """Yield what is set when Ctrl-C is pressed; a user's own handler is left alone, and so are other threads."""
    pressed = threading.Event()
    usual = signal.default_int_handler
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not usual:
        yield pressed
        return

    def note(number: int, frame: Any) -> None:
        if pressed.is_set():
            usual(number, frame)
        pressed.set()

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, usual)
