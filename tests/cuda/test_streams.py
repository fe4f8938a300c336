"""Streams that threads take and return, with a recording of what is asked of them in place of CuPy."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from maxmargin.cuda import streams


class Stream(nullcontext):
    """A stream that counts how often the host waited for it."""

    def __init__(self, non_blocking):
        super().__init__()
        assert non_blocking
        self.waits = 0

    def synchronize(self):
        self.waits += 1


@pytest.fixture
def made(monkeypatch):
    """Return a list of the streams that are made."""
    made = []
    cuda = SimpleNamespace(
        Device=nullcontext, Stream=lambda non_blocking: made.append(Stream(non_blocking)) or made[-1]
    )
    monkeypatch.setattr(streams, "cupy", lambda: SimpleNamespace(cuda=cuda))
    streams._idle_streams.cache_clear()
    yield made
    streams._idle_streams.cache_clear()


def test_a_stream_is_used_again(made):
    with streams.own_stream(0), streams.own_stream(0):
        pass
    with streams.own_stream(0), streams.own_stream(0):
        pass
    assert [stream.waits for stream in made] == [0, 0]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupted_stream_ends_before_it_is_idle(made, error):
    """Kernels that were launched may still write into memory that the exception frees."""
    with pytest.raises(error), streams.own_stream(0):
        raise error
    assert [stream.waits for stream in made] == [1]
    with streams.own_stream(0):
        assert len(made) == 1
