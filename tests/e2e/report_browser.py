"""build.html in a browser: nothing on its console, the figures of the data on the page, something drawn, in light and in dark.

Usage: report_browser.py MAKE_REPORT. With a Chromium on the machine all tests run; without one only those that need none, unless PTBUILD_BROWSER=required is set: then it is a failure.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

HOSTILE = "</script><script>alert(1)</script><!--&lt;"
UNITS = 1400
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser():
    return next((path for path in map(shutil.which, BROWSERS) if path), None)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def run_browser(url, *args):
    """Its output, and what came on the page's console."""
    with tempfile.TemporaryDirectory() as profile:
        command = [browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
                   f"--user-data-dir={profile}", "--enable-logging=stderr", "--window-size=1300,900", *args, url]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


MEASURE = """
addEventListener("load", () => setTimeout(() => {
	const beyond = [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1);
	parent.postMessage(`${document.documentElement.scrollWidth} ${beyond.map(e => e.outerHTML.slice(0, 80)).join("|")}`, "*");
}, 600));
"""


def beyond_the_edge(text, width):
    """Of a page in a window of that width (a browser's own has 500 pixels at least): how wide it is, and what of it lies beyond the edge."""
    with tempfile.TemporaryDirectory() as place:
        inner = re.sub(r"<meta http-equiv=.Content-Security-Policy[^>]*>", "", text).replace("</body>", f"<script>{MEASURE}</script></body>")
        write(os.path.join(place, "inner.html"), inner)
        write(os.path.join(place, "outer.html"), f"""<iframe src="inner.html" width="{width}" height="900" style="border: 0"></iframe><pre id="said"></pre>
            <script>addEventListener("message", e => document.getElementById("said").textContent = e.data)</script>""")  # fmt: skip
        dom, _ = run_browser(f"file://{place}/outer.html", "--dump-dom", "--virtual-time-budget=4000")
    wide, _, beyond = re.search(r'<pre id="said">(.*?)</pre>', dom, re.S).group(1).partition(" ")
    return int(wide), beyond


