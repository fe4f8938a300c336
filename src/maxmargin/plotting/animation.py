"""A fit as a film: the margin moves step by step, while primal and dual value close in on each other.

On the left the machine of the moment: boundary, margin, and each sample as large as its share |b| of the expansion;
the working set of the step is ringed. On the right how far it is, and what is proved.
"""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.kernel.fit_trace import FitTrace
from maxmargin.plotting.style import COLOURS, INK, bare, colour, marker, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from PIL.Image import Image as Picture

#: Inches and points per inch: 660 x 330 points.
SIZE, DPI = (6.6, 3.3), 100

#: Grid points along each side.
RESOLUTION = 110

#: Colours of a frame; few make small files.
PALETTE = 40

PLAYER = """<div id="{name}" style="max-width:{width}px;font:14px sans-serif">
<img alt="a fit, step by step" style="width:100%" src="{first}">
<div style="display:flex;gap:8px"><button type="button">pause</button>
<input type="range" min="0" max="{last}" value="0" style="flex:1"></div>
<script>(function () {{
  const root = document.getElementById("{name}"), frames = {frames};
  const [picture, slider, button] = ["img", "input", "button"].map(name => root.querySelector(name));
  let playing = true;
  function show(number) {{ slider.value = number; picture.src = frames[number]; }}
  slider.oninput = function () {{ playing = false; button.textContent = "play"; show(+slider.value); }};
  button.onclick = function () {{ playing = !playing; button.textContent = playing ? "pause" : "play"; }};
  setInterval(function () {{ if (playing) show((+slider.value + 1) % frames.length); }}, {milliseconds});
}})();</script></div>
"""


@dataclass
class FitAnimation:
    """Frames of a fit, made by `animate`; written with `save`, shown by a notebook as it is.

    Attributes
    ----------
    trace : FitTrace
    steps : int array
        The entries of the trace that are shown, one in each frame.
    milliseconds : int
        How long a frame stands.
    """

    trace: FitTrace
    steps: Indices = field(repr=False)
    milliseconds: int

    def save(self, path: str | Path) -> Path:
        """Write a film: a GIF, or a page that plays by itself, by the ending of the path.

        Parameters
        ----------
        path : path that ends with .gif or .html

        Returns
        -------
        Path
            Where it was written.
        """
        path = Path(path)
        if path.suffix == ".gif":
            first, *others = self._images()
            duration = [self.milliseconds] * len(others) + [max(2000, self.milliseconds)]  # the last one stands longer
            first.save(path, save_all=True, append_images=others, duration=duration, loop=0, optimize=True)
        elif path.suffix == ".html":
            page = f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>A fit</title></head><body>{self.to_html()}'
            path.write_text(f"{page}</body></html>\n", encoding="utf-8")
        else:
            raise ValueError(f"an animation is written as .gif or .html, not as {path.name!r}")
        return path

    def to_html(self) -> str:
        """Return the film as a piece of a page, with everything that it needs in it."""
        frames = [f"data:image/png;base64,{_encoded(image)}" for image in self._images()]
        listed = "[" + ",\n".join(f'"{frame}"' for frame in frames) + "]"
        name = f"fit-{zlib.crc32(listed.encode()):08x}"  # notebooks do not tell a script where it stands
        return PLAYER.format(name=name, width=int(SIZE[0] * DPI), first=frames[0], last=len(frames) - 1, frames=listed,
                             milliseconds=self.milliseconds)  # fmt: skip

    _repr_html_ = to_html

    def _images(self) -> list[Picture]:
        """Return the frames in colours that all share, so that what stands still costs nothing."""
        from PIL import Image

        frames = list(self._frames())
        sample = Image.new("RGB", (frames[0].width, 3 * frames[0].height))
        for number, at in enumerate((0, len(frames) // 2, len(frames) - 1)):
            sample.paste(frames[at], (0, number * frames[0].height))
        palette = sample.quantize(PALETTE, dither=Image.Dither.NONE)
        return [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]

    def _frames(self) -> Iterator[Picture]:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from PIL import Image

        figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained")  # not known to pyplot, so nobody must close it
        canvas: Any = FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1.0])
        horizontal, vertical, decision = _on_a_grid(self.trace, self.steps)
        curve = _Curve(right, self.trace)
        for number, step in enumerate(self.steps):
            _draw_machine(left, self.trace, int(step), horizontal, vertical, decision[number])
            curve.move_to(int(step))
            if number == 0:
                canvas.draw()
                figure.set_layout_engine("none")  # axes stay where they are from now on
            canvas.draw()
            yield Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def animate(
    trace: FitTrace, *, every: int | None = None, max_frames: int = 80, milliseconds: int = 200
) -> FitAnimation:
    """Make a film of a fit on two features.

    Parameters
    ----------
    trace : FitTrace
        Made by `maxmargin.trace`.
    every : int, optional
        Show every so manieth entry. By default all if there are at most `max_frames`; of more, the first ones and
        then fewer and fewer, as less and less happens.
    max_frames : int
        How many frames at most; the last step is always among them.
    milliseconds : int
        How long each of them stands.

    Returns
    -------
    FitAnimation
        ``.save("fit.gif")`` or ``.save("fit.html")`` writes it.
    """
    pyplot()  # or a sentence about what is missing
    if trace.kernel is None or trace.X.ndim != 2 or trace.X.shape[1] != 2:
        raise ValueError(
            f"a film of regions needs exactly two features, but X has shape {tuple(trace.X.shape)}; trace the fit of "
            "two columns, or draw ConvergenceDisplay.from_trace"
        )
    for name, value in (("every", every), ("max_frames", max_frames)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    return FitAnimation(trace, _choose(len(trace), every, max_frames), milliseconds)


def _choose(entries: int, every: int | None, max_frames: int) -> Indices:
    """Return which entries are shown; the last one always is."""
    before = np.arange(0, entries - 1, every or 1)
    if every is not None:
        before = before[: max_frames - 1]
    elif len(before) > max_frames - 1:
        before = np.unique(np.geomspace(1, len(before), max_frames - 1).astype(np.intp)) - 1
    return np.append(before, entries - 1)


def _on_a_grid(trace: FitTrace, steps: Indices) -> tuple[Floats, Floats, Floats]:
    """Return both sides of a grid about the samples, and f on it at each of the steps."""
    low, high = np.min(trace.X, axis=0), np.max(trace.X, axis=0)
    border = np.where(high > low, 0.12 * (high - low), 1.0)
    horizontal, vertical = (np.linspace(*ends, RESOLUTION) for ends in zip(low - border, high + border, strict=True))
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(horizontal, vertical)])
    values = trace.decision_values(grid, steps)
    return horizontal, vertical, values.reshape(len(steps), RESOLUTION, RESOLUTION)


