"""Runs workloads.py once with the torch of this environment; `ptbuild bench` starts it, again and again.

usage: run_workloads.py OPTIONS

OPTIONS is an object in JSON: only (names), skip (names), threads, processors (numbers), seconds, limit, device, and
probe: nothing is run. It prints lines {"bench": KIND, ...}, which answers.py reads; all else is output of torch:

    about    torch, cpu, cuda: versions and the code that torch chose for the processor
    begin    name: from here on SIGALRM ends the process after `limit` seconds, without an answer
    value    name, value, unit, mean (whether it counts in the mean), sums and tolerance, both null without a result, and
             offset: of the output's place from that of the largest input, in bytes modulo 1 MiB, or null
    failed   name, why
    skipped  name, why
    end      others: the processors that other programs used meanwhile; null: unknown
"""
import json
import math
import os
import signal
import statistics
import sys
import time

IMPORT, MEMORY = "import", "memory after import"
# For all that is not a workload, at least. A first import reads some gigabytes from the disk and compiles a thousand files.
IMPORT_S = 900.0
PLACES = 1 << 20  # bytes after which Intel's processors take addresses for the same, on huge pages
WARM_UPS, LEAST_CALLS, MOST_CALLS = 3, 3, 100000
TOLERANCES = {"float64": 1e-6, "complex128": 1e-6, "float32": 1e-3, "complex64": 1e-3, "bfloat16": 3e-2, "float16": 3e-2}


class Lines:
    """Prints the lines. SIGALRM ends the process, without an answer, where one takes longer than its limit."""

    def __init__(self, limit):
        self.limit = limit
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        self.wait(max(limit, IMPORT_S))

    @staticmethod
    def wait(seconds):
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def say(self, kind, **what):
        self.wait(self.limit if kind == "begin" else max(self.limit, IMPORT_S))
        print(json.dumps({"bench": kind, **what}, allow_nan=False), flush=True)


def processor_seconds(path="/proc/stat"):
    """What all processors of the machine worked for anybody, other guests of its host among them; None where the kernel does not say."""
    try:
        with open(path, encoding="ascii") as f:
            user, nice, system, _, _, irq, softirq, steal = map(int, f.readline().split()[1:9])
    except (OSError, ValueError):
        return None
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") or None


class Load:
    """The processors that other programs use from here on, whatever ran before."""

    def __init__(self):
        self.start = self.now()

    @staticmethod
    def now():
        own = os.times()
        return time.perf_counter(), processor_seconds(), own.user + own.system + own.children_user + own.children_system

    def others(self):
        (start, all_start, own_start), (end, all_end, own_end) = self.start, self.now()
        if all_start is None or all_end is None or end <= start:
            return None
        return max(0.0, (all_end - all_start - (own_end - own_start)) / (end - start))


def prepare(options):
    """No more processors than threads, so that neither side takes one that was not asked for."""
    if options["processors"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, options["processors"])
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(options["threads"])


