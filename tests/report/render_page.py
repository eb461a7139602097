#!/usr/bin/env python3
"""Opens pages of plans in a headless browser, on a phone's width and a wide screen's, and uses them: search, zoom, hover, click, both themes,
two plans side by side, names that try to end a script, and a tree of 1,000 nodes, which must load within 2 s.

    tests/report/render_page.py DEFTC [--keep FOLDER]

Ends with 77 (to ctest: skipped) when the machine has no browser; --keep leaves pages and pictures behind.
"""

import argparse
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from browser import SKIPPED, complaints, find_browser, open_page, verdict

WIDTHS, MOST_SECONDS = (400, 1600), 2
NASTY = "</script><script>window.hacked = 1</script> \"q\" & 'x' \u6811"
SMALL = {"format": "deftc-tree", "version": 2,
         "nodes": [{"parent": -1, "tokens": 600, "name": "system prompt"}, {"parent": 0, "tokens": 60, "name": NASTY}, {"parent": 0, "tokens": 90},
                   {"parent": 2, "tokens": 40, "name": "second request"}, {"parent": 2, "tokens": 25}, {"parent": 0, "tokens": 5, "name": "unread"}],
         "queries": [{"node": 1}, {"node": 3}, {"node": 4}]}
PLAIN = "attention plain { query_heads = 8; kv_heads = 2; head_dim = 64; }"
WINDOW = 'import "library.deft"; attention window { query_heads = 8; kv_heads = 2; head_dim = 64; mask = tree && sliding_window(200); }'

# Uses the page as a reader does, and tells the window around it what it found; `wrong` gathers what is not as it should be.
PROBE = """<script>
window.requestAnimationFrame = act => setTimeout(act, 0); // a browser's own clock of frames does not go with that of tests
const wrong = [], wait = () => new Promise(done => setTimeout(done, 50)), expect = (holds, text) => { if (!holds) wrong.push(text); };
window.addEventListener("error", event => wrong.push(`error: ${event.message}`));
const at = id => document.getElementById(id);
const image = canvas => { const copy = document.createElement("canvas"), width = copy.width = Math.min(canvas.width, 400), height = copy.height = Math.min(canvas.height, 240);
  const on = copy.getContext("2d", {willReadFrequently: true}); on.imageSmoothingEnabled = false; on.drawImage(canvas, 0, 0, width, height);
  return new Uint32Array(on.getImageData(0, 0, width, height).data.buffer); };
const colours = canvas => new Set(image(canvas)).size;
const mouse = (canvas, kind, x, y) => { const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new PointerEvent(kind, {pointerId: 1, pointerType: "mouse", clientX: box.left + x * box.width, clientY: box.top + y * box.height, bubbles: true})); };
const fits = when => expect(document.documentElement.scrollWidth <= innerWidth, `${when}: the page is ${document.documentElement.scrollWidth} wide, the window ${innerWidth}`);
async function use({plans, name, least, hides}) {
  await wait();
  fits("at first");
  const canvases = [...document.querySelectorAll("canvas")], [tree] = canvases, time = canvases[plans];
  expect(canvases.length === 2 * plans, `${canvases.length} charts`);
  canvases.forEach((canvas, i) => expect(colours(canvas) >= least, `chart ${i} has ${colours(canvas)} colours`));
  expect(document.body.innerText.includes("price model, not a measurement"), "nobody says that times are the model's");
  expect(window.hacked === undefined, "a node's name was run");
  for (const odd of ["NaN", "undefined", "Infinity", "[object"]) expect(!at("main").innerText.includes(odd), `${odd} is on the page`);
  expect(document.body.innerText.includes("hidden by the mask") === hides, "the legend of the mask");
  const parts = [...document.querySelectorAll(".pair")].map(pair => [...pair.children].map(part => part.getBoundingClientRect()));
  for (const boxes of parts) {
    expect(boxes.length === plans, `${boxes.length} parts of a panel`);
    if (plans === 2) expect((boxes[0].top === boxes[1].top) === innerWidth > 900, "two plans are not beside each other, or on a phone not below");
  }
  const before = String(image(tree)), [out, into, fit] = tree.closest(".part").querySelectorAll(".zoom button");
  into.click(); await wait();
  expect(String(image(tree)) !== before, "+ does not zoom");
  if (plans === 2) expect(String(image(canvases[1])) !== before, "the other tree does not follow");
  out.click(); fit.click(); await wait();
  expect(String(image(tree)) === before, "fit does not show all again");
  tree.focus();
  tree.dispatchEvent(new KeyboardEvent("keydown", {key: "+", bubbles: true})); await wait();
  expect(String(image(tree)) !== before, "the key + does not zoom");
  fit.click(); await wait();
  const across = hides ? 0.65 : 0.3; // where something is read
  mouse(tree, "pointermove", across, 0.3); await wait();
  expect(!at("tip").hidden && /token [\\d,]+ of [\\d,]+/.test(at("tip").innerText), `no tip of a token: ${at("tip").innerText}`);
  const tip = at("tip").getBoundingClientRect();
  expect(tip.left >= 0 && tip.right <= innerWidth, "the tip leaves the window");
  mouse(tree, "pointerleave", across, 0.3);
  mouse(tree, "pointerdown", across, 0.3); mouse(tree, "pointerup", across, 0.3); await wait();
  expect(!at("details").hidden && /Item \\d+/.test(at("details").innerText), "a click shows no item");
  fits("with details");
  mouse(time, "pointermove", 0.3, 0.06); await wait();
  expect(/by the price model/.test(at("tip").innerText), `no tip of a time: ${at("tip").innerText}`);
  const search = at("search");
  search.value = name; search.dispatchEvent(new Event("input")); await wait();
  expect(at("found").children.length > 0 && /\\d+ found/.test(at("matches").innerText), "the search finds nothing");
  search.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"})); await wait();
  expect(at("details").innerText.includes(name) && at("details").innerText.includes("who reads what"), "Enter does not show the node");
  expect(String(image(tree)) !== before, "the tree does not go there");
  fits("after a search");
  search.value = "query 1"; search.dispatchEvent(new Event("input")); search.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"})); await wait();
  expect(/Query 1/.test(at("details").innerText), "no query by its number");
  search.value = "no such thing"; search.dispatchEvent(new Event("input"));
  expect(at("matches").innerText === "nothing found", "what is not there is not said");
  search.value = ""; search.dispatchEvent(new Event("input"));
  at("details").querySelector("button[aria-label=Close]").click();
  const paper = getComputedStyle(document.body).backgroundColor;
  at("theme").click(); await wait();
  expect(getComputedStyle(document.body).backgroundColor !== paper, "the theme does not change");
  canvases.forEach((canvas, i) => expect(colours(canvas) >= least, `chart ${i} has ${colours(canvas)} colours in the other theme`));
}
window.addEventListener("load", () => use(CASE).catch(error => wrong.push(String(error))).finally(() => parent.postMessage(wrong, "*")));
</script></body>"""

