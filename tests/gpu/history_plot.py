"""The plot of history.py: a small chart for each row, its time over benches, in one SVG."""

from html import escape

COLUMNS, WIDTH, HEIGHT = 6, 190, 96  # of charts; of one, in pixels
MARGIN, TITLE = 12, 26
CHART_TOP, CHART_BOTTOM = 20, 82  # of the curves within a chart
SHIPPED, UNTUNED, FLOOR = "#1f5fa8", "#d98a29", "#999999"
STYLE = f"""<style>
text {{ font: 10px sans-serif; fill: #333 }}
.suite {{ font: bold 14px sans-serif }}
.name {{ font-weight: bold }}
.us {{ text-anchor: end }}
polyline {{ fill: none; stroke-width: 1.4 }}
.shipped {{ stroke: {SHIPPED}; fill: {SHIPPED} }}
.untuned {{ stroke: {UNTUNED}; fill: {UNTUNED} }}
.floor {{ stroke: {FLOOR}; stroke-dasharray: 3 2 }}
polyline.shipped, polyline.untuned, polyline.floor {{ fill: none }}
.axis {{ stroke: #ccc; stroke-width: 1 }}
.day {{ stroke: #eee; stroke-width: 1 }}
</style>"""


class Scale:
    """Places of one chart: benches from left to right, values from 0 to the largest."""

    def __init__(self, left, top, width, benches, largest):
        self.left, self.right, self.top = left + 4, left + width - 22, top
        self.benches, self.largest = max(benches - 1, 1), largest or 1

    def x(self, bench):
        return self.left + bench * (self.right - self.left) / self.benches

    def y(self, value):
        return self.top + CHART_BOTTOM - value * (CHART_BOTTOM - CHART_TOP) / self.largest

    def curve(self, points, kind):
        """Points of one kind; a point alone is a dot."""
        if len(points) == 1:
            bench, value = points[0]
            return f'<circle class="{kind}" cx="{self.x(bench):.1f}" cy="{self.y(value):.1f}" r="1.6"/>'
        places = " ".join(f"{self.x(bench):.1f},{self.y(value):.1f}" for bench, value in points)
        return f'<polyline class="{kind}" points="{places}"/>'


def text(x, y, words, kind=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"' + (f' class="{kind}"' if kind else "") + f">{escape(words)}</text>"


def chart(left, top, name, shown, curves, days, benches, width=WIDTH):
    """One chart. `curves` are (kind, points); `days` the first bench of each day."""
    largest = max((value for _, points in curves for _, value in points), default=0)
    scale = Scale(left, top, width, benches, largest)
    out = [text(scale.left, top + 13, name, "name"), text(scale.right, top + 13, shown, "us")]
    for bench in days[1:]:
        x = scale.x(bench - 0.5)
        out.append(f'<line class="day" x1="{x:.1f}" y1="{top + CHART_TOP}" x2="{x:.1f}" y2="{top + CHART_BOTTOM}"/>')
    out.append(f'<line class="axis" x1="{scale.left}" y1="{top + CHART_BOTTOM}" x2="{scale.right}" '
               f'y2="{top + CHART_BOTTOM}"/>')
    return out + [scale.curve(points, kind) for kind, points in curves if points]


def curves_of(benches, place):
    """Of a row, shipped and untuned times and the floor (of variants: plain attention), by the bench's number."""
    shipped, untuned, floor = [], [], []
    for number, (key, bench) in enumerate(benches.items()):
        if place not in bench:
            continue
        line = bench[place]
        (shipped if key[3] == "shipped" else untuned).append((number, line["us"]))
        beside = line.get("floor_us", line.get("plain_us"))
        if beside and key[3] == "shipped":
            floor.append((number, beside))
    return [("floor", floor), ("untuned", untuned), ("shipped", shipped)]


def newest(curves):
    points = curves[-1][1] or curves[-2][1]
    return f"{points[-1][1]:.1f} us" if points else ""


def svg(benches, rows, means, titles):
    """`benches` by (date, card, commit, config), each of lines by (suite, row); `rows` by suite; `means` of benches."""
    keys = list(benches)
    days = [number for number, key in enumerate(keys) if number == 0 or keys[number - 1][0][:10] != key[0][:10]]
    out, top = [], MARGIN
    legend = (("shipped", "what ships"), ("untuned", "untuned"), ("floor", "floor of that bench, or plain attention"))
    for number, (kind, words) in enumerate(legend):
        x = MARGIN + 130 * number
        out += [f'<line class="{kind}" x1="{x}" y1="{top}" x2="{x + 24}" y2="{top}" stroke-width="2"/>',
                text(x + 30, top + 4, words)]
    span = f"{len(benches)} benches, {keys[0][0][:10]} to {keys[-1][0][:10]}; grey lines part days; each chart begins at 0" if keys else ""
    out.append(text(MARGIN + 560, top + 4, span))
    top += 18

    curves = [(kind, [(number, means[key]) for number, key in enumerate(keys) if key[3] == kind and means[key]])
              for kind in ("untuned", "shipped")]
    shown = f"{curves[1][1][-1][1]:.2f}" if curves[1][1] else ""
    out += chart(MARGIN, top, "57 rows over floor", shown, curves, days, len(keys), width=3 * WIDTH)
    top += HEIGHT
    for suite, names in rows.items():
        out.append(text(MARGIN, top + 16, titles[suite], "suite"))
        top += TITLE
        for number, name in enumerate(names):
            of_row = curves_of(benches, (suite, name))
            out += chart(MARGIN + number % COLUMNS * WIDTH, top + number // COLUMNS * HEIGHT, name, newest(of_row), of_row,
                         days, len(keys))
        top += (len(names) + COLUMNS - 1) // COLUMNS * HEIGHT
    width, height = 2 * MARGIN + COLUMNS * WIDTH, top + MARGIN
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
            f'{STYLE}\n<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(out) + "\n</svg>\n")
