#!/usr/bin/env python3
"""Builds the site and opens it in a headless browser: every link and anchor leads somewhere, pages load without a complaint, pictures show,
and what is wider than its column scrolls, on a phone and on a wide screen.

    tests/site/browse.py [--keep FOLDER]

Ends with 77 (to ctest: skipped) where there is no browser or no mkdocs; --keep leaves screenshots behind.
"""

import argparse
import functools
import html
import http.server
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from html.parser import HTMLParser

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/report"))

from browser import SKIPPED, colours, complaints, find_browser, open_page, verdict  # noqa: E402

PAGES = ("index.html", "docs/tutorial.html", "docs/EVIDENCE.html", "docs/how-it-works.html", "api/deft.html")
PICTURED = {"docs/EVIDENCE.html": ("1f5fa8", 2600), "index.html": ("546d78", 1100)}  # a colour that must be seen above so many pixels: our bars, the site's head
WIDTHS, WIDE_PAGE = (400, 1600), "wide.html"

# Opens a page in a frame of some width and lists what is wider than its place and neither scrolls nor shows that it does.
WIDE = """<!doctype html><meta charset="utf-8"><pre id="found">nothing was looked at</pre><script>
const [page, width] = location.search.slice(1).split(","), frame = document.createElement("iframe");
frame.width = width; frame.height = 900; frame.src = page;
frame.onload = () => setTimeout(() => {
  const inside = frame.contentDocument, found = [];
  const scrolls = part => { const style = frame.contentWindow.getComputedStyle(part);
    return ["auto", "scroll"].includes(style.overflowX) && style.backgroundImage.includes("gradient"); };
  const wide = [...inside.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap")].filter(part => part.scrollWidth > part.clientWidth);
  for (const part of wide) if (!scrolls(part)) found.push("is cut: " + part.textContent.trim().replace(/\\s+/g, " ").slice(0, 40));
  for (const table of inside.querySelectorAll(".md-typeset table"))
    if (!table.closest(".md-typeset__scrollwrap, .highlighttable")) found.push("a table has no place to scroll in");
  if (inside.documentElement.scrollWidth > inside.documentElement.clientWidth) found.push("the page itself is wider than the window");
  document.getElementById("found").textContent = found.join("\\n") + "\\n" + wide.length + " scroll";
}, 1500);
document.body.append(frame);
</script>
"""


class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.targets, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.anchors |= {named[key] for key in ("id", "name") if named.get(key)}
        target = named.get("href") if tag in ("a", "link") else named.get("src")
        if target:
            self.targets.append(target)


def broken_links(site):
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    for path, links in pages.items():
        for target in links.targets:
            if re.match(r"[a-z]+:|//", target):
                continue
            name, _, anchor = target.partition("#")
            aim = (path.parent / name.partition("?")[0]).resolve() if name else path
            if not aim.exists():
                yield f"{path.relative_to(site)}: {target} is not there"
            elif anchor and aim in pages and anchor not in pages[aim].anchors:
                yield f"{path.relative_to(site)}: {target} has no such anchor"


class Quiet(http.server.SimpleHTTPRequestHandler):
    missed = []

    def log_message(self, *_):
        pass

    def send_error(self, code, *rest, **named):
        self.missed.append(f"{self.path}: {code}")
        super().send_error(code, *rest, **named)


def build(site):
    environment = dict(os.environ, NO_MKDOCS_2_WARNING="1")
    pages = site.parent / "pages"
    subprocess.run([sys.executable, ROOT / "docs/site/stage.py", pages], check=True)
    config = (ROOT / "docs/site/mkdocs.yml").read_text(encoding="utf-8")
    config = re.sub(r"^docs_dir: .*$", f"docs_dir: {pages}", config, flags=re.M)
    (site.parent / "mkdocs.yml").write_text(re.sub(r"^site_dir: .*$", f"site_dir: {site}", config, flags=re.M), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", site.parent / "mkdocs.yml"], check=True, env=environment)


def open_local(browser, url, folder, *options):
    return open_page(browser, url, folder, *options, reaches="127.0.0.1", seconds=4, timeout=600)


def look(browser, address, folder, keep):
    for page in PAGES:
        picture = folder / (page.replace("/", "_") + ".png")
        colour, height = PICTURED.get(page, ("", 1100))
        shot = open_local(browser, f"{address}/{page}", folder, f"--screenshot={picture}", f"--window-size=1000,{height}")
        yield from (f"{page}: {complaint}" for complaint in complaints(shot))
        if not picture.exists():
            yield f"{page}: no picture was made"
            continue
        if keep:
            shutil.copy(picture, keep)
        counts = colours(picture, step=8)
        if len(counts) < 20:
            yield f"{page}: only {len(counts)} colours are to be seen"
        if colour and counts.get(bytes.fromhex(colour), 0) < 100:
            yield f"{page}: its colour {colour} is not to be seen"
    dom = open_local(browser, f"{address}/index.html", folder, "--dump-dom").stdout.decode(errors="replace")
    if not re.search(r'<html[^>]*class="[^"]*\bjs\b', dom):
        yield "index.html: its scripts did not run"


def cut(browser, address, folder):
    """What a reader cannot see; at least one block of the tutorial must have been too wide for a phone, else nothing was tried."""
    for page in PAGES:
        for width in WIDTHS:
            dom = open_local(browser, f"{address}/{WIDE_PAGE}?{page},{width}", folder, "--dump-dom", "--window-size=1700,1000").stdout.decode(errors="replace")
            *found, count = html.unescape(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1]).splitlines()
            yield from (f"{page}, {width} pixels wide: {one}" for one in found if one)
            if not count.endswith(" scroll") or (page, width) == ("docs/tutorial.html", 400) and count == "0 scroll":
                yield f"{page}, {width} pixels wide: {count}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=pathlib.Path)
    keep = parser.parse_args().keep
    browser = find_browser()
    if not browser:
        return SKIPPED
    if any(importlib.util.find_spec(name) is None for name in ("mkdocs", "material")):
        print("skipped: no mkdocs with material (pip install the extra docs)")
        return SKIPPED
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        build(folder / "site")
        problems = list(broken_links(folder / "site"))
        problems += [f"{name} is not at the root" for name in ("llms.txt", "llms-full.txt") if not (folder / "site" / name).exists()]
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder / "site"))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        problems += look(browser, address, folder, keep)
        (folder / "site" / WIDE_PAGE).write_text(WIDE, encoding="utf-8")
        problems += cut(browser, address, folder)
        server.shutdown()
        problems += [f"asked for and not there: {path}" for path in Quiet.missed if "favicon" not in path]
    return verdict(browser, problems)


if __name__ == "__main__":
    sys.exit(main())
