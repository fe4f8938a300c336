"""Pictures of pages, drawn while the site is built by the code that the page shows.

A comment, invisible where the page is read in the repository, is a picture on the site::

    <!-- picture: Two moons and a margin -->                              a figure of the Python block above
    <!-- picture fit.gif: The margin after each step -->                  a file written by the page's code or a command
    <!-- picture examples/gallery/solvers/step_sizes.py: Five rules -->   the first picture of an example

Several comments below a block are its figures in order. The Python blocks of such a page are executed one after the
other in a process and an empty folder of their own; a command, a line that begins with ``$``, is executed if a comment
names a file that it mentions and that does not exist yet.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sphinx.errors import ExtensionError

ROOT = Path(__file__).parents[2]
FOLDER = "generated/pictures"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)
PICTURE = re.compile(r"^<!-- picture(?: (\S+))?: (.+?) -->$", re.MULTILINE)
EXAMPLE = re.compile(r"examples/gallery/(.+)/(\w+)\.py")

#: Width of a figure on the page in pixels per inch; it is drawn with twice as many for sharp screens.
PIXELS_PER_INCH = 100


def draw(text: str, place: Path) -> list[str]:
    """Draw the pictures of a page into a folder, which is `place` and a number; return how the page shows each."""
    import matplotlib.pyplot as plt

    names: dict[str, object] = {}
    shown = []
    pictures = list(PICTURE.finditer(text))
    code = [] if all(EXAMPLE.fullmatch(picture[1] or "") for picture in pictures) else PYTHON.finditer(text)
    parts = sorted([*code, *pictures], key=lambda part: part.start())
    for part in parts:
        if part.re is PYTHON:
            plt.close("all")
            exec(compile(part[1], f"{place.name}.md", "exec"), names)
            continue
        source, title = part.groups()
        number = f"{place}-{len(shown) + 1}"
        if source is None:
            if not plt.get_fignums():
                raise ValueError(f"no figure of the code above is left for the picture {title!r}")
            figure = plt.figure(plt.get_fignums()[0])
            width = round(figure.get_figwidth() * PIXELS_PER_INCH)
            figure.savefig(f"{number}.png", dpi=2 * PIXELS_PER_INCH)
            plt.close(figure)
            shown.append(f"![{title}](/{FOLDER}/{Path(number).name}.png){{width={width}px}}")
        elif example := EXAMPLE.fullmatch(source):
            picture = f"generated/gallery/{example[1]}/images/sphx_glr_{example[2]}_001.png"
            shown.append(f"![{title}](/{picture})")
        else:
            _make(source, text)
            shutil.copy(source, f"{number}{Path(source).suffix}")
            shown.append(f"![{title}](/{FOLDER}/{Path(number).name}{Path(source).suffix})")
    return shown


def _make(file: str, text: str) -> None:
    """Run the command of the page that writes a file, if the code has not written it."""
    for command in COMMAND.findall(text):
        if file in command and not Path(file).exists():
            subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)


def insert_pictures(app, name, source):
    """Replace the comments of a page that is read by its pictures."""
    if not PICTURE.search(source[0]) or Path(app.env.doc2path(name)).suffix != ".md":
        return
    place = Path(app.srcdir, FOLDER, name.replace("/", "-"))
    place.parent.mkdir(parents=True, exist_ok=True)
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__, str(place)],
            cwd=folder,
            env=os.environ | {"MPLBACKEND": "agg", "PATH": programs},
            input=source[0],
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
    if done.returncode:
        raise ExtensionError(f"the code of {name}.md failed:\n{done.stderr}")
    shown = iter(done.stdout.split("\n\n"))
    source[0] = PICTURE.sub(lambda _: next(shown), source[0])


def setup(app):
    """Connect the handler."""
    app.connect("source-read", insert_pictures, priority=600)  # after the links of the repository are redirected
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    answer, sys.stdout = sys.stdout, sys.stderr  # the code of the page prints, too
    sys.stdin.reconfigure(encoding="utf-8")
    answer.reconfigure(encoding="utf-8")
    answer.write("\n\n".join(draw(sys.stdin.read(), Path(sys.argv[1]))))
