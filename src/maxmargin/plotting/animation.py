"""Animation of a fit with two features.

On the left the current model: decision boundary, margins, and samples whose size shows the dual variable |b|; rings
mark the working set of the step. On the right the primal and the dual value so far, the gap and the KKT violation. Of
several classes, the regions are those of the votes, the values are sums over the pairs, and all pairs take a step in
each frame.
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
from maxmargin.estimators.fit_trace import FitTrace, MulticlassTrace
from maxmargin.plotting.style import COLOURS, INK, colour, hide_spines, marker, pyplot
from maxmargin.storage.output_files import atomic_path, write_atomically

if TYPE_CHECKING:
    import PIL.Image
    from matplotlib.axes import Axes

#: Size of a frame in inches and pixels per inch: 660 x 330 pixels.
FIGURE_SIZE, DPI = (6.6, 3.3), 100

#: The last frame is shown for at least this long.
LAST_MILLISECONDS = 2000

#: Number of grid points along each axis.
GRID_RESOLUTION = 110

#: Number of colours; few colours keep the files small.
PALETTE_SIZE = 40

PLAYER_HTML = """<div id="{name}" style="max-width:{width}px;font:14px sans-serif">
<img alt="animation of a fit" style="width:100%" src="{first}">
<div style="display:flex;gap:8px"><button type="button">pause</button>
<input type="range" min="0" max="{last}" value="0" style="flex:1"></div>
<script>(function () {{
  const root = document.getElementById("{name}"), frames = {frames};
  const [image, slider, button] = ["img", "input", "button"].map(name => root.querySelector(name));
  let playing = true;
  function show(number) {{ slider.value = number; image.src = frames[number]; }}
  slider.oninput = function () {{ playing = false; button.textContent = "play"; show(+slider.value); }};
  button.onclick = function () {{ playing = !playing; button.textContent = playing ? "pause" : "play"; }};
  setInterval(function () {{ if (playing) show((+slider.value + 1) % frames.length); }}, {milliseconds});
}})();</script></div>
"""


@dataclass
class FitAnimation:
    """Animation of a fit, created by `animate`, written by `save`, displayed by notebooks.

    Attributes
    ----------
    trace : FitTrace or MulticlassTrace
    steps : int array
        Indices of the trace entries that are shown, one per frame.
    milliseconds : int
        Duration of a frame.
    """

    trace: FitTrace | MulticlassTrace
    steps: Indices = field(repr=False)
    milliseconds: int

    def save(self, path: str | Path) -> Path:
        """Write the animation as a GIF, an MP4 or a self-contained HTML page, by the suffix of the path.

        Parameters
        ----------
        path : path that ends with .gif, .mp4 or .html
            MP4 needs the program ffmpeg.

        Returns
        -------
        Path
            The path written.
        """
        path = Path(path)
        if path.suffix == ".gif":
            first, *others = self._images()
            duration = [self.milliseconds] * len(others) + [max(LAST_MILLISECONDS, self.milliseconds)]
            with atomic_path(path) as target:
                first.save(target, save_all=True, append_images=others, duration=duration, loop=0, optimize=True)
        elif path.suffix == ".mp4":
            self._save_mp4(path)
        elif path.suffix == ".html":
            head = '<!DOCTYPE html><html><head><meta charset="utf-8"><title>Animation of a fit</title></head>'
            write_atomically(path, [f"{head}<body>{self.to_html()}</body></html>\n".encode()])
        else:
            raise ValueError(f"the path of an animation must end with .gif, .mp4 or .html, but it is {path.name!r}")
        return path

    def to_html(self) -> str:
        """Return the animation as a self-contained HTML element."""
        frames = [f"data:image/png;base64,{_base64_png(image)}" for image in self._images()]
        listed = "[" + ",\n".join(f'"{frame}"' for frame in frames) + "]"
        name = f"fit-{zlib.crc32(listed.encode()):08x}"  # a unique id, by which the script finds its element
        return PLAYER_HTML.format(name=name, width=int(FIGURE_SIZE[0] * DPI), first=frames[0], last=len(frames) - 1,
                                  frames=listed, milliseconds=self.milliseconds)  # fmt: skip

    _repr_html_ = to_html

    def _save_mp4(self, path: Path) -> None:
        """Write the frames as MP4 with ffmpeg."""
        from matplotlib.animation import FFMpegWriter

        if not FFMpegWriter.isAvailable():
            raise FileNotFoundError(
                "an animation in MP4 needs the program ffmpeg, which is not found: install it (apt install ffmpeg, "
                "conda install ffmpeg), or write a .gif or .html"
            )
        writer: Any = FFMpegWriter(fps=1000 / self.milliseconds)  # type: ignore[arg-type]  # ffmpeg takes fractions
        figures = self._figures()
        first = next(figures)
        with atomic_path(path) as target, writer.saving(first, target, DPI):
            writer.grab_frame()
            for _ in figures:
                writer.grab_frame()
            for _ in range(LAST_MILLISECONDS // self.milliseconds):
                writer.grab_frame()

    def _images(self) -> list[PIL.Image.Image]:
        """Return the frames with a common palette, so that unchanged pixels compress well."""
        import PIL.Image

        frames = list(self._frames())
        sample = PIL.Image.new("RGB", (frames[0].width, 3 * frames[0].height))
        for number, at in enumerate((0, len(frames) // 2, len(frames) - 1)):
            sample.paste(frames[at], (0, number * frames[0].height))
        palette = sample.quantize(PALETTE_SIZE, dither=PIL.Image.Dither.NONE)
        return [frame.quantize(palette=palette, dither=PIL.Image.Dither.NONE) for frame in frames]

    def _frames(self) -> Iterator[PIL.Image.Image]:
        import PIL.Image

        for figure in self._figures():
            yield PIL.Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")

    def _figures(self) -> Iterator[Any]:
        """Yield the figure with each frame, drawn."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=FIGURE_SIZE, dpi=DPI, layout="constrained")  # not registered with pyplot
        canvas: Any = FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1.0])
        horizontal, vertical, decision = _evaluate_on_grid(self.trace, self.steps)
        curves = _ObjectiveCurves(right, self.trace)
        for number, step in enumerate(self.steps):
            _draw_model(left, self.trace, int(step), horizontal, vertical, decision[number])
            curves.show_until(int(step))
            if number == 0:
                canvas.draw()
                figure.set_layout_engine("none")  # keep the layout of the first frame
            canvas.draw()
            yield figure


