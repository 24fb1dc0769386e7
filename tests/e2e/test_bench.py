"""ptbuild bench: two stand-ins for torch against each other; one is slower, fails, dies, hangs, prints nonsense and computes something else."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time

from report_browser import beyond_the_edge, browser
from toy import host_python, main
from wheelsite import Server, make_wheel

TORCH = """
import sys

class _Cuda:
    def is_available(self):
        return False

cuda = _Cuda()

def set_num_threads(count):
    global threads
    threads = count

"""
# The other sleeps five times as long, and does all else that it should not.
OURS = TORCH + "DELAY, SUM, BAD = 0.04, 7.0, None\n"
OTHER = TORCH + "DELAY, SUM, BAD = 0.2, 7.5, True\nprint('\\033[31mwords of an import', flush=True)\n"
WORKLOADS = '''
import os, socket, sys, time

class Workload:
    tolerance = 1e-3
    def __init__(self, name, make, devices=("cpu", "cuda")):
        self.name, self.make, self.devices = name, make, devices

def sleeps(torch, device):
    def work():
        time.sleep(torch.DELAY)
        return 1.0
    return work

def even(torch, device):
    def work():
        time.sleep(0.02)
        return [1.0, {"x": 2}]
    return work

def differs(torch, device):
    return lambda: torch.SUM

def fails(torch, device):
    if torch.BAD:
        raise RuntimeError("not <here> & \\033[31mnow")
    return lambda: 1.0

def dies(torch, device):
    return lambda: os.abort() if torch.BAD else 1.0

def hangs(torch, device):
    return lambda: time.sleep(100) if torch.BAD else 1.0

def odd(torch, device):
    return lambda: float("nan") if torch.BAD else 1.0

def pinned(torch, device):
    given = [torch.threads, int(os.environ["OMP_NUM_THREADS"]), len(os.sched_getaffinity(0))]
    assert given == [torch.threads] * 3, given
    return lambda: 1.0

def alone(torch, device):
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=2)
    except OSError:
        return lambda: 1.0
    raise RuntimeError("there is a network")

def lies(torch, device):
    if torch.BAD:
        print('{"bench": "value", "name": "lies", "value": NaN, "unit": "s", "mean": true}', flush=True)
    return lambda: 1.0

WORKLOADS = [Workload(f.__name__, f) for f in (sleeps, even, differs, fails, dies, hangs, odd, pinned, alone, lies)]
WORKLOADS.append(Workload("for a GPU", even, ("cuda",)))
'''
GOOD = "sleeps,even,pinned,alone,import,memory*"


def prepare(world):
    with open(os.path.join(world.profiles, "bench", "workloads.py"), "w") as f:
        f.write(WORKLOADS)
    world.ours = make_wheel(world.dir, "torch", "2.9.1+ours", code=OURS)
    world.other = make_wheel(world.dir, "torch", "2.9.1+other", code=OTHER)


def bench(world, *words, ours=None, against=None, **kw):
    return world.run("bench", ours or world.ours, "--against", against or world.other, "--seconds", "0.05", *words, **kw)


def ask(world, *words, code=0, **kw):
    r = bench(world, "--json", *words, **kw)
    assert r.returncode == code, (r.returncode, r.stdout, r.stderr)
    return json.loads(r.stdout), r


def of(document, name, place=0):
    return {w["name"]: w for w in document["sets"][place]["workloads"]}[name]


def test_compares(world):
    processors = len(os.sched_getaffinity(0))
    d, r = ask(world, "--pairs", "3", "--only", GOOD, "--machine-class", "Zen 5, 2 processors")
    assert d["machine_class"] == "Zen 5, 2 processors" and of(d, "sleeps")["verdict"] == "no difference shown" and of(d, "sleeps")["interval"] is None, d
    assert d["schema"] == 1 and d["pairs"] == 3 and d["wheel"]["torch"] == "2.9.1+ours" and d["other"]["torch"] == "2.9.1+other", d
    assert [s["threads"] for s in d["sets"]] == ([1, 2] if processors > 1 else [1]), d
    first = d["sets"][0]
    slow, even = of(d, "sleeps"), of(d, "even")
    assert slow["state"] == "compared" and 1.5 < slow["ratio"] < 8 and slow["wheel"]["median"] >= 0.04 and slow["other"]["median"] >= 0.2 and len(slow["other"]["samples"]) == 3, slow
    assert 0.1 < even["ratio"] < 10 and even["wheel"]["spread"] >= 0, even
    assert {w["name"] for w in first["workloads"]} == {"sleeps", "even", "pinned", "alone", "import", "memory after import"}, first
    assert first["compared"] == 4 and not of(d, "import")["in_mean"] and of(d, "memory after import")["unit"] == "bytes", first
    assert len(first["processors"]) == 1 and "words of an import" not in r.stdout + r.stderr
    # Every second pair begins with the other.
    turns = [line.split(", ", 1)[1] for line in r.stderr.splitlines() if line.startswith("bench: 1 thread, pair")]
    assert turns == ["pair 1 of 3, the wheel", "pair 1 of 3, the other", "pair 2 of 3, the other", "pair 2 of 3, the wheel", "pair 3 of 3, the wheel", "pair 3 of 3, the other"], r.stderr
    assert not leftovers(world)


def leftovers(world):
    """Environments that were not removed."""
    return [n for n in os.listdir(os.path.join(world.cache, "tmp")) if os.path.isdir(os.path.join(world.cache, "tmp", n))]


def test_tells_what_cannot_be_compared(world):
    page = world.path("bench.html")
    d, r = ask(world, "--pairs", "2", "--threads", "1", "--limit", "2", "--only", "even,differs,fails,dies,hangs,odd,for*", "--page", page, code=7)
    states = {w["name"]: (w["state"], w["wheel"]["why"], w["other"]["why"], w["ratio"]) for w in d["sets"][0]["workloads"]}
    even = states.pop("even")
    assert even[0] == "compared" and d["sets"][0]["compared"] == 1 and abs(d["sets"][0]["geometric_mean"] - even[3]) < 1e-9, d
    gpu = "it is not for the device 'cpu'"
    assert states == {
        "differs": ("differs", None, None, None),
        "fails": ("failed", None, "RuntimeError: not <here> &  [31mnow", None),
        "dies": ("failed", None, "the process died of signal 6", None),
        "hangs": ("failed", None, "not done in 2 s", None),
        "odd": ("failed", None, "its result is not a number", None),
        "for a GPU": ("skipped", gpu, gpu, None),
    }, states
    assert "results differ in 1 of 7 workloads" in r.stderr, r.stderr
    text = open(page, encoding="utf-8").read()
    assert "not &#60;here&#62; &#38; " in text and "<here>" not in text and "\x1b" not in text and text.count('<i class="') == 1, text
    for width in (390, 1280) if browser() else ():
        assert beyond_the_edge(text, width) == (width, ""), (width, beyond_the_edge(text, width))
    # They were not tried again: one limit, not two.
    assert len(d["sets"][0]["workloads"]) == 7
    r = bench(world, "--pairs", "1", "--threads", "1", "--only", "even,fails")
    assert r.returncode == 0 and "\x1b" not in r.stdout, r.stdout
    assert re.search("^fails .* failed: the other: RuntimeError: not <here> & ", r.stdout, re.M) and "geometric mean of 1" in r.stdout, r.stdout
    r = bench(world, "--pairs", "1", "--threads", "1", "--only", "fails")
    assert r.returncode == 7 and "no workload could be compared" in r.stderr, r.stderr


def test_without_a_sandbox(world):
    """As on a machine with a GPU, which the sandbox does not show."""
    d, _ = ask(world, "--pairs", "1", "--threads", "1", "--limit", "2", "--sandbox", "none", "--only", "sleeps,pinned,dies,hangs")
    states = {w["name"]: (w["state"], w["other"]["why"]) for w in d["sets"][0]["workloads"]}
    assert states == {"sleeps": ("compared", None), "pinned": ("compared", None), "dies": ("failed", "the process died of signal 6"), "hangs": ("failed", "not done in 2 s")}, states
    assert not leftovers(world) and "__pycache__" not in os.listdir(os.path.join(world.profiles, "bench"))


def test_names_the_lowest(world):
    d, _ = ask(world, "--pairs", "1", "--threads", "1", "--only", "sleeps", ours=world.other, against=world.ours)
    assert d["sets"][0]["lowest"] == ["sleeps"] and d["sets"][0]["geometric_mean"] < 0.7 and of(d, "sleeps")["wheel"]["spread"] is None, d


def test_lines_that_are_none(world):
    r = bench(world, "--pairs", "1", "--threads", "1", "--only", "lies")
    assert r.returncode == 5 and "of the other printed cannot be read: line " in r.stderr and "not an object" in r.stderr, r.stderr
    assert not leftovers(world)


def test_a_torch_that_does_not_import(world):
    broken = make_wheel(world.dir, "torch", "2.9.1+broken", code="raise ImportError('libgone.so.1: not there')\n")
    r = bench(world, against=broken)
    assert r.returncode == 7 and "the other torch does not import (status 1)" in r.stderr and "libgone.so.1: not there" in r.stderr, r.stderr
    r = bench(world, "--device", "cuda")
    assert r.returncode == 2 and "--device cuda: the sandbox shows no GPU" in r.stderr and "--sandbox none" in r.stderr and "is installed" not in r.stderr, r.stderr
    r = bench(world, "--device", "cuda", "--sandbox", "none")
    assert r.returncode == 7 and "this machine has no NVIDIA GPU" in r.stderr and "is installed" not in r.stderr, r.stderr


def test_other_programs_disturb(world):
    words = ["--pairs", "1", "--threads", "1", "--only", "even"]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        d, r = ask(world, *words)
    finally:
        for p in busy:
            p.kill()
            p.wait()
    assert d["disturbed"] and d["load"] > 0.5 and "other programs used up to" in r.stderr, (d["load"], d["disturbed"], r.stderr)


def test_refusals(world):
    folder = world.path("others")
    os.makedirs(folder, exist_ok=True)
    for path, message in ((make_wheel(folder, "torch", "2.9.0+other"), "is of version 2.9.1, 'torch-2.9.0+other-py3-none-any.whl' of 2.9.0"),
                          (make_wheel(folder, "torch", "2.9.1", python="cp313-cp313-linux_x86_64"), "is of Python py3, 'torch-2.9.1-cp313-cp313-linux_x86_64.whl' of cp313"),
                          (make_wheel(folder, "toy", "2.9.1"), "is a wheel of toy, and the workloads are torch's")):
        r = bench(world, against=path)
        assert r.returncode == 7 and message in r.stderr, r.stderr
    one, two = (make_wheel(folder, "torch", f"2.9.1+{label}", python="cp38-cp38-linux_x86_64") for label in ("one", "two"))
    for words in (["--only", "even"], ["--with", one]):
        r = bench(world, *words, ours=one if words[0] == "--only" else world.ours, against=two if words[0] == "--only" else world.other)
        assert r.returncode == 7 and f"'{os.path.basename(one)}' is for cp38, but the Python of the root '/' is {host_python()}" in r.stderr, r.stderr
        assert "is installed" not in r.stderr and not leftovers(world), r.stderr
    many = str(len(os.sched_getaffinity(0)) + 1)
    for words, message in ((["--only", "even,no*such"], "no workload is called 'no*such'"), (["--threads", "0"], "not a number of threads: '0'"),
                           (["--threads", "1,x"], "'x'"), (["--threads", many], f"--threads {many}: this machine has"), (["--seconds", "0x"], "not a number of seconds"),
                           (["--seconds", "nan"], "not a number of seconds"), (["--pairs", "2000"], "--pairs: at most 1000"), (["--device", "tpu"], "tpu"),
                           (["--machine-class", ""], "'--machine-class' needs a value"), (["--machine-class", "a|b"], "--machine-class: not a name"), (["--machine-class", "x" * 65], "--machine-class: not a name")):
        r = bench(world, *words)
        assert r.returncode == 2 and message in r.stderr and "is installed" not in r.stderr, (words, r.stderr)
    for words, message in (([world.ours], "bench needs one wheel, and another one"), ([world.ours, "--against", "gone.whl"], "'gone.whl' does not exist"),
                           ([world.ours, "--against", "root"], "no wheel 'root'"), (["official", "--against", world.ours], "no wheel 'official'")):
        r = world.run("bench", *words)
        assert r.returncode == 2 and message in r.stderr, (words, r.stderr)


def test_a_page_is_tried_before(world):
    for page, words in ((world.path("none", "x.html"), "No such file"), (world.dir, "Is a directory")):
        r = bench(world, "--page", page, "--json")
        assert r.returncode == 8 and "--page: cannot write" in r.stderr and words in r.stderr and "is installed" not in r.stderr and json.loads(r.stdout)["error"]["exit_code"] == 8, (r.stdout, r.stderr)
    assert not leftovers(world)


def site(world, *wheels):
    """A Python index of these wheels, and the environment that names it."""
    folder = world.path("site")
    for name in {os.path.basename(w).split("-")[0] for w in wheels}:
        os.makedirs(os.path.join(folder, "simple", name.replace("_", "-")), exist_ok=True)
        files = [{"filename": os.path.basename(w), "url": f"/{os.path.basename(w)}", "size": os.path.getsize(w), "hashes": {"sha256": hashlib.sha256(open(w, "rb").read()).hexdigest()}}
                 for w in wheels if os.path.basename(w).startswith(name + "-")]
        with open(os.path.join(folder, "simple", name.replace("_", "-"), "index.html"), "w") as f:
            json.dump({"meta": {"api-version": "1.1"}, "files": files}, f)
    for w in wheels:
        os.replace(w, os.path.join(folder, os.path.basename(w)))
    return folder


def test_the_official_one_and_what_it_pins(world):
    folder = world.path("index-wheels")
    os.makedirs(folder, exist_ok=True)
    pins = ["toy_library==1.5; platform_system == 'Linux'", "absent_one==1.0; platform_system == 'Windows'", "sympy>=1", "absent_two==2; extra == 'more'", "triton==9.9",
            "toy_kit[part,other]==13.0.2"]
    parts = ["toy_part==13.1.0.*; platform_system == 'Linux' and extra == 'part'", "absent_three==1.*; extra == 'all'", "toy_library==1.5; extra == 'other'", "toy_kit[part]==13.0.2; extra == 'other'", "toy_kit[other,part]==13.0.2; extra == 'other'"]
    official = make_wheel(folder, "torch", "2.9.1", pins, code="import toy_library, toy_kit, toy_part\n" + OURS)
    library = [make_wheel(folder, "toy_library", "1.5"), make_wheel(folder, "toy_part", "13.1.0"), make_wheel(folder, "toy_kit", "13.0.2", parts)]
    bundled = ",".join([make_wheel(world.dir, "toy_library", "1.5"), make_wheel(world.dir, "toy_part", "13.1.0"), make_wheel(world.dir, "toy_kit", "13.0.2", parts)])
    words = ["--pairs", "1", "--threads", "1", "--only", "even"]
    with Server(site(world, official, *library)) as server:
        env = {**os.environ, "PIP_INDEX_URL": server.url + "/simple", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        d, _ = ask(world, *words, against="official", env=env)
        assert d["other"] == {"file": "torch-2.9.1-py3-none-any.whl", "torch": "2.9.1", "cpu": ""} and of(d, "even")["state"] == "compared", d
        # From the store the second time; not fetched at all if it is given.
        server.asked.clear()
        d, _ = ask(world, *words, "--with", bundled, against="official", env=env)
        assert [a for a in server.asked if a.endswith(".whl")] == [] and not any("toy" in a for a in server.asked), server.asked
        bad = make_wheel(world.dir, "torch", "2.9.1+bad", ["toy_library==1.6"], code=OURS)
        r = bench(world, *words, against=bad, env=env)
        assert r.returncode == 4 and "toy_library==1.6, which 'torch-2.9.1+bad-py3-none-any.whl' requires" in r.stderr, r.stderr
        bad = make_wheel(world.dir, "torch", "2.8.1+bad", code=OURS)
        r = bench(world, *words, ours=bad, against="official", env=env)
        assert r.returncode == 4 and "the official wheel: the index has no wheel of torch==2.8.1" in r.stderr, r.stderr
    r = bench(world, *words, "--offline", against="official", cache=world.path("empty"))
    assert r.returncode == 2 and "--against official asks the Python index, which --offline forbids" in r.stderr, r.stderr
    assert not os.path.exists(world.path("empty"))


def test_interrupted(world):
    p = world.start("bench", world.ours, "--against", world.other, "--threads", "1", "--only", "hangs,even")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not any("hang" in c for c in commands(p.pid)):
        time.sleep(0.1)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=120)
    assert p.returncode == 130 and out == "", (p.returncode, out, err)
    assert not leftovers(world)


def commands(pid):
    """What runs below a process."""
    out = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    rows, below = [line.split(None, 2) for line in out], {str(pid)}
    for _ in rows:
        below |= {r[0] for r in rows if r[1] in below}
    return [r[2] for r in rows if r[0] in below and "run_workloads" in r[2] and '"probe":false' in r[2]]


if __name__ == "__main__":
    main([test_compares, test_tells_what_cannot_be_compared, test_without_a_sandbox, test_names_the_lowest, test_lines_that_are_none, test_a_torch_that_does_not_import, test_other_programs_disturb, test_refusals, test_a_page_is_tried_before,
          test_the_official_one_and_what_it_pins, test_interrupted], prepare)
