"""Files are complete or unchanged, and errors name them: a limit on the size of files stands for a full disk."""

import errno
import json
import os
import subprocess
import sys

import pytest

from maxmargin.storage.output_files import atomic_folder, atomic_path, naming, remove_abandoned, write_atomically

#: The operating system lets files grow to this size only.
LIMIT = 4096

#: Runs each command of a JSON list with a limit on the size of files; SIGXFSZ is ignored, so that a write beyond the
#: limit fails as on a full disk.
LIMITED = f"""
import contextlib, io, json, resource, signal, sys
from maxmargin.cli.main import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({LIMIT}, {LIMIT}))
results = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        code = main(words)
    results.append([code, errors.getvalue()])
print(json.dumps(results))
"""

#: Commands that write more than the limit to a file. LIBSVM's program has its own message.
COMMANDS = {
    "model": ["train", "-q", "DATA"],
    "svm-model": ["svm-train", "-q", "DATA"],
    "table.csv": ["convert", "DATA"],
    "table.csv.gz": ["convert", "LONG"],
    "scaled.npz": ["scale", "LONG"],
    "ranges": ["scale", "DATA", os.devnull, "--to", "npz", "--save"],
    "predicted": ["predict", "LONG", "MODEL"],
    "svm-predicted": ["svm-predict", "-q", "LONG", "MODEL.libsvm"],
    "demo.png": ["demo", "-o"],
    "journal": ["grid", "DATA", "-q", "--Cs", "1,2,3,4,5,6,7", "--gammas", "1,2,3,4,5,6,7", "--journal"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with data, a model and its LIBSVM text, and an old file for each command."""
    folder = tmp_path_factory.mktemp("files")
    lines = [f"{i % 2} {i % 300 + 1}:{i * 2654435761 % 2**32 / 7}" for i in range(3000)]
    (folder / "DATA").write_text("\n".join(lines[:300]) + "\n")
    (folder / "LONG").write_text("\n".join(lines) + "\n")
    for command in (["train", "DATA", "MODEL"], ["convert", "MODEL", "MODEL.libsvm"]):
        subprocess.run([sys.executable, "-m", "maxmargin", *command, "-q"], cwd=folder, check=True, capture_output=True)
    for name in COMMANDS:
        if name != "journal":
            (folder / name).write_bytes(b"old content")
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk_leaves_the_old_file_and_is_named(folder):
    before = {path.name for path in folder.iterdir()}
    commands = json.dumps([[*words, name] for name, words in COMMANDS.items()])
    done = subprocess.run([sys.executable, "-c", LIMITED, commands], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = dict(zip(COMMANDS, json.loads(done.stdout), strict=True))
    for name, (code, errors) in results.items():
        assert code == 1, (name, errors)
        own = "can't save model to file svm-model"
        message = own if name == "svm-model" else f"maxmargin: {name}: {os.strerror(errno.EFBIG)}"
        assert errors.splitlines()[-1] == message
        assert name == "journal" or (folder / name).read_bytes() == b"old content"
    assert {path.name for path in folder.iterdir()} == before | {"journal"}
    journal = (folder / "journal").read_bytes()
    assert len(journal) == LIMIT  # it grows in place and keeps what was written
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device /dev/full of Linux")
def test_standard_output_on_a_full_disk(folder):
    for words in (["convert", "DATA", "-", "--to", "csv"], ["info", "DATA"], ["predict", "DATA", "MODEL"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([sys.executable, "-m", "maxmargin", *words], cwd=folder, stdout=full,
                                  stderr=subprocess.PIPE, text=True)  # fmt: skip
        assert (done.returncode, done.stderr) == (1, f"maxmargin: standard output: {os.strerror(errno.ENOSPC)}\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device /dev/full of Linux")
def test_devices_are_written_directly_and_named():
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_atomically("/dev/full", [b"content"])
    write_atomically(os.devnull, [b"content"])


def test_an_error_leaves_the_old_file_and_no_temporary_one(tmp_path):
    target = tmp_path / "model.gz"
    target.write_bytes(b"old")

    def write(path):
        assert path.suffix == ".gz"
        path.write_bytes(b"incomplete")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), atomic_path(target) as path:
        write(path)
    with pytest.raises(OSError, match="other folder") as caught, atomic_path(target) as path:
        (tmp_path / "other folder" / "file").write_bytes(b"")
    assert caught.value.filename != str(target)  # errors of other files keep their names
    with pytest.raises(FileNotFoundError) as missing, atomic_path(target):
        pass  # nothing was written
    assert missing.value.filename == str(target)
    assert [path.name for path in tmp_path.iterdir()] == ["model.gz"]
    assert target.read_bytes() == b"old"


def test_naming_keeps_the_kind_of_error():
    with pytest.raises(BrokenPipeError) as caught, naming("out"):
        raise OSError(errno.EPIPE, "Broken pipe")
    assert caught.value.filename == "out"
    with pytest.raises(OSError, match="^unclear$"), naming("out"):
        raise OSError("unclear")


def test_folders_are_complete_or_absent(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_folder(tmp_path / "target") as folder:
        (folder / "absent").read_text()
    assert not os.listdir(tmp_path)
    with atomic_folder(tmp_path / "target") as folder:
        (folder / "file").write_text("whole")
        remove_abandoned(tmp_path)  # its process is running
        assert os.listdir(tmp_path) == [folder.name]
    assert (tmp_path / "target" / "file").read_text() == "whole"
    with pytest.raises(OSError, match="target"), atomic_folder(tmp_path / "target") as folder:
        (folder / "file").write_text("other")
    assert os.listdir(tmp_path) == ["target"]


@pytest.mark.skipif(sys.platform == "win32", reason="processes of POSIX")
def test_folders_of_ended_processes_are_removed(tmp_path):
    script = (
        "import os, sys\nfrom maxmargin.storage.output_files import atomic_folder\n"
        "with atomic_folder(sys.argv[1]):\n    os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "target")], check=True)
    assert len(os.listdir(tmp_path)) == 1
    remove_abandoned(tmp_path)
    assert not os.listdir(tmp_path)
