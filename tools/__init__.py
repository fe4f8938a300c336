"""Maintainers' tools: the import graph, the trace of a fit, the terminology check. Not part of the package."""
