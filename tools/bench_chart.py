# SPDX-License-Identifier: MIT
"""The chart of README.md: what a live filter of ten seconds costs, as an SVG."""
from xml.sax.saxutils import escape

CASE, RATE = "mono-b64-t480000", 48000
CONTENDERS = {"cpu/partitioned": "Partita", "zita-convolver": "zita-convolver {}", "ffmpeg-afir": "ffmpeg afir {}",
              "textbook-two-stage": "two-stage partitions, textbook", "textbook-uniform": "uniform partitions, textbook"}
WIDTH, LABELS, BARS, ROW, TOP = 720, 220, 400, 44, 58  # in pixels
MEAN, SLOW = "#0060a8", "#e09a60"


def text(x, y, words, size=13, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="#202020">{escape(words)}</text>')


def bar(x, y, length, color):
    return f'<rect x="{x}" y="{y}" width="{max(length, 1.5):.1f}" height="15" fill="{color}"/>'


def chart(times, version_of):
    """The SVG; None if a contender was not measured."""
    rows = times.get(CASE, {})
    if any((name, 1) not in rows for name in CONTENDERS):
        return None
    # A frame's time in shares of its period; a slow call's in shares of its deadline.
    means = {name: 100 * rows[name, 1]["ns"] * 1e-9 * RATE for name in CONTENDERS}
    slow = {name: means[name] * rows[name, 1]["flat"] for name in CONTENDERS}
    scale = BARS / max(slow.values())
    height = TOP + ROW * len(CONTENDERS) + 8
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
             f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
             f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
             text(12, 22, "Live convolution with a response of 10 s, 48 kHz, 64 frames a call, no added latency", 14, weight="bold"),
             bar(12, 33, 15, MEAN), text(32, 46, "share of one core, %"),
             bar(190, 33, 15, SLOW), text(210, 46, "the slowest call of 1000 (p99.9), % of its deadline")]
    for number, (name, label) in enumerate(CONTENDERS.items()):
        y = TOP + ROW * number
        parts += [text(LABELS - 8, y + 21, label.format(version_of(name)), anchor="end", weight="normal" if number else "bold"),
                  bar(LABELS, y, scale * means[name], MEAN), text(LABELS + scale * means[name] + 6, y + 12, f"{means[name]:.2g}"),
                  bar(LABELS, y + 17, scale * slow[name], SLOW), text(LABELS + scale * slow[name] + 6, y + 29, f"{slow[name]:.2g}")]
    return "\n".join(parts + ["</svg>"]) + "\n"
