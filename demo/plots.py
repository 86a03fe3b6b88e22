"""The figures: rows/s and reads in flight over time, and a summary; as PNG files and as SVG for the page.

Drawn by matplotlib, which comes from PyPI into build/demo/pylib where the system has none, or else is a package of the
system's. Without it there is a report without figures.
"""

import importlib
import os
import shutil
import sys
from dataclasses import dataclass

import inputs
import pglib
from pglib import PgError
from prepare import SIDES

LIBRARY = inputs.WORK / "pylib"
COLORS = {"off": "#8a8f98", "on": "#1b6fd6"}
LABELS = {"off": "awaiting off", "on": "awaiting on"}
STYLE = {
    "font.family": "DejaVu Sans", "font.size": 10, "axes.titlesize": 11, "axes.labelsize": 9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#b9bec7", "axes.grid": True,
    "axes.grid.axis": "y", "grid.color": "#e6e9ee", "axes.axisbelow": True, "text.color": "#1d2430",
    "axes.labelcolor": "#4a5363", "xtick.color": "#4a5363", "ytick.color": "#4a5363", "xtick.labelsize": 8,
    "ytick.labelsize": 8, "legend.frameon": False, "figure.dpi": 110, "savefig.dpi": 160, "svg.fonttype": "none",
}
BINS = 28       # of the time axis; the slowest side fills them all


@dataclass
class Figure:
    name: str
    caption: str
    svg: str


def get_library(progress):
    """Import matplotlib, installing it if need be; None if it cannot be had."""
    sys.path.insert(0, str(LIBRARY))
    os.environ["MPLCONFIGDIR"] = str(pglib.make_directory(inputs.WORK / "pylib-cache"))
    try:
        return importlib.import_module("matplotlib")
    except ImportError:
        pass
    try:
        with progress.step("fetching matplotlib from PyPI, for the figures"):
            shutil.rmtree(LIBRARY, ignore_errors=True)     # an earlier one was for another Python
            with inputs.new_directory(LIBRARY) as directory:
                inputs.pip("install", "--only-binary=:all:", "--no-compile", f"--target={directory}", "matplotlib")
        importlib.invalidate_caches()
        return importlib.import_module("matplotlib")
    except (PgError, ImportError) as error:
        progress.note(f"matplotlib cannot be had from PyPI: {inputs.last_line(error)}")
    try:
        with progress.step("installing the system's matplotlib"):
            shutil.rmtree(LIBRARY, ignore_errors=True)
            pglib.run([pglib.REPO / "tools" / "install-packages", "python3-matplotlib"])
        importlib.invalidate_caches()
        return importlib.import_module("matplotlib")
    except (PgError, ImportError) as error:
        progress.note(f"nor is it a package here: {inputs.last_line(error)}\nso the report will have no figures")
        return None


def draw(matplotlib, results, chapters):
    """Draw all figures, write their PNG files, and return them."""
    matplotlib.use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    figures = []
    with matplotlib.rc_context(STYLE):
        figures.append(finish(pyplot, draw_summary(pyplot, results), "summary",
                              "Rows per second, and how many times as many with awaiting on."))
        for new in inputs.INPUTS:
            mine = [result for result in results if result.new is new]
            figures.append(finish(pyplot, draw_over_time(pyplot, new, mine), new.name,
                                  f"{new.title}: the loads of each side, one after the other without the pauses in "
                                  f"between. Reads in flight are sampled from pg_aios."))
        for chapter, found in chapters:
            figures.append(finish(pyplot, draw_chapter(pyplot, chapter, found), chapter.name,
                                  f"Seconds, and how many times as fast with {chapter.switch}."))
    return figures


def draw_shards(matplotlib, rates):
    """Draw rows per second by number of servers."""
    matplotlib.use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    with matplotlib.rc_context(STYLE):
        figure, axis = pyplot.subplots(figsize=(5, 3.6), layout="constrained")
        for side, color, label in ("stock", "off", "stock coordinator"), ("ours", "on", "our coordinator"):
            axis.plot(list(rates), [rate[side] for rate in rates.values()], color=COLORS[color], label=label,
                      marker="o")
        axis.set_xticks(list(rates))
        axis.set_ylim(bottom=0)
        axis.set_xlabel("servers")
        axis.set_ylabel("rows/s")
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.legend()
        return finish(pyplot, figure, "shards", "Rows per second by number of servers.")


def finish(pyplot, figure, name, caption):
    path = inputs.WORK / f"{name}.png"
    figure.savefig(path)
    # Identifiers inside an SVG derive from the salt; several of them share a page.
    with pyplot.rc_context({"svg.hashsalt": name}):
        svg_path = inputs.WORK / f"{name}.svg"
        figure.savefig(svg_path, metadata={"Date": None})
    pyplot.close(figure)
    svg = svg_path.read_text()
    svg_path.unlink()
    return Figure(name, caption, svg[svg.index("<svg"):])


