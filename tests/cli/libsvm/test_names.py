"""The programs under their own names: the distribution in packaging/libsvm-names, and scripts in a shell."""

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import maxmargin
from maxmargin.cli.main import DROP_INS
from reference.libsvm_programs import write_data

PROJECT = Path(__file__).parents[3] / "packaging/libsvm-names/pyproject.toml"


def test_every_program_has_a_script():
    scripts = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["scripts"]
    assert set(scripts) == set(DROP_INS)
    for target in scripts.values():
        module, function = target.split(":")
        assert callable(getattr(import_module(module), function))


def test_session_in_a_shell(tmp_path):
    """Scale, train and predict with scripts like those of an installer."""
    write_data(tmp_path)
    for name in ("svm-scale", "svm-train", "svm-predict"):
        script = tmp_path / name
        lines = [f"#!{sys.executable}", "import sys", "from maxmargin.cli.main import run_by_name",
                 "sys.exit(run_by_name())"]  # fmt: skip
        script.write_text("\n".join([*lines, ""]))
        script.chmod(0o755)
    session = (
        "./svm-scale -s ranges iris > scaled && ./svm-train -c 10 -v 3 -q scaled && "
        "./svm-train -c 10 scaled model | tail -1 && ./svm-predict scaled model out; ./svm-train -c -3 iris; echo $?"
    )
    here = {**os.environ, "PYTHONPATH": str(Path(maxmargin.__file__).parents[1])}
    done = subprocess.run(
        session, shell=True, cwd=tmp_path, env=here, capture_output=True, text=True, timeout=120, check=False
    )
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Cross Validation Accuracy = 9")
    assert lines[1].startswith("Total nSV = ")
    assert lines[2].startswith("Accuracy = 9")
    assert lines[3] == "1"
    assert done.stderr == "ERROR: C <= 0\n"
    assert len((tmp_path / "out").read_text().splitlines()) == 150