def animate(
    trace: FitTrace | MulticlassTrace, *, every: int | None = None, max_frames: int = 80, milliseconds: int = 200
) -> FitAnimation:
    """Create an animation of a fit with two features.

    Parameters
    ----------
    trace : FitTrace or MulticlassTrace
        The result of `maxmargin.trace`.
    every : int, optional
        Show every n-th entry of the trace. By default all entries if there are at most `max_frames`, otherwise
        entries with geometrically growing distances.
    max_frames : int
        Maximum number of frames; the last step is always included.
    milliseconds : int
        Duration of a frame.

    Returns
    -------
    FitAnimation
        Write it with ``.save("fit.gif")``, ``.save("fit.mp4")`` or ``.save("fit.html")``.
    """
    pyplot()  # raises ImportError if matplotlib is missing
    if trace.kernel is None or trace.X.ndim != 2 or trace.X.shape[1] != 2:
        raise ValueError(
            f"an animation requires exactly two features, but X has shape {tuple(trace.X.shape)}; trace a fit on two "
            "columns, or use ConvergenceDisplay.from_trace"
        )
    for name, value in (("every", every), ("max_frames", max_frames)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    return FitAnimation(trace, _select_frames(len(trace), every, max_frames), milliseconds)


def _select_frames(entries: int, every: int | None, max_frames: int) -> Indices:
    """Return the indices of the entries to show, including the last one."""
    before = np.arange(0, entries - 1, every or 1)
    if every is not None:
        before = before[: max_frames - 1]
    elif len(before) > max_frames - 1:
        before = np.unique(np.geomspace(1, len(before), max_frames - 1).astype(np.intp)) - 1
    return np.append(before, entries - 1)


def _evaluate_on_grid(trace: FitTrace | MulticlassTrace, steps: Indices) -> tuple[Floats, Floats, Any]:
    """Return the coordinates of a grid around the samples, and decision values or classes on it after each step."""
    low, high = np.min(trace.X, axis=0), np.max(trace.X, axis=0)
    border = np.where(high > low, 0.12 * (high - low), 1.0)
    horizontal, vertical = np.linspace(low - border, high + border, GRID_RESOLUTION).T
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(horizontal, vertical)])
    values: Any = (
        trace.predicted_classes(grid, steps)
        if isinstance(trace, MulticlassTrace)
        else trace.decision_values(grid, steps)
    )
    return horizontal, vertical, values.reshape(len(steps), GRID_RESOLUTION, GRID_RESOLUTION)