def draw_summary(pyplot, results):
    news = list(dict.fromkeys(result.new.name for result in results))
    figure, axes = pyplot.subplots(1, len(news), figsize=(10, 3.6), squeeze=False, layout="constrained")
    for axis, name in zip(axes[0], news):
        mine = [result for result in results if result.new.name == name]
        for place, result in enumerate(mine):
            for side, shift in zip(SIDES, (-0.19, 0.19)):
                axis.bar(place + shift, result.rows_per_s(side), 0.36, color=COLORS[side],
                         label=LABELS[side] if place == 0 else None)
            axis.annotate(f"{result.ratio():.2f}×", (place + 0.19, result.rows_per_s("on")), xytext=(0, 3),
                          textcoords="offset points", ha="center", fontweight="bold", color=COLORS["on"])
        axis.set_xticks(range(len(mine)), [result.method for result in mine], fontsize=10)
        axis.set_title(mine[0].new.title, loc="left", fontweight="bold")
        axis.set_ylabel("rows/s")
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.margins(y=0.22)
        axis.tick_params(length=0)
    axes[0][0].legend(loc="upper left", ncols=2)
    return figure


def draw_chapter(pyplot, chapter, found):
    methods = list(dict.fromkeys(result.method for result in found))
    titles = list(dict.fromkeys(result.statement.title for result in found))
    figure, axes = pyplot.subplots(1, len(methods), figsize=(10, 1.3 + 0.5 * len(titles)), squeeze=False, sharex=True,
                                   sharey=True, layout="constrained")
    for axis, method in zip(axes[0], methods):
        for result in (result for result in found if result.method == method):
            place = titles.index(result.statement.title)
            for side, shift in zip(SIDES, (-0.19, 0.19)):
                axis.barh(place + shift, result.seconds(side), 0.36, color=COLORS[side],
                          label=f"{chapter.switch} {side}" if place == 0 else None)
            axis.annotate(f"{result.ratio():.2f}×", (result.seconds("on"), place + 0.19), xytext=(4, 0),
                          textcoords="offset points", va="center", fontweight="bold", color=COLORS["on"])
        axis.set_yticks(range(len(titles)), titles)
        axis.grid(axis="x")
        axis.grid(visible=False, axis="y")
        axis.set_title(f"io_method = {method}", loc="left", fontweight="bold")
        axis.set_xlabel("seconds")
        axis.tick_params(length=0)
    axes[0][0].invert_yaxis()
    axes[0][0].margins(x=0.15)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
    return figure


def draw_over_time(pyplot, new, results):
    figure, axes = pyplot.subplots(2, len(results), figsize=(1.2 + 3.6 * len(results), 5), squeeze=False,
                                   sharex=True, sharey="row", layout="constrained")
    width = max(result.seconds(side) for result in results for side in SIDES) / BINS
    for column, result in enumerate(results):
        above, below = axes[0][column], axes[1][column]
        for side in SIDES:
            style = {"color": COLORS[side], "label": LABELS[side], "linewidth": 1.8}
            above.plot(*rate_over_time(result.loads[side], width), **style)
            below.plot(*reads_over_time(result.loads[side], width), **style)
        above.set_title(f"io_method = {result.method}", loc="left", fontweight="bold")
        above.yaxis.set_major_formatter("{x:,.0f}")
        below.set_xlabel("seconds of loading")
    for axis in (*axes[0], *axes[1]):
        axis.set_ylim(bottom=0)
        axis.set_xlim(left=0)
        axis.tick_params(labelleft=True)
    axes[0][0].set_ylabel("rows/s")
    axes[1][0].set_ylabel("reads in flight")
    figure.suptitle(new.title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="upper right", ncols=2)
    return figure


def rate_over_time(loads, width):
    """Rows per second in intervals of `width`, over the loads put end to end."""
    # COPY counts rows when a batch of them is in, so only where the number changes does a sample tell how far it is.
    points, before = [(0.0, 0)], (0.0, 0)
    for load in loads:
        seen = 0
        for at, rows, _ in load.samples:
            if rows > seen and at < load.seconds:
                points.append((before[0] + at, before[1] + rows))
                seen = rows
        before = (before[0] + load.seconds, before[1] + load.rows)
        points.append(before)
    times = [time for time, _ in bins(points[-1][0], width)]
    done = [interpolate(points, time) for time in (*times, points[-1][0])]
    edges = [*times, points[-1][0]]
    return ([(left + right) / 2 for left, right in zip(edges, edges[1:])],
            [(after - until) / (right - left)
             for left, right, until, after in zip(edges, edges[1:], done, done[1:])])


def reads_over_time(loads, width):
    """Mean of the samples of reads in flight in intervals of `width`, over the loads put end to end."""
    samples, before = [], 0.0
    for load in loads:
        samples += [(before + at, in_flight) for at, _, in_flight in load.samples if at < load.seconds]
        before += load.seconds
    middles, means = [], []
    for left, right in bins(before, width):
        inside = [in_flight for at, in_flight in samples if left <= at < right]
        if inside:
            middles.append((left + right) / 2)
            means.append(sum(inside) / len(inside))
    return middles, means


def bins(length, width):
    """Cut a length into equal intervals of about `width`."""
    count = max(1, round(length / width))
    return [(length * number / count, length * (number + 1) / count) for number in range(count)]


def interpolate(points, time):
    for (left, low), (right, high) in zip(points, points[1:]):
        if time <= right:
            return low + (high - low) * (time - left) / (right - left)
    return points[-1][1]
