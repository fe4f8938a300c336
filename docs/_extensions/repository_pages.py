"""Files of the repository outside ``docs`` as pages of the site, and links to them.

``CONTRIBUTING.md`` and its like are read in the repository, and copied into ``docs/generated/repository`` for the site.
Links that are right in the repository are redirected: to these copies, and to the pages that sphinx-gallery makes of
scripts.
"""

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

ROOT = Path(__file__).parents[2]
#: File of the repository: page of the site.
PAGES = {
    "CHANGELOG.md": "docs/generated/repository/changelog.md",
    "CONTRIBUTING.md": "docs/generated/repository/contributing.md",
    "SECURITY.md": "docs/generated/repository/security.md",
    "examples/serving/README.md": "docs/generated/repository/serving.md",
    "benchmarks/gpu/results/h200.md": "docs/generated/repository/benchmark_h200.md",
    **{
        f"benchmarks/peers/results/{suite}.md": f"docs/generated/repository/benchmark_{suite}.md"
        for suite in ("growth", "kernel", "large", "linear", "machines", "small")
    },
}
LINK = re.compile(r"\]\(([^)#:]+)")
NAMED_BY_FILE = re.compile(r"\[[\w/]+\.md\]\(")
SCRIPT = re.compile(r"examples/(gallery|teaching)/(.+)\.py")


def page_of(file: str) -> str:
    """Return the page of the site for a file of the repository, or the file itself if it has none."""
    script = SCRIPT.fullmatch(file)
    return f"docs/generated/{script[1]}/{script[2]}.rst" if script else PAGES.get(file, file)


def redirected(text: str, file: str) -> str:
    """Return the text of a file with its links as they are on its page; names of files become titles of pages."""
    folder, place = dirname(file), dirname(page_of(file))
    text = NAMED_BY_FILE.sub("[](", text)
    return LINK.sub(lambda link: "](" + relpath(page_of(normpath(join(folder, link[1]))), place), text)


def copy_pages(app, config):
    """Write the copies; one that is up to date is left alone, so that it is not built again."""
    for file, page in PAGES.items():
        text = redirected((ROOT / file).read_text(encoding="utf-8"), file)
        copy = ROOT / page
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_text(encoding="utf-8") != text:
            copy.write_text(text, encoding="utf-8")


def redirect_links(app, name, source):
    """Redirect the links of a page that is read."""
    if Path(app.env.doc2path(name)).suffix == ".md" and not name.startswith("generated/"):
        source[0] = redirected(source[0], f"docs/{name}.md")


def setup(app):
    """Connect the handlers."""
    app.connect("config-inited", copy_pages)
    app.connect("source-read", redirect_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