# 400 pixels are less than a window of the browser may have.
FRAME = """<!doctype html><meta charset="utf-8"><body style="margin: 0"><pre id="told" hidden>nothing was told</pre><script>
window.onmessage = event => { document.getElementById("told").textContent = JSON.stringify(event.data); };
</script><iframe src="PAGE" style="border: 0; width: WIDTHpx; height: 1000px"></iframe>"""


def large():
    """1,111 nodes below each other in four levels, a query on each of 1,000 leaves."""
    nodes, level = [{"parent": -1, "tokens": 2000, "name": "root"}], [0]
    for depth, tokens in enumerate((200, 60, 20), 1):
        level = [len(nodes) - 1 for parent in level for child in range(10)
                 if not nodes.append({"parent": parent, "tokens": tokens + (7 * len(nodes)) % 13, "name": f"level {depth}, node {len(nodes)}"})]
    return {"format": "deftc-tree", "version": 2, "nodes": nodes, "queries": [{"node": node} for node in level]}


def used(browser, page, width, case, folder):
    """What is wrong with a page that is used in a frame so wide."""
    probed, frame = page.with_name(f"probed-{page.name}"), page.with_name("frame.html")
    text = page.read_text(encoding="utf-8")
    # The first script of the page, so that no error goes by.
    probed.write_text(text.replace("<body>", "<body>" + PROBE.replace("CASE", json.dumps(case).replace("<", "\\u003c")).removesuffix("</body>"), 1), encoding="utf-8")
    frame.write_text(FRAME.replace("PAGE", probed.name).replace("WIDTH", str(width)), encoding="utf-8")
    told = open_page(browser, frame.as_uri(), folder, "--dump-dom", "--window-size=1600,1000", seconds=20)
    found = re.search(r'<pre id="told" hidden="">(.*?)</pre>', told.stdout.decode(errors="replace"), re.DOTALL)
    said = html.unescape(found[1]) if found else "no page"
    yield from complaints(told)
    yield from json.loads(said) if said.startswith("[") else [said]


def seconds_to_open(browser, page, folder):
    begin = time.monotonic()
    open_page(browser, page.as_uri(), folder, "--screenshot=" + str(folder / "timed.png"))
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deftc")
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    browser = find_browser()
    if not browser:
        return SKIPPED
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, text in (("small.json", json.dumps(SMALL)), ("large.json", json.dumps(large())), ("plain.deft", PLAIN), ("window.deft", WINDOW), ("blank.html", "<!doctype html>")):
            (folder / file).write_text(text, encoding="utf-8")
        gpu = ("--arch", "sm_90a")
        for what, spec, tree, more, case in (
                ("one", "plain", "small", ("--backend", "cpu"), {"plans": 1, "name": NASTY, "least": 8, "hides": False}),
                ("two", "plain", "small", (*gpu, "--partition", "union", "--against", "partition=node", "--against", "chunk=64"), {"plans": 2, "name": "second request", "least": 8, "hides": False}),
                ("window", "window", "small", gpu, {"plans": 1, "name": "second request", "least": 4, "hides": True}),
                ("large", "plain", "large", gpu, {"plans": 1, "name": "level 3, node 777", "least": 40, "hides": False})):
            page = folder / f"{what}.html"
            subprocess.run([arguments.deftc, "plan", str(folder / f"{spec}.deft"), "--tree", str(folder / f"{tree}.json"), *more, "-o", str(page)], check=True)
            for width in WIDTHS:
                problems += [f"{what}, {width} pixels wide: {one}" for one in used(browser, page, width, case, folder)]
            if arguments.keep:
                arguments.keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(page, arguments.keep)
        blank = min(seconds_to_open(browser, folder / "blank.html", folder) for _ in range(2))
        took = float("inf")
        for _ in range(4):  # the machine may do something else meanwhile
            took = min(took, seconds_to_open(browser, folder / "large.html", folder) - blank)
            if took < MOST_SECONDS:
                break
        print(f"the page of 1,111 nodes: {(folder / 'large.html').stat().st_size:,} bytes, {took:.2f} s more than an empty page")
        if took > MOST_SECONDS:
            problems.append(f"1,111 nodes took {took:.1f} s, more than {MOST_SECONDS}")
    return verdict(browser, problems)


if __name__ == "__main__":
    sys.exit(main())
