#!/usr/bin/env python3
"""Faults, one a round: what the machine, the network and the user can do to a build, from a seed that is printed. After each round the store is whole, or says what is not;
no wheel but the right one is anywhere; no process and no lock is left; the error named its cause; and the same command without the fault gets through.

faults.py PTBUILD --shim LIBRARY [--seed N] [--rounds N] [--total] [--fault NAME]... [--only I] [--workers N]

--rounds is for each fault, with --total for all of them together. A failed round is repeated with the --seed, --fault and --only that are printed."""

import argparse
import collections
import ctypes
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import faults_kinds as kinds
from toy import World, record, sanitizers

PR_SET_CHILD_SUBREAPER = 36
LIMIT_S = 900  # of one run, on a machine that does much else
LEFTOVER_S = 60.0

Result = collections.namedtuple("Result", "code text seconds")


class Wrong(Exception):
    """The round showed something that must not be."""


def need(condition, *what):
    if not condition:
        raise Wrong(" ".join(str(w) for w in what))


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def children():
    """Of this process; what a dead ptbuild left comes to it, since it is their subreaper."""
    with open(f"/proc/self/task/{os.getpid()}/children") as f:
        return [int(p) for p in f.read().split()]


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace")[:200] or "(zombie)"
    except OSError:
        return "(gone)"


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


class Bench:
    """What all rounds share: the stand-ins, the stores that rounds start from, and the digest of the right wheel of each stand-in."""

    STARTS = ("empty", "source", "tree", "full")

    def __init__(self, world, shim, eras):
        self.world, self.preload = world, " ".join([*sanitizers(world.ptbuild), shim])
        self.right, self.seconds, self.keys, self.tops = {}, {}, {}, {}
        kinds.pin_tiny(world)
        for era in eras:
            self.prepare(era)

    def start(self, era, name):
        return os.path.join(self.tops[era], name)

    def machine_changed(self, era):
        """Whether somebody installed something meanwhile, so that another wheel is right now. Only a build tells: the plan does not look at the root."""
        with tempfile.TemporaryDirectory(dir=self.world.dir) as top:
            build = ["build", "--profile", "cpu-avx2", "--release", f"2.9.1-{era}", "--json", "--lower-store", self.start(era, "full"), "--out", os.path.join(top, "out")]
            item = record(self.check(self.world.run(*build, cache=os.path.join(top, "cache"))))
        return item["record"]["output_key"] != self.keys[era]

    def prepare(self, era):
        self.tops[era] = self.world.path("starts", f"{era}-{os.getpid()}-{len(self.tops)}-{time.monotonic_ns()}")
        plain = lambda *a, cache: self.check(self.world.run(*a, "--profile", "cpu-avx2", "--release", f"2.9.1-{era}", cache=cache))
        os.makedirs(self.start(era, "empty"))
        plain("fetch", "--sources-only", cache=self.start(era, "source"))
        full = self.start(era, "full")
        first = record(plain("build", "--json", "--keep", cache=full))
        self.keys[era] = first["record"]["output_key"]
        self.right[era] = (os.path.basename(first["wheel"]), first["record"]["sha256"])
        self.seconds[era] = {s["step"]: s["seconds"] for s in first["record"]["steps"]}
        tree = self.start(era, "tree")
        shutil.copytree(full, tree, symlinks=True)
        shutil.rmtree(os.path.join(tree, "objects", "wheel"))
        for name in ("empty", "source"):  # the compiler is not what is tried here
            if os.path.isdir(os.path.join(full, "compiled")):
                shutil.copytree(os.path.join(full, "compiled"), os.path.join(self.start(era, name), "compiled"), dirs_exist_ok=True)
        # The trial of the machine meets faults where a store is empty.
        shutil.copytree(os.path.join(full, "stamps"), os.path.join(self.start(era, "source"), "stamps"), dirs_exist_ok=True)
        open(os.path.join(self.start(era, "empty"), "format"), "w").write("ptbuild store 1\n")

    @staticmethod
    def check(result):
        assert result.returncode == 0, result.stderr
        return result