def _draw_machine(ax: Axes, trace: FitTrace, step: int, horizontal: Floats, vertical: Floats, decision: Floats) -> None:
    """Draw the machine after a step, and which samples the step was about."""
    ax.clear()
    X, dual, pair = np.asarray(trace.X), trace.duals[step], trace.working_sets[step]
    ax.contourf(
        horizontal, vertical, decision, levels=[-np.inf, 0.0, np.inf], colors=[colour(0), colour(1)], alpha=0.16
    )
    for level, line, width in ((-1.0, "--", 0.9), (0.0, "-", 1.7), (1.0, "--", 0.9)):
        if decision.min() < level < decision.max():
            ax.contour(horizontal, vertical, decision, levels=[level], colors=INK, linestyles=line, linewidths=width)
    largest = np.abs(trace.duals).max() or 1.0
    for number, sign in enumerate((-1.0, 1.0)):
        mine = trace.signs == sign
        ax.scatter(X[mine, 0], X[mine, 1], s=12 + 48 * np.abs(dual[mine]) / largest, color=colour(number),
                   marker=marker(number), alpha=0.85, linewidths=0)  # fmt: skip
    if len(pair) == 2:
        ax.plot(*X[pair].T, color=INK, linewidth=0.9, linestyle=":")
    ax.scatter(X[pair, 0], X[pair, 1], s=150, facecolors="none", edgecolors=INK, linewidths=1.6)
    ax.set(xlim=horizontal[[0, -1]], ylim=vertical[[0, -1]], xticks=[], yticks=[])
    ax.set_title(
        f"step {trace.entries[step].iteration} of {trace.entries[-1].iteration}", fontsize="medium", loc="left"
    )


class _Curve:
    """Primal and dual value of the whole way in grey, and in colour as far as it has come."""

    def __init__(self, ax: Axes, trace: FitTrace) -> None:
        self.ax = ax
        self.iterations, self.violations = trace.values("iteration"), trace.values("violation")
        self.values = {"primal": trace.values("primal"), "dual": trace.values("dual")}
        self.lines: dict[str, Any] = {}
        for (name, values), hue, line in zip(self.values.items(), (COLOURS[1], COLOURS[0]), ("-", "--"), strict=True):
            ax.plot(self.iterations, values, color=hue, alpha=0.2, linewidth=1.2)
            self.lines[name] = ax.plot([], [], color=hue, linestyle=line, linewidth=1.8, label=f"{name} value")[0]
        self.dots = ax.plot([], [], linestyle="none", marker="o", markersize=4, color=INK)[0]
        ax.set(xlabel="steps", ylabel="objective")
        ax.grid(alpha=0.25)
        ax.legend(frameon=False, fontsize="small", loc="upper right")
        self.title = ax.set_title(" ", fontsize="medium", loc="left")
        bare(ax)

    def move_to(self, step: int) -> None:
        """Show the values as far as this step."""
        for name, values in self.values.items():
            self.lines[name].set_data(self.iterations[: step + 1], values[: step + 1])
        ends = [values[step] for values in self.values.values()]
        self.dots.set_data([self.iterations[step]] * 2, ends)
        self.title.set_text(f"gap {ends[0] - ends[1]:.3g}, violation {self.violations[step]:.2g}")


def _encoded(image: Picture) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "png", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
