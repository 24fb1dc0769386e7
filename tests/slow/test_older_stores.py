#!/usr/bin/env python3
"""One store used in turns by this ptbuild and by older ones, each with its own tables and its own stand-in for PyTorch. Whatever one leaves there, finished or killed, the other builds its wheel with the bytes that it had in a
store of its own; nothing is damaged, and what one keeps, the other's `cache verify` and `cache gc` leave.

    test_older_stores.py PTBUILD OLDER_CHECKOUT...   (each with a build/ptbuild)
"""

import importlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ERA = "setup-py-env"
KILLS = 2


class Program:
    """A ptbuild with the stand-in that its own tests have: `top` is its checkout."""

    def __init__(self, name, ptbuild, top):
        self.name = name
        sys.path.insert(0, os.path.join(top, "tests/e2e"))
        sys.modules.pop("toy", None)
        self.toy = importlib.import_module("toy")
        sys.path.pop(0)
        assert self.toy.__file__.startswith(top)
        self.world = self.toy.World(ptbuild)

    def command(self, *args, cache):
        return [self.world.ptbuild, args[0], "--profiles", self.world.profiles, "--cache", cache, "--out", self.world.out, *args[1:]]

    def run(self, *args, cache):
        return subprocess.run(self.command(*args, cache=cache), capture_output=True, text=True, timeout=600, cwd=self.world.dir)

    def build_words(self):
        return "build", "--profile", "cpu-avx2", "--release", f"2.9.1-{ERA}", "--json"

    def build(self, cache):
        """The wheel's digest, and whether the store had it."""
        shutil.rmtree(self.world.out, ignore_errors=True)
        r = self.run(*self.build_words(), cache=cache)
        assert r.returncode == 0, f"{self.name}: exit {r.returncode}: {r.stderr[-2000:]}"
        item = self.toy.record(r)
        return item["record"]["sha256"], item["store_hit"]

    def killed(self, cache, seconds):
        shutil.rmtree(self.world.out, ignore_errors=True)
        p = subprocess.Popen(self.command(*self.build_words(), cache=cache), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.world.dir)
        try:
            p.wait(seconds)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()

    def checks(self, cache):
        for words in (("cache", "verify"), ("cache", "info"), ("cache", "gc", "--keep-days", "30")):
            r = self.run(*words, cache=cache)
            assert r.returncode == 0, f"{self.name} {words}: exit {r.returncode}: {r.stdout[-500:]} {r.stderr[-1000:]}"


def turns(now, old, top, rng):
    """What `old` and `now` do in one store, in turns."""
    alone, seconds = {}, {}
    for p in (now, old):
        begun = time.monotonic()
        alone[p], _ = p.build(os.path.join(top, "alone-" + p.name))
        seconds[p] = time.monotonic() - begun
    shared = os.path.join(top, "shared")
    for p in (old, now, old, now):
        made, hit = p.build(shared)
        assert made == alone[p], f"{p.name} makes another wheel in a store of both"
        for q in (old, now):
            q.checks(shared)
    assert hit, "the wheel was not found again"
    for _ in range(KILLS):
        for p, q in ((old, now), (now, old)):
            shutil.rmtree(os.path.join(shared, "objects", "wheel"))
            p.killed(shared, rng.random() * seconds[p])
            for r in (q, p):
                assert r.build(shared)[0] == alone[r], f"{r.name} makes another wheel after {p.name} was killed"
            q.checks(shared)
    aside = os.path.join(shared, "quarantine")
    assert not os.path.isdir(aside) or not os.listdir(aside), os.listdir(aside)
    return 4 + 4 * KILLS


def main():
    seed = int(time.time())
    rng, passed, failed = random.Random(seed), 0, []
    print(f"seed {seed}", flush=True)
    now = Program("now", os.path.abspath(sys.argv[1]), os.path.dirname(HERE))
    try:
        for checkout in sys.argv[2:]:
            checkout = os.path.abspath(checkout)
            name = subprocess.run(["git", "-C", checkout, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
            old = Program(name, os.path.join(checkout, "build/ptbuild"), checkout)
            try:
                with tempfile.TemporaryDirectory() as top:
                    builds = turns(now, old, top, rng)
                passed += 1
                print(f"[       OK ] {name}: {builds} builds in turns", flush=True)
            except (AssertionError, OSError, subprocess.SubprocessError) as ex:
                failed.append(name)
                print(f"[  FAILED  ] {name}: {ex}", flush=True)
            finally:
                old.world.close()
    finally:
        now.world.close()
    print(f"[  PASSED  ] {passed} test(s).")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
