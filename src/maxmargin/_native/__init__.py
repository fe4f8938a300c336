"""The compiled loops (`native/`), re-exported: `_extension.pyi` has their names and types."""

from maxmargin._native._extension import *  # noqa: F403