class Page:
    """The report of a made-up build: 1,400 units in 8 slots in two runs, and a wheel whose names are out to break the page."""

    def __init__(self, make_report):
        self.dir = tempfile.mkdtemp(prefix="ptbuild-report-")
        self.path = os.path.join(self.dir, "build.html")
        log, statements, stats = ["# ninja log v6"], [], []
        for i in range(UNITS):
            second = i >= UNITS // 2
            n = i - UNITS // 2 if second else i
            start = n // 8 * 4000
            name = f"CMakeFiles/x.dir/part{i % 9}/unit{i}.cpp.o" if i else f"CMakeFiles/{HOSTILE}.cpp.o"
            stamp = (1700000000 + 90000 * second) * 10**9 + start * 10**6
            log.append(f"{start}\t{start + 500 + i * 37 % 3500}\t{stamp}\t{name}\t{i:x}")
            escaped = name.replace(" ", "$ ")
            statements.append(f"build {escaped}: CXX /ptbuild/src/part{i % 9}/lib/unit{i}.cpp")
            stats.append(f"# /ptbuild/src/part{i % 9}/lib/unit{i}.cpp\n" + ("direct_cache_hit" if i % 5 == 0 else "cache_miss"))
        tree = os.path.join(self.dir, "tree")
        write(os.path.join(tree, "src/build/.ninja_log"), "\n".join(log) + "\n")
        write(os.path.join(tree, "src/build/build.ninja"), "\n".join(statements) + "\n")
        write(os.path.join(tree, "out/ccache.stats"), "\n".join(stats) + "\n")
        wheel = os.path.join(self.dir, "x-1-py3-none-any.whl")
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as z:
            z.writestr("torch/lib/libx.so", os.urandom(400000))
            z.writestr("torch/lib/libsmaller.so.2", os.urandom(100000))
            for i in range(200):
                z.writestr(f"torch/include/header{i}.h", os.urandom(900))
            z.writestr(f"torch/{HOSTILE.replace('/', '_')}.py", os.urandom(50000))
        self.record = {
            "wheel": "x-1-py3-none-any.whl", "variant": HOSTILE, "release": "1", "bytes": os.path.getsize(wheel), "unpacked_bytes": 730000, "files": 203,
            "sha256": "0" * 64, "tag": "any", "compile_key": "c" * 64, "output_key": "d" * 64, "notes": [HOSTILE],
            "build": {"seconds": 1000, "jobs": 8, "resumed": True, "compiler_cache": {"program": "ccache", "version": "4.11.2", "mode": "depend", "hits": 467, "direct_hits": 467,
                      "preprocessed_hits": 0, "remote_hits": 5, "misses": 933, "counters": {"cache_miss": 933}},
                      "reductions": [{"at": "2026-01-31T12:00:00Z", "after": 9, "from": 8, "to": 4, "why": HOSTILE}]},
            "steps": [{"step": "build", "seconds": 1000, "cpu_seconds": 7000, "peak_memory_bytes": 3355443200, "peak_processes": 40}],
            "verified": {"ok": True, "members": 203, "elf_files": 2, "errors": 0, "warnings": 0}, "used": {"ran": False, "why_not": HOSTILE}, "vendored": [],
            "inputs": {"sources": [{"name": HOSTILE, "sha256": "e" * 64}], "patches": [], "python": [HOSTILE], "torch": None, "root": {"id": "r", "fingerprint": "f"}, "toolchain": "t", "sandbox": "bubblewrap"},
        }  # fmt: skip
        write(os.path.join(self.dir, "build.json"), json.dumps(self.record))
        out = subprocess.run([make_report, os.path.join(self.dir, "build.json"), tree, wheel, self.path, "700"], capture_output=True, text=True, check=True)
        assert out.stdout.startswith(f"{UNITS} units in 8 slots"), out.stdout
        with open(self.path, encoding="utf-8") as f:
            self.text = f.read()

    def chromium(self, *args, path=None):
        return run_browser(f"file://{path or self.path}", "--window-size=1000,900", *args)

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def pixels(path):
    """Width, height and the rows of a PNG of 8 bits a channel, as bytes of RGB(A), and how many bytes a pixel has."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
        at += size + 12
    assert depth == 8 and colour in (2, 6), (depth, colour)
    n = 3 if colour == 2 else 4
    raw, rows, last = zlib.decompress(packed), [], bytes(width * n)
    for y in range(height):
        base = y * (width * n + 1)
        how, line = raw[base], bytearray(raw[base + 1 : base + 1 + width * n])
        for i in range(len(line)):
            a = line[i - n] if i >= n else 0
            b, c = last[i], last[i - n] if i >= n else 0
            if how == 1:
                line[i] = line[i] + a & 255
            elif how == 2:
                line[i] = line[i] + b & 255
            elif how == 3:
                line[i] = line[i] + (a + b) // 2 & 255
            elif how == 4:
                pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
                line[i] = line[i] + (a if pa <= pb and pa <= pc else b if pb <= pc else c) & 255
        last = bytes(line)
        rows.append(last)
    return width, height, rows, n


def test_the_page_stands_alone(page):
    assert page.text.count("<script") == 2 and page.text.count("</script") == 2 and "<!--" not in page.text
    assert not re.search(r"(src|href)\s*=\s*[\"']?(?!data:)", page.text.split('id="data"')[0].split("</style>")[1]), "the page refers to another file"
    assert "://" not in page.text.replace(json.dumps(page.record), ""), "the page names a place elsewhere"
    assert "default-src 'none'" in page.text


def test_the_data_is_whole(page):
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.text, re.S).group(1))
    assert data["record"] == page.record
    assert len(data["units"]) == UNITS and data["units"][0][0] == f"CMakeFiles/{HOSTILE}.cpp.o"
    assert len(data["series"]["at"]) == 700
    assert data["sizes"]["k"] == 203 and data["sizes"]["r"] == 400000 + 100000 + 200 * 900 + 50000


def shown(dom, name):
    """The text of the element with this id."""
    found = re.search(rf'id="{name}"[^>]*>(.*?)</(?:section|h1|p|table|div></section|header)', dom, re.S)
    assert found, f"there is no '{name}'"
    return re.sub(r"<[^>]+>", " ", found.group(1))


def test_no_word_on_the_console_and_the_figures_on_the_page(page):
    dom, said = page.chromium("--dump-dom", "--virtual-time-budget=4000")
    assert said == [], said
    root = re.search(r"<html[^>]*>", dom).group(0)
    assert 'data-ready="yes"' in root, root
    assert f'data-units="{UNITS}"' in root and 'data-slots="8"' in root and 'data-samples="700"' in root and 'data-runs="2"' in root, root
    assert int(re.search(r'data-boxes="(\d+)"', root).group(1)) >= 7, root
    tiles = shown(dom, "tiles")
    for text in ("1400", "33&nbsp;%", "467 of 1400 calls", "3.13&nbsp;GiB", "8 jobs at once", "16&nbsp;min 40&nbsp;s"):
        assert text in tiles, f"'{text}' is not in {tiles}"
    assert "1400 units in 8 slots, 2 runs" in dom
    assert dom.count("<tr", dom.index('id="slowest"'), dom.index('id="card-largest"')) == 15
    assert "direct, 0 preprocessed, 5 from remote storage" in dom and "8 → 4" in dom
    assert "alert(1)" not in re.sub(r'id="data">.*?</script>', "", dom, flags=re.S).replace("&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;", ""), "a name became a part of the page"


def test_a_word_on_the_console_would_be_seen(page):
    broken = os.path.join(page.dir, "broken.html")
    write(broken, page.text.replace('"use strict";', "nothing_of_this_name();", 1))
    dom, said = page.chromium("--dump-dom", path=broken)
    assert any("nothing_of_this_name" in line for line in said), said
    assert "data-ready" not in re.search(r"<html[^>]*>", dom).group(0)


POINTING = """
HTMLElement.prototype.setPointerCapture = () => {};
const said = [], tip = document.getElementById("tip"), at = (id, type, x, y) => {
	const c = document.getElementById(id), r = c.getBoundingClientRect();
	c.dispatchEvent(new PointerEvent(type, {clientX: r.left + x * r.width, clientY: r.top + y, bubbles: true, button: 0}));
	said.push(`${id} ${type}: ${tip.hidden ? "-" : tip.textContent}`);
};
at("timeline", "pointermove", 0.0725, 45);
at("timeline", "pointerleave", 0, 0);
at("memory", "pointermove", 0.3, 50);
at("sizes", "pointermove", 0.2, 200);
at("sizes", "click", 0.2, 200);
said.push(`crumbs: ${document.getElementById("crumbs").textContent}`);
document.getElementById("by-raw").click();
at("timeline", "pointerdown", 0.2, 40);
at("timeline", "pointermove", 0.3, 40);
at("timeline", "pointerup", 0.3, 40);
said.push(`reset: ${document.getElementById("reset").disabled}`);
document.getElementById("reset").click();
said.push(`reset: ${document.getElementById("reset").disabled}`);
const filter = document.getElementById("filter");
filter.value = "UNIT77";
filter.dispatchEvent(new Event("input"));
said.push(`found: ${document.getElementById("filter-note").textContent}`);
const out = document.createElement("pre");
out.id = "said";
out.textContent = said.join("\\n");
document.body.append(out);
"""


def test_what_lies_under_the_pointer(page):
    path = os.path.join(page.dir, "pointed.html")
    write(path, page.text.replace("</body>", f"<script>{POINTING}</script></body>"))
    dom, console = page.chromium("--dump-dom", path=path)
    assert console == [], console
    said = re.search(r'<pre id="said">(.*?)</pre>', dom, re.S).group(1).split("\n")
    assert re.match(r"timeline pointermove: .*\.cpp\.o.*(&nbsp;)s, unit ", said[0]), said[0]
    assert said[1] == "timeline pointerleave: -", said[1]
    assert re.match(r"memory pointermove: .*MiB in all processes.*processors busy|memory pointermove: .*GiB in all processes.*processors busy", said[2]), said[2]
    assert said[3].startswith("sizes pointermove: torch/lib/libx.so") and "% of the wheel" in said[3], said[3]
    assert "crumbs: all / torch" in said, said
    assert "reset: false" in said and said.index("reset: false") < said.index("reset: true"), said
    assert any(line.startswith("found: 11 units, ") for line in said), said


def check_drawn(page, dark):
    path = os.path.join(page.dir, "dark.png" if dark else "light.png")
    _, said = page.chromium(f"--screenshot={path}", *(["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]))
    assert said == [], said
    width, height, rows, n = pixels(path)
    assert (width, height) == (1000, 900)
    counts = {}
    for row in rows[::2]:
        for x in range(0, width * n, n * 2):
            key = row[x : x + 3]
            counts[key] = counts.get(key, 0) + 1
    page_colour = max(counts, key=counts.get)
    bright = sum(page_colour) > 3 * 128
    assert bright != dark, f"most of the page is {page_colour.hex()}"
    # The colours of the parts, as the style names them; the first of a scheme is of the light one.
    scheme = page.text.split("prefers-color-scheme: dark")[1 if dark else 0]
    for name in ("c0", "c1", "c2", "c3", "c4"):
        colour = bytes.fromhex(re.search(rf"--{name}: #([0-9a-f]{{6}})", scheme).group(1))
        assert counts.get(colour, 0) > 100, f"'{name}' was hardly drawn: {counts.get(colour, 0)}"


def test_it_is_drawn_in_light(page):
    check_drawn(page, False)


def test_it_is_drawn_in_dark(page):
    check_drawn(page, True)


def test_nothing_lies_beyond_the_edge(page):
    """Of a phone, and of a screen."""
    for width in (390, 1280):
        assert beyond_the_edge(page.text, width) == (width, ""), (width, beyond_the_edge(page.text, width))
    wide = page.text.replace("</header>", '</header><p style="width: 900px">wide</p>')
    assert beyond_the_edge(wide, 390)[0] > 390


ALONE = [test_the_page_stands_alone, test_the_data_is_whole]
IN_BROWSER = [test_no_word_on_the_console_and_the_figures_on_the_page, test_a_word_on_the_console_would_be_seen, test_what_lies_under_the_pointer, test_it_is_drawn_in_light, test_it_is_drawn_in_dark, test_nothing_lies_beyond_the_edge]


def main():
    page = Page(os.path.abspath(sys.argv[1]))
    tests, failed = list(ALONE), []
    if browser():
        tests += IN_BROWSER
    elif os.environ.get("PTBUILD_BROWSER") == "required":
        print(f"[  FAILED  ] no browser: none of {', '.join(BROWSERS)} is installed")
        failed.append("browser")
    try:
        for test in tests:
            try:
                test(page)
                print(f"[       OK ] {test.__name__}", flush=True)
            except Exception as ex:  # noqa: BLE001 - the other tests still run
                failed.append(test.__name__)
                print(f"[  FAILED  ] {test.__name__}: {ex!r}", flush=True)
    finally:
        page.close()
    print(f"[  PASSED  ] {len(tests) - len([f for f in failed if f != 'browser'])} test(s).")
    if failed:
        print(f"[  FAILED  ] {len(failed)} test(s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
