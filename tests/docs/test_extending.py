"""The kernel of docs/extending.md fulfils the contract of kernels, with the test that the page shows."""

import re
import textwrap
from pathlib import Path

import pytest

from maxmargin.testing.kernel_contract import KernelContract

PAGE = (Path(__file__).resolve().parents[2] / "docs/extending.md").read_text(encoding="utf-8")
names = {"KernelContract": KernelContract, "pytest": pytest}
exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], names)
exec(textwrap.dedent(re.search(r"\n(    class TestRationalQuadratic.*?)\n\n(?=\S)", PAGE, re.DOTALL)[1]), names)

TestRationalQuadratic = names["TestRationalQuadratic"]
