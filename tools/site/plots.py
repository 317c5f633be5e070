# SPDX-License-Identifier: Apache-2.0
"""Draws bar charts, as SVG, of numbers that it reads in bench/results/*/*.md.

No number stands here: a chart names the file, the section, the table, its rows and columns, and a row
or column that is not there any more ends the making of the site. Widths are shares of the page, so that
texts keep their size on a narrow screen, and colours are those of the page, light or dark."""
import html
import os
import re

# file, section, how the table's header begins: then {series: column}, and what each row is called.
CHARTS = {
    "networks": dict(
        file="models/gpu_networks_h200.md", section="Moments, shortcuts, short texts", table="| network",
        series={"PyTorch, CUDA graph": "PyTorch graph", "Rondo, replay, untuned": "now: off, p99",
                "Rondo, replay, tuned": "full, p99"},
        unit="us", title="A run of one input with the wait, fp16", rows="^(?!.*_b128)"),
    "dynamic": dict(
        file="core/dynamic_parameters_h200.md", section="Before", table="| 8 kernels",
        series={"kernels in a row": "wall, ms", "kernels that overlap": "kernels overlap: wall, ms"},
        unit="ms", title="40 000 steps of 8 short kernels, 4 of them with another factor in each step"),
    "host": dict(
        file="models/cpu_vs_onnxruntime.md", section="2026-11-26, at last: all models", table="| model",
        series={"AVX-512": "AVX-512", "AVX2": "AVX2"}, mark=1.0,
        unit="", title="A run on the processor: Rondo's time over ONNX Runtime's (below 1: Rondo is faster)"),
    "start": dict(
        file="models/start_up.md", section="One H200", table="| model", label=("model", "tune"),
        series={"empty caches": "empty", "warm caches": "warm"},
        unit="s", title="From the start of the process to its first result on a GPU"),
    "capture": dict(
        file="core/capture_core_h200.md", section="Now and before, in one session", table="| ",
        rows=r"replay over cuGraphLaunch, 1 node|^\d+ nodes$", drop=r"^replay over cuGraphLaunch, |, ns", series={"added to the driver's call": "new"},
        unit="ns", title="What a replay costs the processor over the driver's own call"),
    "memory": dict(
        file="core/memory_in_captures.md", section="Memory in captures", table="| ",
        series={"allocate": "H200 allocate", "free": "H200 free"},
        unit="ns", title="A block of a pool, taken and given back"),
    "mixed": dict(
        file="models/placement_h200.md", section="What the place of an op costs", table="| 20 ops",
        series={"eager": "eager", "replayed": "replayed"},
        unit="us", title="A table on the processor, 20 ops on the GPU: one run"),
}
BAR, LINE, GAP = 13, 17, 9  # heights


def read_table(path, section, begin):
    """Rows of the first table of a section whose header begins so: a dict of texts each, in order."""
    with open(path, encoding="utf-8") as stream:
        lines = stream.read().split("\n")
    starts = [i for i, line in enumerate(lines) if line.startswith("#") and section in line]
    if not starts:
        raise SystemExit("tools/site: %s has no section %r" % (path, section))
    for at in range(starts[0] + 1, len(lines)):
        if lines[at].startswith(begin) and re.match(r"\|[-:| ]+$", lines[at + 1]):
            break
    else:
        raise SystemExit("tools/site: %s has no table that begins with %r" % (path, begin))
    split = lambda line: [cell.strip() for cell in line.strip().strip("|").split("|")]
    names, rows = split(lines[at]), []
    for line in lines[at + 2:]:
        if not line.startswith("|"):
            return names, rows
        rows.append(split(line))
    return names, rows


def find_column(names, wanted, path):
    # The last one of the name: a table repeats a short one for what is now.
    places = [i for i, name in enumerate(names) if name == wanted]
    if not places:
        raise SystemExit("tools/site: %s has no column %r, but %s" % (path, wanted, names))
    return places[-1]


def read_number(text):
    found = re.match(r"-?\d+(\.\d+)?", text)
    return float(found[0]) if found else None


def read_chart(folder, chart):
    """[(label, [numbers, None where there is none])], as many numbers as the chart has series."""
    path = os.path.join(folder, chart["file"])
    names, rows = read_table(path, chart["section"], chart["table"])
    columns = [find_column(names, wanted, path) for wanted in chart["series"].values()]
    labels = [find_column(names, wanted, path) for wanted in chart.get("label", ())] or [0]
    bars = []
    for row in rows:
        label = ", ".join(row[i] for i in labels)
        if "rows" in chart and not re.search(chart["rows"], label):
            continue
        values = [read_number(row[i]) for i in columns]
        if any(value is not None for value in values):
            bars.append((re.sub(r" \((goal|aim).*\)|`|" + chart.get("drop", "`"), "", label), values))
    if not bars:
        raise SystemExit("tools/site: %s has no rows for its chart" % path)
    return bars


def show(value):
    return "%d" % value if value == int(value) and value >= 10 else "%g" % value


def draw(chart, bars):
    names = list(chart["series"])
    top = max(value for _, values in bars for value in values if value is not None)
    out, y = [], 0
    for i, name in enumerate(names):  # the legend
        out.append('<rect class="s%d" x="0" y="%d" width="12" height="12"/><text x="18" y="%d">%s</text>' %
                   (i, y, y + 11, html.escape(name)))
        y += LINE
    y += GAP
    first = y
    for label, values in bars:
        out.append('<text x="0" y="%d">%s</text>' % (y + 12, html.escape(label)))
        y += LINE
        for i, value in enumerate(values):
            if value is None:
                continue
            width = 82.0 * max(value, 0) / top
            out.append('<rect class="s%d" x="0" y="%d" width="%.2f%%" height="%d"/>' % (i, y, width, BAR - 2))
            out.append('<text class="v" x="%.2f%%" y="%d" dx="5">%s</text>' %
                       (width, y + 10, (show(value) + " " + chart["unit"]).strip()))
            y += BAR
        y += GAP
    if "mark" in chart:
        at = 82.0 * chart["mark"] / top
        out.append('<line class="mark" x1="%.2f%%" x2="%.2f%%" y1="%d" y2="%d"/>' % (at, at, first, y - GAP))
    return ('<figure class="plot"><figcaption>%s</figcaption>\n<svg role="img" aria-label="%s" width="100%%" '
            'height="%d" xmlns="http://www.w3.org/2000/svg">\n%s\n</svg></figure>' %
            (html.escape(chart["title"]), html.escape(chart["title"]), y, "\n".join(out)))


def draw_all(folder):
    return {"plot-" + name: draw(chart, read_chart(folder, chart)) for name, chart in CHARTS.items()}


if __name__ == "__main__":
    for name, chart in CHARTS.items():
        print(name, read_chart("bench/results", chart))
