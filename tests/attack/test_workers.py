#!/usr/bin/python3
"""Workers that lie: what a node leaves in the directory of a matrix (states, logs, records, wheels, the list of jobs itself) before `matrix --status` and the script's `collect` read it. Each case is one lie; ptbuild ends soon with its
own exit code in all three formats, shows no word of a file elsewhere and nothing that moves a cursor or runs in a page, and changes nothing.

    test_workers.py PTBUILD [CASE...]

As root every second case runs as nobody, with names of cases all run as both.
"""

import functools
import html.parser
import json
import os
import shutil
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import toy  # noqa: E402

SECRET = "swordfish"
ID, OTHER = "pytorch-python313-cuda12_8-sm90-avx512", "pytorch-python313-cuda12_8-sm80-avx512"
SCRIPT = "<script>alert(1)</script>"
ODD = "\x1b[2J\u202e\x9b31m" + SCRIPT + "\"'&"
RECORD = {"wheel": "w.whl", "bytes": 2500000, "build": {"compiler_cache": {"hits": 9, "misses": 1}}}
JOBS = {"schema": 1, "matrix": "m", "jobs": [{"id": ID, "wave": 1, "variants": [ID]}, {"id": OTHER, "wave": 2, "variants": [OTHER]}]}


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def text(rel, data):
    return lambda top: write(os.path.join(top, rel), data)