class Round:
    """One round: directories of its own, and what a fault needs to run ptbuild in them."""

    def __init__(self, bench, rng, top, era):
        self.bench, self.rng, self.top, self.era = bench, rng, top, era
        self.cache, self.out = os.path.join(top, "cache"), os.path.join(top, "out")
        self.said = []

    def begin(self, start):
        self.said.append(f"from {start}")
        shutil.copytree(self.bench.start(self.era, start), self.cache, symlinks=True)
        os.makedirs(self.out)

    def command(self, *args):
        w = self.bench.world
        return [w.ptbuild, args[0], "--profiles", w.profiles, "--cache", self.cache, "--out", self.out, *args[1:]]

    def build_command(self, *args):
        return self.command("build", "--profile", "cpu-avx2", "--release", f"2.9.1-{self.era}", "--jobs", "2", "-v", *args)

    def popen(self, command, env=None, **kw):
        return subprocess.Popen(
            command, stdout=kw.pop("stdout", subprocess.DEVNULL), stderr=subprocess.PIPE, text=True, errors="replace", env={**os.environ, **(env or {})}, cwd=self.top, **kw
        )

    def run(self, command, env=None, **kw):
        start = time.monotonic()
        p = self.popen(command, env, **kw)
        try:
            out, text = p.communicate(timeout=LIMIT_S)
            text = (out or "") + text
        except subprocess.TimeoutExpired:
            p.kill()
            raise Wrong("it hangs:", p.communicate()[1][-500:])
        self.said.append(f"exit {p.returncode}: {text.strip()[-700:]}")
        return Result(p.returncode, text, time.monotonic() - start)

    def shimmed(self, command, **settings):
        env = {f"FAULTY_{k.upper()}": str(v) for k, v in settings.items()}
        self.said.append(" ".join(f"{k}={v}" for k, v in env.items()))
        under = {"FAULTY_UNDER": f"{self.cache}:{self.out}", "LD_PRELOAD": self.bench.preload}
        return self.run(command, {**under, **env})

    # what must hold

    def no_process(self):
        until = time.monotonic() + LEFTOVER_S
        while True:
            reap()
            left = children()
            if not left:
                return
            if time.monotonic() > until:
                break
            time.sleep(0.02)
        names = [command_line(p) for p in left]
        for p in left:
            os.kill(p, 9)
        raise Wrong("left running:", names)

    def no_wrong_wheel(self):
        name, right = self.bench.right[self.era]
        for file in os.listdir(self.out):
            if file.endswith(".whl"):
                need(file == name, "another wheel:", file)
                need(digest(os.path.join(self.out, file)) == right, "the wheel in the output directory is wrong")

    def fine_or_says(self, result, codes, *parts):
        """It got through, or ended with one of the exit codes, an error line, and one of the texts in it."""
        if result.code == 0:
            return
        need(result.code in codes, "exit", result.code, "is not in", codes)
        line = [t for t in result.text.splitlines() if t.startswith("ptbuild: error: ")]
        need(len(line) == 1, "no error line")
        whole = result.text[result.text.index("ptbuild: error: ") :]
        need(any(p in whole for p in parts), "the error does not name its cause:", whole)

    def verify(self, codes=(0,)):
        result = self.run(self.command("cache", "verify"), stdout=subprocess.PIPE)
        need(result.code in codes, "cache verify ends with", result.code)
        return result

    def plain_build(self):
        """Without a fault: it must get through, and soon."""
        result = self.run(self.build_command("--json"))
        need(result.code == 0, "the plain run after it ends with", result.code)
        name, right = self.bench.right[self.era]
        path = os.path.join(self.out, name)
        need(os.path.exists(path), "the plain run left no wheel")
        need(digest(path) == right, "the plain run made another wheel")
        need("waiting for" not in result.text, "a lock was left")

    def no_litter(self):
        tmp = os.path.join(self.cache, "tmp")
        need(os.listdir(tmp) == [], "left in tmp:", os.listdir(tmp))
        for top in (self.out, os.path.join(self.cache, "objects"), os.path.join(self.cache, "stamps"), os.path.join(self.cache, "partial")):
            for folder, _, names in os.walk(top):
                for name in names:
                    need(not name.startswith(".ptbuild-") and ".part" not in name, "left:", os.path.join(folder, name))
        extra = [n for n in os.listdir(self.cache) if n.startswith(".ptbuild-")]
        need(not extra, "left:", extra)

    def after(self, verify_first=None):
        """What every round ends with."""
        self.no_process()
        self.no_wrong_wheel()
        if self.rng.random() < 0.5 if verify_first is None else verify_first:
            self.verify()
        self.plain_build()
        self.no_process()
        self.no_wrong_wheel()
        self.no_litter()
        self.verify()


def era_of(seed, fault, index):
    return "setup-py-env" if random.Random(f"{seed}/{fault}/{index}/era").random() < kinds.COMPILED.get(fault, 0) else "tiny"


