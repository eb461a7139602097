"""A headless browser for tests that look at what a reader would see: pages and pictures are opened, and pixels are counted."""

import re
import shutil
import struct
import subprocess
import zlib

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SKIPPED = 77  # to ctest


def find_browser():
    """None, and a line that says so, where the machine has none."""
    browser = next((found for found in map(shutil.which, BROWSERS) if found), None)
    if not browser:
        print(f"skipped: no browser ({', '.join(BROWSERS)})")
    return browser


def open_page(browser, url, folder, *options, reaches="", seconds=2, timeout=120):
    """What the browser says of a page: without a network but for the host that it `reaches`, with scripts that have so many
    seconds of their own clock."""
    rules = "MAP * ~NOTFOUND" + (f", EXCLUDE {reaches}" if reaches else "")
    line = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
            f"--user-data-dir={folder / 'profile'}", f"--host-resolver-rules={rules}", "--enable-logging=stderr", "--log-level=0",
            f"--virtual-time-budget={1000 * seconds}", *options, url]
    return subprocess.run(line, capture_output=True, timeout=timeout, check=False)


def complaints(*told):
    """What the browser says is wrong with pages that it was told to open."""
    return [f"the browser says: {line}" for one in told for line in re.findall(r"CONSOLE.*", one.stderr.decode(errors="replace"))]


def verdict(browser, problems):
    """Prints what is wrong; the exit code."""
    for problem in problems:
        print("wrong:", problem)
    print(f"{browser}: {'looks right' if not problems else 'is wrong'}")
    return 1 if problems else 0


def pixels(path):
    """Width, height and rows of a PNG as the browser writes it: 8 bits, RGB or RGBA, not interlaced."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colour in (2, 6) and interlace == 0, "not the PNG that was expected"
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    size = 3 if colour == 2 else 4
    raw, rows, before = zlib.decompress(packed), [], bytearray(width * size)
    for y in range(height):
        begin = y * (width * size + 1)
        row, how = bytearray(raw[begin + 1:begin + 1 + width * size]), raw[begin]
        for x in range(width * size):
            left = row[x - size] if x >= size else 0
            up, corner = before[x], before[x - size] if x >= size else 0
            if how == 1:
                row[x] = row[x] + left & 255
            elif how == 2:
                row[x] = row[x] + up & 255
            elif how == 3:
                row[x] = row[x] + (left + up) // 2 & 255
            elif how == 4:
                guess = left + up - corner
                _, nearest = min((abs(guess - left), left), (abs(guess - up), up), (abs(guess - corner), corner), key=lambda c: c[0])
                row[x] = row[x] + nearest & 255
        rows.append(row)
        before = row
    return width, height, size, rows


def colours(path, step=2):
    """How many pixels have each colour, of every step-th row."""
    width, _, size, rows = pixels(path)
    counts = {}
    for row in rows[::step]:
        for x in range(width):
            key = bytes(row[x * size:x * size + 3])
            counts[key] = counts.get(key, 0) + 1
    return counts
