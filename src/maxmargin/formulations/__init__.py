"""Machines as data for the one problem: `pose` fills the arrays, `read` explains the solution."""
