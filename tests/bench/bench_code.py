#!/usr/bin/env python3
"""Examining machine code: ptbuild's scan of a library against `objdump -d` of the same file, in turns.

usage: bench_code.py SCAN_CODE PROFILES LIBRARY [ROUNDS]

SCAN_CODE is the program of that name (ninja scan_code, of a release build), PROFILES the directory of the tables. MB/s are of the executable bytes, by wall time and by processor time;
a ratio above 1 means that ptbuild is faster. Both sides write to nowhere. Also: whether one thread and two find the same.
"""
import os
import statistics
import subprocess
import sys
import time


def timed(command):
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"bench_code: {' '.join(command)} gave {process.returncode}")
    return {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "kib": usage.ru_maxrss}


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    scan, profiles, library = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    ours = [scan, library, profiles]
    found = [subprocess.run([*ours, str(n)], check=True, capture_output=True, text=True).stdout for n in (1, 2)]
    if found[0] != found[1]:
        sys.exit(f"bench_code: one thread finds {found[0]}, two find {found[1]}")
    size, instructions, functions, _ = (int(n) for n in found[0].split())
    print(f"{os.path.basename(library)}: {size / 1e6:.1f} MB of code, {instructions} instructions, {functions} functions")
    sides = {"ptbuild": ours, "ptbuild, 1 thread": [*ours, "1"], "objdump -d": ["objdump", "-d", library]}
    results = {name: [] for name in sides}
    for _ in range(rounds):
        for name, command in sides.items():
            results[name].append(timed(command))
    middle = {n: {k: statistics.median(r[k] for r in rs) for k in rs[0]} for n, rs in results.items()}
    for name, r in middle.items():
        print(f"{name:18} {r['wall']:7.2f} s {size / 1e6 / r['wall']:7.1f} MB/s   processor {r['cpu']:7.2f} s {size / 1e6 / r['cpu']:7.1f} MB/s   "
              f"{r['kib'] / 1024:6.0f} MiB")
    base = middle["objdump -d"]
    for name in ("ptbuild", "ptbuild, 1 thread"):
        print(f"{name}: {base['wall'] / middle[name]['wall']:.1f} x by wall time, {base['cpu'] / middle[name]['cpu']:.1f} x by processor time")


if __name__ == "__main__":
    main()