def _draw_model(
    ax: Axes, trace: FitTrace | MulticlassTrace, step: int, horizontal: Floats, vertical: Floats, values: Any
) -> None:
    """Draw the model after a step, and the working sets of the step; `values` are those on the grid."""
    ax.clear()
    if isinstance(trace, MulticlassTrace):
        _draw_classes(ax, horizontal, vertical, values, len(trace.classes))
    else:
        _draw_margins(ax, horizontal, vertical, values)
    X, sizes = np.asarray(trace.X), trace.dual_sizes(step)
    largest = max(float(trace.dual_sizes(at).max()) for at in range(len(trace))) or 1.0
    for number in range(len(trace.classes)):
        members = trace.labels == number
        ax.scatter(X[members, 0], X[members, 1], s=12 + 48 * sizes[members] / largest, color=colour(number),
                   marker=marker(number), alpha=0.85, linewidths=0)  # fmt: skip
    working_sets = trace.working_sets_of(step)
    for members in working_sets:
        if len(members) == 2:
            ax.plot(*X[members].T, color=INK, linewidth=0.9, linestyle=":")
    ringed = X[np.concatenate([np.empty(0, dtype=np.intp), *working_sets])]
    ax.scatter(ringed[:, 0], ringed[:, 1], s=150, facecolors="none", edgecolors=INK, linewidths=1.6)
    ax.set(xlim=horizontal[[0, -1]], ylim=vertical[[0, -1]], xticks=[], yticks=[])
    iterations = trace.values("iteration")
    ax.set_title(f"step {iterations[step]:.0f} of {iterations[-1]:.0f}", fontsize="medium", loc="left")


def _draw_margins(ax: Axes, horizontal: Floats, vertical: Floats, decision: Floats) -> None:
    """Draw the regions of two classes, the boundary and the margins."""
    ax.contourf(
        horizontal, vertical, decision, levels=[-np.inf, 0.0, np.inf], colors=[colour(0), colour(1)], alpha=0.16
    )
    for level, line, width in ((-1.0, "--", 0.9), (0.0, "-", 1.7), (1.0, "--", 0.9)):
        if decision.min() < level < decision.max():
            ax.contour(horizontal, vertical, decision, levels=[level], colors=INK, linestyles=line, linewidths=width)


def _draw_classes(ax: Axes, horizontal: Floats, vertical: Floats, predicted: Indices, classes: int) -> None:
    """Draw the regions of several classes."""
    colours = [colour(number) for number in range(classes)]
    ax.contourf(horizontal, vertical, predicted, levels=np.arange(classes + 1) - 0.5, colors=colours, alpha=0.16)
    for number in range(classes):
        if 0 < np.mean(predicted == number) < 1:
            ax.contour(horizontal, vertical, predicted == number, levels=[0.5], colors=INK, linewidths=1.2)


class _ObjectiveCurves:
    """Primal and dual value of the whole fit, pale, and up to the current step in full colour."""

    def __init__(self, ax: Axes, trace: FitTrace | MulticlassTrace) -> None:
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
        hide_spines(ax)

    def show_until(self, step: int) -> None:
        """Show the values up to this step."""
        for name, values in self.values.items():
            self.lines[name].set_data(self.iterations[: step + 1], values[: step + 1])
        ends = [values[step] for values in self.values.values()]
        self.dots.set_data([self.iterations[step]] * 2, ends)
        self.title.set_text(f"gap {ends[0] - ends[1]:.3g}, violation {self.violations[step]:.2g}")


def _base64_png(image: PIL.Image.Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "png", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
