"""Machines as data for the one problem: `pose` fills the arrays, `expand` and `read` explain the solution."""
