"""Run all experiments, one after the other."""

from importlib import import_module

from examples.experiments.common import parse, run

NAMES = [
    "selection",
    "growth",
    "kernel_values",
    "cache_and_shrinking",
    "small_and_large_c",
    "three_errors",
    "duality",
    "online_learning",
]

if __name__ == "__main__":
    options = parse(__doc__)
    for name in NAMES:
        run(import_module(f"examples.experiments.{name}"), options)
