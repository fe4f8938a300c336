"""Random mutations of bytes, repeatable by their seed: the fuzzer where no coverage-guided one is installed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

#: Inputs do not grow beyond this many bytes.
MAX_BYTES = 4096


def mutations(corpus: Sequence[bytes], words: Sequence[bytes], seed: int) -> Iterator[bytes]:
    """Yield mutated inputs without end: changed, inserted, removed and repeated parts, words, and crossovers."""
    chance = random.Random(seed)
    while True:
        data = bytearray(chance.choice(corpus))
        for _ in range(chance.choice((1, 1, 2, 4, 8))):
            _mutate(data, chance, words, corpus)
        yield bytes(data[:MAX_BYTES])


def _mutate(data: bytearray, chance: random.Random, words: Sequence[bytes], corpus: Sequence[bytes]) -> None:
    begin = chance.randrange(len(data) + 1)
    end = min(len(data), begin + chance.choice((1, 1, 2, 8, 64)))
    kind = chance.randrange(8)
    if kind == 0:
        del data[begin:end]
    elif kind == 1:
        data[begin:begin] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 4)))
    elif kind == 2:
        data[begin:begin] = data[begin:end] * chance.choice((1, 2, 16))
    elif kind == 3 and begin < len(data):
        data[begin] ^= 1 << chance.randrange(8)
    elif kind == 4:
        other = chance.choice(corpus)
        start = chance.randrange(len(other) + 1)
        data[begin:end] = other[start : start + chance.randint(1, 200)]
    elif kind == 5:
        data[begin:end] = str(chance.choice((0, 1, -1, 2**31, 2**63, 10**30, 0.5, 1e308))).encode()
    elif words:
        data[begin : end if kind == 6 else begin] = chance.choice(words)