def resident():
    """Bytes; None where the kernel does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


class Sums:
    """What a result is recognised by: the mean of its magnitudes, and a mean in which the place of a number counts."""

    def __init__(self, torch):
        self.torch, self.sums, self.tolerance = torch, [0.0, 0.0], 1e-9

    def add(self, value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            for x in value:
                self.add(x)
        elif hasattr(value, "detach"):
            self.add_tensor(value.detach())
        elif isinstance(value, (int, float)):
            self.sums = [self.sums[0] + abs(value), self.sums[1] + value]
        else:
            raise TypeError(f"a result of type {type(value).__name__}")

    def add_tensor(self, x):
        kind = str(x.dtype).removeprefix("torch.")
        self.tolerance = max(self.tolerance, TOLERANCES.get(kind, 1e-9))
        if x.is_complex():
            x = self.torch.view_as_real(x)
        x = x.to("cpu", self.torch.float64).flatten()
        if x.numel() == 0:
            raise ValueError("an empty result")
        places = self.torch.cos(self.torch.arange(x.numel(), dtype=self.torch.float64) * 0.7)
        self.sums = [self.sums[0] + float(x.abs().mean()), self.sums[1] + float((x * places).mean())]


def measure(work, seconds, wait):
    """The result of the first call, and the median of the seconds of later ones."""
    start = time.perf_counter()
    result = work()
    wait()
    once = time.perf_counter() - start
    for _ in range(WARM_UPS - 1 if once < seconds else 0):
        work()
    wait()
    spans, end = [], time.perf_counter() + seconds
    while len(spans) < LEAST_CALLS or (time.perf_counter() < end and len(spans) < MOST_CALLS):
        start = time.perf_counter()
        work()
        wait()
        spans.append(time.perf_counter() - start)
    return result, statistics.median(spans)


def offset_of(work):
    """Bytes from the largest input, which the function was made with, to the output of one more call, modulo 1 MiB; None where one is no tensor."""
    try:
        inputs = [cell.cell_contents for cell in getattr(work, "__closure__", None) or ()]
    except ValueError:  # a variable that is not set
        return None
    inputs = [x for x in inputs if hasattr(x, "data_ptr") and hasattr(x, "nbytes")]
    if not inputs:
        return None
    output = work()  # freed at once, as those that were measured
    place = output.data_ptr() if hasattr(output, "data_ptr") else None
    return None if place is None else (place - max(inputs, key=lambda x: x.nbytes).data_ptr()) % PLACES


def run(torch, workload, options, say):
    if options["device"] not in workload.devices:
        say("skipped", name=workload.name, why=f"it is not for the device '{options['device']}'")
        return
    wait = torch.cuda.synchronize if options["device"] == "cuda" else lambda: None
    sums = Sums(torch)
    try:
        work = workload.make(torch, options["device"])
        result, seconds = measure(work, options["seconds"], wait)
        sums.add(result)
        offset = offset_of(work) if options["device"] == "cpu" else None
    except Exception as ex:  # noqa: BLE001 - the others are still run
        say("failed", name=workload.name, why=f"{type(ex).__name__}: {' '.join(str(ex).split())}"[:400])
        return
    if not all(map(math.isfinite, sums.sums)):
        say("failed", name=workload.name, why="its result is not a number")
        return
    say("value", name=workload.name, value=seconds, unit="s", mean=True, sums=sums.sums, tolerance=workload.tolerance or sums.tolerance,
        offset=offset)


def wanted(name, options):
    return (not options["only"] or name in options["only"]) and name not in options["skip"]


def import_torch(options, say):
    """Measured: the time that it takes, and the memory that the process then has."""
    asked = {name: wanted(name, options) and not options["probe"] for name in (IMPORT, MEMORY)}
    if asked[IMPORT]:
        say("begin", name=IMPORT)
    start = time.perf_counter()
    import torch

    seconds, memory = time.perf_counter() - start, resident()
    if asked[IMPORT]:
        say("value", name=IMPORT, value=seconds, unit="s", mean=False, sums=None, tolerance=None)
    if asked[MEMORY]:
        say("begin", name=MEMORY)
        if memory is None:
            say("skipped", name=MEMORY, why="this system does not say")
        else:
            say("value", name=MEMORY, value=memory, unit="bytes", mean=False, sums=None, tolerance=None)
    return torch


def about(torch):
    try:
        cpu = torch.backends.cpu.get_cpu_capability()
    except AttributeError:
        cpu = ""
    return {"torch": torch.__version__, "cpu": cpu, "cuda": bool(torch.cuda.is_available())}


def workloads():
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.dont_write_bytecode = True  # into the tables; torch's own modules may be kept
    from workloads import WORKLOADS

    sys.dont_write_bytecode = False
    return WORKLOADS


def names():
    """Those of all workloads."""
    return [IMPORT, MEMORY, *(w.name for w in workloads())]


def main():
    options, load = json.loads(sys.argv[1]), Load()
    say = Lines(options["limit"]).say
    prepare(options)
    torch = import_torch(options, say)
    every = workloads()
    torch.set_num_threads(options["threads"])
    if options["probe"]:
        say("about", **about(torch))
    for workload in every:
        if not options["probe"] and wanted(workload.name, options):
            say("begin", name=workload.name)
            run(torch, workload, options, say)
    say("end", others=load.others())


if __name__ == "__main__":
    main()