def one_round(bench, seed, fault, index, top):
    """None, or the story of what went wrong."""
    rng = random.Random(f"{seed}/{fault}/{index}")
    era = era_of(seed, fault, index)
    r = Round(bench, rng, top, era)
    os.makedirs(top)
    try:
        kinds.FAULTS[fault](r)
        return None
    except (Wrong, OSError, subprocess.SubprocessError, AssertionError) as ex:
        where = traceback.extract_tb(ex.__traceback__)[-1]
        return f"{fault} {index} ({era}): {type(ex).__name__}: {ex} [line {where.lineno}]\n    " + "\n    ".join(s.replace("\n", "\n      ") for s in r.said)
    finally:
        kinds.end_round(r)
        for _ in range(20):
            shutil.rmtree(top, ignore_errors=True)
            if not os.path.exists(top):
                break
            time.sleep(0.05)


def worker(bench, seed, tasks, results, top):
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    for fault, index in iter(tasks.get, None):
        start = time.monotonic()
        where, era = os.path.join(top, f"{fault}-{index}"), era_of(seed, fault, index)
        story = one_round(bench, seed, fault, index, where)
        if story and bench.machine_changed(era):
            bench.prepare(era)
            story = one_round(bench, seed, fault, index, where)
        results.put((fault, index, story, time.monotonic() - start))


def chosen(args):
    """The rounds, spread so that a worker that meets a slow fault does not meet it again at once."""
    names = args.fault or list(kinds.FAULTS)
    if args.only is not None:
        return [(names[0], args.only)]
    each = args.rounds
    if args.total:
        weight = sum(kinds.WEIGHT.get(n, 1) for n in names)
        each = None
        counts = {n: max(1, round(args.rounds * kinds.WEIGHT.get(n, 1) / weight)) for n in names}
        counts[names[0]] += args.rounds - sum(counts.values())
    else:
        counts = {n: each for n in names}
    tasks = [(n, i) for n in names for i in range(counts[n])]
    random.Random(args.seed).shuffle(tasks)
    return tasks


def own_mounts():
    """A mount namespace of its own, so that a file system of a few pages can be the disk."""
    if os.environ.get("FAULTS_UNSHARED"):
        return
    command = ["unshare", "--mount", "--propagation", "private"]
    if os.getuid() != 0:
        command.append("--map-root-user")
    os.execvpe(command[0], [*command, sys.executable, *sys.argv], {**os.environ, "FAULTS_UNSHARED": "1"})


def seed_of_commit():
    """The same commit meets the same faults on every machine; the next one meets others. Without git: those of the day."""
    done = subprocess.run(["git", "-C", os.path.dirname(__file__), "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True)
    return int(done.stdout, 16) if done.returncode == 0 else int(time.time() // 86400)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("ptbuild")
    p.add_argument("--shim", required=True)
    p.add_argument("--seed", type=int, default=seed_of_commit())
    p.add_argument("--rounds", type=int, default=200)
    p.add_argument("--total", action="store_true")
    p.add_argument("--fault", action="append", choices=list(kinds.FAULTS))
    p.add_argument("--only", type=int)
    p.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    args = p.parse_args()
    own_mounts()
    world = World(args.ptbuild)
    failed, spent, done = [], collections.Counter(), collections.Counter()
    start = time.monotonic()
    try:
        todo = chosen(args)
        bench = Bench(world, os.path.abspath(args.shim), {era_of(args.seed, *t) for t in todo})
        print(f"seed {args.seed}, {len(todo)} rounds, {args.workers} workers; ready after {time.monotonic() - start:.0f} s", flush=True)
        tasks, results = multiprocessing.Queue(), multiprocessing.Queue()
        for t in [*todo, *[None] * args.workers]:
            tasks.put(t)
        workers = [multiprocessing.Process(target=worker, args=(bench, args.seed, tasks, results, world.path("rounds"))) for _ in range(args.workers)]
        for w in workers:
            w.start()
        for _ in todo:
            fault, index, story, seconds = results.get(timeout=1800)
            done[fault] += 1
            spent[fault] += seconds
            if story:
                failed.append((fault, index))
                print(f"[  FAILED  ] {story}\n    again: --seed {args.seed} --fault {fault} --only {index}", flush=True)
        for w in workers:
            w.join()
    finally:
        world.close()
    for name in done:
        bad = sum(f == name for f, _ in failed)
        print(f"{name}: {done[name]} rounds, {bad} failed, {spent[name] / done[name]:.1f} s each")
    print(f"[  PASSED  ] {sum(done.values()) - len(failed)} test(s).")
    if failed:
        print(f"[  FAILED  ] {len(failed)} test(s), listed below:\n" + "\n".join(f"[  FAILED  ] {f} {i}" for f, i in failed))
    print(f"seed {args.seed}: {sum(done.values())} rounds in {time.monotonic() - start:.0f} s, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
