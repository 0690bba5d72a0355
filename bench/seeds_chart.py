# SPDX-License-Identifier: MIT
"""Pictures of docs/seeds.md: curves over a logarithmic axis, or groups of bars, as SVG."""
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from bench_chart import WIDTH, text  # noqa: E402

LEFT, TOP, HEIGHT, BOTTOM = 64, 62, 230, 44  # of the area, in pixels
COLORS = ("#0060a8", "#e09a60", "#5a9e5a", "#888888", "#a05aa0")


def frame(title, unit, labels, series, tick):
    """The head of a picture with a legend, the axis below with its labels, and lines at ticks of (value, y)."""
    step = (WIDTH - LEFT - 20) / len(labels)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{TOP + HEIGHT + BOTTOM}" '
             f'viewBox="0 0 {WIDTH} {TOP + HEIGHT + BOTTOM}" font-family="sans-serif">',
             f'<rect width="{WIDTH}" height="{TOP + HEIGHT + BOTTOM}" fill="#ffffff"/>',
             text(12, 22, title, 14, weight="bold"), text(12, TOP + HEIGHT + 38, unit, 12)]
    for number, name in enumerate(series):
        x = 12 + 704 // len(series) * number
        parts += [f'<rect x="{x}" y="34" width="12" height="12" fill="{COLORS[number]}"/>', text(x + 18, 45, name, 12)]
    for value, y in tick:
        parts += [f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>',
                  text(LEFT - 6, y + 4, f"{value:g}", 11, anchor="end")]
    parts += [text(LEFT + step * (i + 0.5), TOP + HEIGHT + 18, str(label), 11, anchor="middle") for i, label in enumerate(labels)]
    return parts, step


def curves(title, unit, labels, series):
    """series: {name: values}, where None leaves a gap; the axis of values is logarithmic."""
    values = [value for row in series.values() for value in row if value]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def height(value):
        return TOP + HEIGHT * (high - math.log10(value)) / max(high - low, 1)
    parts, step = frame(title, unit, labels, series, [(10**e, height(10**e)) for e in range(low, high + 1)])
    for color, row in zip(COLORS, series.values()):
        points = [(LEFT + step * (i + 0.5), height(value)) for i, value in enumerate(row) if value]
        parts.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="'
                     + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points]
    return "\n".join(parts + ["</svg>"]) + "\n"


def bars(title, unit, labels, series, spacing):
    """series: {name: values}; the axis begins at 0 and has a line at each multiple of `spacing`."""
    high = spacing * math.ceil(max(value for row in series.values() for value in row if value) / spacing)
    ticks = [(value, TOP + HEIGHT * (1 - value / high)) for value in range(0, high + 1, spacing)]
    parts, step = frame(title, unit, labels, series, ticks)
    width = 0.8 * step / len(series)
    for number, row in enumerate(series.values()):
        for i, value in enumerate(row):
            length = HEIGHT * (value or 0) / high
            parts.append(f'<rect x="{LEFT + step * (i + 0.1) + width * number:.1f}" y="{TOP + HEIGHT - length:.1f}" '
                         f'width="{width:.1f}" height="{length:.1f}" fill="{COLORS[number]}"/>')
    return "\n".join(parts + ["</svg>"]) + "\n"
