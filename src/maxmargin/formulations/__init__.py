"""Machines as data for the one problem: each file has `pose`, which fills the arrays, and `read`, which explains them."""
