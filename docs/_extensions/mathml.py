"""Formulas as MathML, which browsers draw themselves: no script, no fonts, no network, no LaTeX."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def visit_inline(self, node):
    """Write a formula in a line."""
    self.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_block(self, node):
    """Write a formula of its own, or several aligned ones."""
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(tex2mathml(node.astext(), as_block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
