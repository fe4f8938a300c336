"""Figures of the teacher's corner as vector graphics, with links to SVG and PDF files; others are pixels."""

from pathlib import Path

import matplotlib.pyplot as plt
from sphinx_gallery.scrapers import figure_rst, matplotlib_scraper


def scrape(block, block_vars, gallery_conf, **options):
    """Save the figures of a block of an example; return the reStructuredText that shows them."""
    if Path(block_vars["src_file"]).parent.name != "teaching":
        return matplotlib_scraper(block, block_vars, gallery_conf, **options)
    shown = ""
    for number, place in zip(plt.get_fignums(), block_vars["image_path_iterator"], strict=False):
        drawing, printed = Path(place).with_suffix(".svg"), Path(place).with_suffix(".pdf")
        for file in (drawing, printed):
            plt.figure(number).savefig(file)
        source = gallery_conf["src_dir"]
        svg, pdf = ("/" + file.relative_to(source).as_posix() for file in (drawing, printed))
        shown += figure_rst([str(drawing)], source)
        shown += f"\n.. rst-class:: slide-figure\n\nFor slides: :download:`SVG <{svg}>`, :download:`PDF <{pdf}>`\n\n"
    plt.close("all")
    return shown
