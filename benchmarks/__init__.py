"""Measurements. Benchmarks are not tests: nothing here runs in the test suite."""
