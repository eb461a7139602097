"""Charts of the evidence as SVG: points over two axes, and bars in rows. Plain text out, the same for the same numbers."""

from html import escape
from math import ceil, floor, log10

COLOURS = ("#1f5fa8", "#d98a29", "#4d9f78", "#a8329d", "#777777", "#c0392b", "#1d8a99", "#8a6d1f", "#5b4bb5")
STYLE = """<style>
text { font: 11px sans-serif; fill: #333 }
.title { font: bold 13px sans-serif }
.end { text-anchor: end }
.middle { text-anchor: middle }
.grid { stroke: #e4e4e4; stroke-width: 1 }
.axis { stroke: #999; stroke-width: 1 }
</style>"""
WIDTH, HEIGHT = 680, 380
LEFT, RIGHT, TOP, BOTTOM = 62, 168, 46, 46  # of the plot, the legend stands right of it


def text(x, y, words, kind=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"' + (f' class="{kind}"' if kind else "") + f">{escape(str(words))}</text>"


def svg(width, height, body):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
            f'{STYLE}\n<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(body) + "\n</svg>\n")


def short(value):
    """A number on an axis."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:g}"


def mark(colour, number, x, y):
    """A point; each series has a shape of its own, too, for those who see the colours alike."""
    shapes = (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" fill="{colour}"/>',
              f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" fill="{colour}"/>',
              f'<path d="M{x:.1f} {y - 4:.1f} l4 7 h-8 z" fill="{colour}"/>',
              f'<path d="M{x - 3.5:.1f} {y - 3.5:.1f} l7 7 m0 -7 l-7 7" stroke="{colour}" stroke-width="1.6" fill="none"/>')
    return shapes[number % len(shapes)]


class Axis:
    """From values to places; of logarithms where `is_log`, else from 0."""

    def __init__(self, values, begin, end, is_log):
        self.is_log, self.begin, self.end = is_log, begin, end
        if is_log:
            self.low, self.high = floor(log10(min(values)) * 2) / 2, ceil(log10(max(values)) * 2) / 2
            self.high = max(self.high, self.low + 0.5)
            steps = range(floor(self.low), ceil(self.high) + 1)
            self.ticks = [10.0**power * first for power in steps for first in (1, 2, 5)
                          if self.low - 1e-9 <= log10(10.0**power * first) <= self.high + 1e-9]
            if len(self.ticks) > 8:
                self.ticks = [tick for tick in self.ticks if abs(log10(tick) - round(log10(tick))) < 1e-9]
        else:
            self.low, largest = 0, max(values) * 1.05 or 1
            step = 10 ** floor(log10(largest))
            step = next(step * part for part in (0.2, 0.5, 1, 2) if largest / (step * part) <= 6)
            self.high = ceil(largest / step) * step
            self.ticks = [step * number for number in range(int(round(self.high / step)) + 1)]

    def place(self, value):
        at = log10(value) if self.is_log else value
        return self.begin + (at - self.low) / (self.high - self.low) * (self.end - self.begin)


def points(title, x_name, y_name, series, log_x=True, log_y=True, lines=False):
    """`series`: (name, [(x, y)]), each a colour and a shape; joined by lines where asked for. Long names widen the legend."""
    every = [point for _, all_points in series for point in all_points]
    x_axis = Axis([x for x, _ in every], LEFT, WIDTH - RIGHT, log_x)
    y_axis = Axis([y for _, y in every], HEIGHT - BOTTOM, TOP, log_y)
    body = [text(12, 18, title, "title")]
    for tick in x_axis.ticks:
        x = x_axis.place(tick)
        body += [f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}"/>',
                 text(x, HEIGHT - BOTTOM + 15, short(tick), "middle")]
    for tick in y_axis.ticks:
        y = y_axis.place(tick)
        body += [f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>',
                 text(LEFT - 6, y + 4, short(tick), "end")]
    body += [f'<path class="axis" d="M{LEFT} {TOP} V{HEIGHT - BOTTOM} H{WIDTH - RIGHT}" fill="none"/>',
             text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_name, "middle"), text(12, TOP - 9, y_name)]
    for number, (name, all_points) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x_axis.place(x), y_axis.place(y)) for x, y in all_points]
        if lines and len(places) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in sorted(places))
            body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.3"/>')
        body += [mark(colour, number, x, y) for x, y in places]
        y = TOP + 10 + 18 * number
        body += [mark(colour, number, WIDTH - RIGHT + 16, y - 4), text(WIDTH - RIGHT + 26, y, name)]
    legend = 34 + ceil(6.2 * max(len(name) for name, _ in series))
    return svg(WIDTH + max(0, legend - RIGHT), HEIGHT, body)


BAR, BAR_GAP, NAME = 9, 7, 150  # NAME: the least width of the column of names


def bars(title, unit, names, series, limit=None, line_at=None):
    """A row of bars for each name; `series`: (name, values by row, None for a gap). Bars longer than `limit` are cut and keep
    their value as a label; a line at `line_at` marks equality."""
    values = [value for _, of_series in series for value in of_series if value is not None]
    largest = min(max(values), limit or max(values)) * 1.02
    width, group = 820, BAR * len(series) + BAR_GAP
    left = max(NAME, 16 + 6 * max(map(len, names)))
    has_legend = len(series) > 1
    top = 56 if has_legend else 36
    height = top + group * len(names) + 16
    scale = (width - left - 70) / largest
    body = [text(12, 20, title, "title")]
    for number, (name, _) in enumerate(series if has_legend else ()):
        x = left + 150 * number
        body += [f'<rect x="{x}" y="32" width="12" height="9" fill="{COLOURS[number]}"/>', text(x + 18, 41, name)]
    if line_at is not None:
        x = left + line_at * scale
        body.append(f'<line class="axis" x1="{x:.1f}" y1="{top - 6}" x2="{x:.1f}" y2="{height - 12}"/>')
    for row, name in enumerate(names):
        y = top + group * row
        body.append(text(left - 8, y + BAR * len(series) / 2 + 4, name, "end"))
        for number, (_, of_series) in enumerate(series):
            value = of_series[row]
            if value is None:
                continue
            length = min(value, largest) * scale
            shown = f"{value:.2f}{unit}" if value < 10 else f"{value:.1f}{unit}"
            body += [f'<rect x="{left}" y="{y + BAR * number:.1f}" width="{length:.1f}" height="{BAR - 1}" '
                     f'fill="{COLOURS[number]}"/>',
                     f'<text x="{left + length + 4:.1f}" y="{y + BAR * number + 8:.1f}" style="font-size:9px">{shown}</text>']
    return svg(width, height, body)
