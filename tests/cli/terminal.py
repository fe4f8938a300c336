"""Run commands on a pseudo-terminal or without a terminal."""

import codecs
import os
import pty
import re
import select
import subprocess
import sys
import time

#: Absolute paths, because commands run in other folders.
FOLDERS = [os.path.abspath(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(FOLDERS)}

COMMAND = [sys.executable, "-c", "import sys; from maxmargin.cli.main import main; sys.exit(main())"]


class Terminal:
    """A command on a terminal with the given number of columns, and its output."""

    def __init__(self, *arguments, columns=100):
        pid, self.end = pty.fork()
        if not pid:
            size = {"COLUMNS": str(columns), "LINES": "40", "TERM": "xterm-256color"}
            os.execve(COMMAND[0], [*COMMAND, *map(str, arguments)], {**ENVIRONMENT, **size})
        self.pid, self.written = pid, ""
        self.decoder = codecs.getincrementaldecoder("utf-8")()  # a character may be split between two reads

    def read(self, until=None, seconds=60.0):
        """Read until a pattern appears, or to the end of the output."""
        deadline = time.monotonic() + seconds
        while until is None or not re.search(until, self.written):
            assert time.monotonic() < deadline, self.written
            if not select.select([self.end], [], [], 1.0)[0]:
                continue
            try:
                part = os.read(self.end, 65536)
            except OSError:  # on Linux the end of the output
                part = b""
            if not part:
                break
            self.written += self.decoder.decode(part)
        return plain(self.written)

    def press(self, key):
        os.write(self.end, key)

    def code(self):
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.end)
        return code


def call(*arguments, input="", code=0):
    """Run a command in a process without a terminal; return the completed process."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], input=input, text=True, capture_output=True, timeout=120, env=ENVIRONMENT
    )
    assert done.returncode == code, done.stderr
    return done


def plain(text):
    """Return text without control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
