"""Data to try things on."""

from maxmargin.datasets.generators import chessboard

__all__ = ["chessboard"]