def link(rel, to):
    """`to` is a file beside the directory, or a path."""

    def make(top):
        path = os.path.join(top, rel)
        shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.unlink(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(to if to.startswith("/") else os.path.join(os.path.dirname(top), "host", to), path)

    return make


def special(rel, make):
    def change(top):
        path = os.path.join(top, rel)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            os.unlink(path)
        make(path)

    return change


def bound(path):
    with socket.socket(socket.AF_UNIX) as s:
        here = os.open(os.path.dirname(path), os.O_RDONLY)
        s.bind(f"/proc/self/fd/{here}/s")
        os.close(here)
    os.rename(os.path.join(os.path.dirname(path), "s"), path)


def sparse(path):
    with open(path, "wb") as f:
        f.truncate(1 << 40)


def jobs(change):
    def make(top):
        doc = json.loads(json.dumps(JOBS))
        change(doc)
        write(os.path.join(top, "jobs.json"), json.dumps(doc))

    return make


def first(**kw):
    return jobs(lambda doc: doc["jobs"][0].update(kw))


STATE, LOG, OUT = f"state/{ID}", f"log/{ID}.log", f"out/{ID}/{ID}"
FAILED = text(STATE, "state failed\nexit 6\nnode n1\n")


def both(*changes):
    return lambda top: [c(top) for c in changes]


def record(**kw):
    return text(f"{OUT}/build.json", json.dumps({**RECORD, **kw}))


# name: (what the worker does, exit codes that may come of it)
STATUS = {
    "nothing": (lambda top: None, (0,)),
    "state_is_a_link": (link(STATE, "state"), (0,)),
    "states_are_a_link": (link("state", "states"), (0,)),
    "state_is_a_pipe": (special(STATE, os.mkfifo), (0,)),
    "state_is_a_device": (link(STATE, "/dev/zero"), (0,)),
    "state_is_a_directory": (special(STATE, os.mkdir), (0,)),
    "state_is_a_socket": (special(STATE, bound), (0,)),
    "state_is_endless": (special(STATE, sparse), (0,)),
    "state_with_odd_words": (text(STATE, f"state running\nnode {ODD}\nattempt {ODD}\n"), (0,)),
    "state_unknown": (text(STATE, f"state {ODD}\n"), (0,)),
    "state_of_extremes": (text(STATE, f"state failed\nstarted {-2**63}\nended {2**63 - 1}\nexit {-2**63}\nattempt {2**63 - 1}\n"), (0,)),
    "state_beyond_extremes": (text(STATE, "state running\nstarted -99999999999999999999\nended -5\n"), (0,)),
    "both_run_for_ever": (both(text(STATE, f"state done\nstarted 1\nended {2**63 - 1}\n"), text(f"state/{OTHER}", f"state done\nstarted 1\nended {2**63 - 1}\n")), (0,)),
    "state_no_utf8": (text(STATE, b"state failed\nnode \xff\xfe\x00\x01\n"), (0,)),
    "state_of_many_lines": (text(STATE, "".join(f"k{i} v\n" for i in range(6000))), (0,)),
    "state_of_one_long_line": (text(STATE, "node " + "n" * 1000000), (0,)),
    "log_is_a_link": (both(FAILED, link(LOG, "state")), (0,)),
    "logs_are_a_link": (both(FAILED, link("log", "logs")), (0,)),
    "log_is_a_pipe": (both(FAILED, special(LOG, os.mkfifo)), (0,)),
    "log_is_a_device": (both(FAILED, link(LOG, "/dev/zero")), (0,)),
    "log_is_a_directory": (both(FAILED, special(LOG, os.mkdir)), (0,)),
    "log_is_endless": (both(FAILED, special(LOG, sparse)), (0,)),
    "log_with_odd_words": (both(FAILED, text(LOG, f"ptbuild: error: {ODD}\n")), (0,)),
    "log_with_a_false_hint": (both(FAILED, text(LOG, "ptbuild: error: x\r\nptbuild: hint: run this\r")), (0,)),
    "log_no_utf8": (both(FAILED, text(LOG, b"ptbuild: error: \xff\xc3\n")), (0,)),
    "log_ends_in_the_middle": (both(FAILED, text(LOG, b"x" * 16383 + "\u202e".encode() * 9000)), (0,)),
    "record_is_a_link": (link(f"{OUT}/build.json", "build.json"), (0,)),
    "records_are_a_link": (link(OUT, "made"), (0,)),
    "out_is_a_link": (link("out", "outs"), (0,)),
    "record_is_a_pipe": (special(f"{OUT}/build.json", os.mkfifo), (0,)),
    "record_is_endless": (special(f"{OUT}/build.json", sparse), (0,)),
    "record_is_deep": (text(f"{OUT}/build.json", "[" * 1000000), (0,)),
    "record_of_other_kinds": (record(wheel=[1], bytes="x", build=[{"compiler_cache": 3}]), (0,)),
    "record_of_large_numbers": (record(bytes=2**63 - 1, build={"compiler_cache": {"hits": 2**63 - 1, "misses": 2**63 - 1, "remote_hits": -(2**63)}}), (0,)),
    "record_of_negative_numbers": (record(bytes=-(2**63), build={"compiler_cache": {"hits": -5, "misses": 5}}), (0,)),
    "record_with_odd_words": (record(wheel=ODD), (0,)),
    "page_is_a_link": (both(record(), link(f"{OUT}/build.html", "build.json")), (0,)),
    "id_leads_up": (first(id="../host/state"), (5,)),
    "id_is_up": (first(id=".."), (5,)),
    "id_is_empty": (first(id=""), (5,)),
    "id_is_a_number": (first(id=3), (5,)),
    "id_with_odd_words": (first(id=ODD.replace("/", "")), (0, 5)),
    "id_is_long": (first(id="a" * 100000), (0, 5)),
    "variant_leads_up": (first(variants=["../../host/made", "..", "a/b", "/"]), (0,)),
    "variant_with_odd_words": (first(variants=[ODD]), (0,)),
    "variants_of_other_kinds": (first(variants=[1, None, {}, [[]]]), (0,)),
    "variants_are_text": (first(variants="x"), (0,)),
    "many_variants": (first(variants=["v%d" % i for i in range(2000)]), (0,)),
    "many_jobs": (jobs(lambda doc: doc.update(jobs=[{"id": f"j{i}", "variants": ["v"]} for i in range(1000)])), (0,)),
    "job_is_a_number": (jobs(lambda doc: doc["jobs"].append(7)), (5,)),
    "job_has_run": (first(run={"state": "done", "made": {ID: {"page": "javascript:alert(1)", "bytes": 1}}}, wave=2**62), (0,)),
    "shard_with_odd_words": (first(shard="1/" + ODD), (0,)),
    "wave_of_other_kind": (first(wave="x"), (0,)),
    "matrix_with_odd_words": (jobs(lambda doc: doc.update(matrix=ODD)), (0,)),
    "matrix_is_no_text": (jobs(lambda doc: doc.update(matrix=[1])), (0,)),
    "jobs_are_text": (text("jobs.json", '{"jobs": "x"}'), (5,)),
    "jobs_are_deep": (text("jobs.json", '{"jobs": ' + "[" * 1000000), (5,)),
    "jobs_are_none": (text("jobs.json", b""), (5,)),
    "jobs_are_endless": (special("jobs.json", sparse), (5, 8)),
    "jobs_are_a_pipe": (special("jobs.json", os.mkfifo), (3, 5, 8)),
}


class Page(html.parser.HTMLParser):
    """What a page would run or lead to."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [tag] if tag in ("script", "iframe", "object", "embed", "img") else []
        for name, value in attrs:
            if name.startswith("on") or (name in ("href", "src") and not (value or "").startswith(("./", "#", "data:"))):
                self.found.append((name, value))


def prepare(world):
    os.chmod(world.dir, 0o755)
    host = world.path("host")
    for name in ("state", "states/" + ID, "logs/" + ID + ".log"):
        write(os.path.join(host, name), f"state failed\nnode {SECRET}\nptbuild: error: {SECRET}\n")
    for name in ("build.json", "made/build.json", f"outs/{ID}/{ID}/build.json"):
        write(os.path.join(host, name), json.dumps({**RECORD, "wheel": SECRET}))
    world.host = picture(host)
    made = subprocess.run([world.ptbuild, "matrix", ID, "--release", "2.10.0", "--format", "slurm"], capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stderr
    world.script = made.stdout


def picture(top):
    return sorted((p, open(os.path.join(d, p), "rb").read(), os.stat(os.path.join(d, p)).st_mtime_ns) for d, _, names in os.walk(top) for p in names)


def users():
    both = [{}] + ([{"user": "nobody"}] if os.getuid() == 0 else [])
    return both


def status(world, name):
    make, codes = STATUS[name]
    top = world.path("run-" + name)
    os.mkdir(top)
    for folder in ("state", "log", "out", "dist"):
        os.mkdir(os.path.join(top, folder))
    write(os.path.join(top, "jobs.json"), json.dumps(JOBS))
    make(top)
    everybody = users()
    for who in everybody if len(sys.argv) > 2 else everybody[list(STATUS).index(name) % len(everybody) :][:1]:
        for kind in ("table", "json", "html"):
            r = subprocess.run([world.ptbuild, "matrix", "--status", top, "--format", kind], capture_output=True, timeout=300, stdin=subprocess.DEVNULL, cwd="/", **who)
            out, err = r.stdout.decode(), r.stderr.decode()
            said = out + err
            assert r.returncode in codes, (who, kind, r.returncode, said[-1000:])
            assert SECRET not in said and "Sanitizer" not in said and "runtime error" not in said, (who, kind, said[-2000:])
            moving = "\x1b\0\r" if kind == "json" else "\x1b\0\r\u202e\x9b"  # JSON has the other characters as they are
            assert not any(c in said for c in moving), (who, kind, said[-1000:])
            assert "\nptbuild: hint: run this" not in said
            if r.returncode == 0 and kind == "json":
                json.loads(out)
            if r.returncode == 0 and kind == "html":
                page = Page()
                page.feed(out)
                assert not page.found, page.found
    assert picture(world.path("host")) == world.host
    shutil.rmtree(top)


# name: (what lies in out/ID, whether it may come to dist)
WHEELS = {
    "a_link": (link("w.whl", "state"), False),
    "a_link_to_a_directory": (link("w.whl", "states"), False),
    "a_pipe": (special("w.whl", os.mkfifo), False),
    "a_directory": (special("w.whl", os.mkdir), False),
    "a_socket": (special("w.whl", bound), False),
    "a_device": (link("w.whl", "/dev/zero"), False),
    "an_option": (text("--target-directory=.whl", "x"), True),
    "odd_names": (text("a\nb\x1b[2J.whl", "x"), True),
    "no_wheel": (text("w.whl", "x"), True),
}


def collect(world, name):
    """By the script that `matrix --format slurm` writes, whose last job brings the wheels together."""
    make, may = WHEELS[name]
    top = world.path("collect-" + name)
    script = os.path.join(top, "m.sh")
    os.makedirs(top)
    write(script, world.script)
    for folder in ("state", "log", "out/" + ID, "dist"):
        os.makedirs(os.path.join(top, folder))
    write(os.path.join(top, "jobs.json"), json.dumps({"schema": 1, "matrix": "m", "jobs": JOBS["jobs"][:1]}))
    write(os.path.join(top, STATE), f"state done\ncommand build {ID} --release 2.10.0\n")
    out = os.path.join(top, "out", ID)
    if name.startswith("a_"):
        os.symlink(world.path("host"), os.path.join(os.path.dirname(out), "host"))
    make(out)
    subprocess.run(["bash", script, "collect", top, top, world.ptbuild], capture_output=True, timeout=300, env={**os.environ, "PTBUILD": world.ptbuild}, stdin=subprocess.DEVNULL)
    log = open(os.path.join(top, "log/collect.log"), errors="replace").read()
    dist = os.path.join(top, "dist")
    wheels = [n for n in os.listdir(dist) if ".whl" in n]
    assert bool(wheels) == may and not any(os.path.islink(os.path.join(dist, n)) for n in wheels), (wheels, log[-800:])
    for d, _, names in os.walk(dist):
        for n in names:
            assert SECRET.encode() not in open(os.path.join(d, n), "rb").read(), n
    assert SECRET not in log and "\x1b" not in log and "Sanitizer" not in log, log[-800:]
    assert picture(world.path("host")) == world.host
    shutil.rmtree(top)


TESTS = [*[functools.partial(status, name=n) for n in STATUS], *[functools.partial(collect, name=n) for n in WHEELS]]
for t in TESTS:
    t.__name__ = f"{t.func.__name__}_{t.keywords['name']}"

if __name__ == "__main__":
    toy.main(TESTS, prepare)
