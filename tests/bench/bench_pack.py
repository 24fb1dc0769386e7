#!/usr/bin/env python3
"""Packing an unpacked wheel: ptbuild's packer against Python's `wheel pack` and `zip -6`, in turns on the same tree.

usage: bench_pack.py PACK_TREE PTBUILD TREE [ROUNDS]

PACK_TREE is the program of that name (ninja pack_tree), TREE an unpacked wheel with one .dist-info directory (it is copied). Repacking is `PTBUILD repack` of the wheel that was packed.
A ratio above 1 means that ptbuild's packing is faster, or smaller; the last line is the revision's against `wheel pack`. Needs the packages `wheel` (Python) and `zip`; one that is missing is an error.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def timed(command, cwd):
    """Wall seconds and CPU seconds of a command, its children included."""
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"bench_pack: {' '.join(command)} gave {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(name, command, cwd, out):
    for old in os.listdir(out):
        os.unlink(os.path.join(out, old))
    wall, cpu, memory = timed(command, cwd)
    files = [f for f in os.listdir(out) if f.endswith((".whl", ".zip"))]
    if len(files) != 1:
        sys.exit(f"bench_pack: {name} left {files}")
    return {"wall": wall, "cpu": cpu, "memory": memory, "size": os.path.getsize(os.path.join(out, files[0]))}


def tree_size(tree):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(tree) for f in files)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    packer, ptbuild, rounds = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[4]) if len(sys.argv) > 4 else 3
    with tempfile.TemporaryDirectory(prefix="ptbuild-bench-") as top:
        tree, out = os.path.join(top, "tree"), os.path.join(top, "out")
        shutil.copytree(sys.argv[3], tree)
        kept = os.path.join(top, "kept")
        os.mkdir(out)
        os.mkdir(kept)
        infos = [d for d in os.listdir(tree) if d.endswith(".dist-info")]
        if len(infos) != 1:
            sys.exit(f"bench_pack: {sys.argv[3]} has {len(infos)} .dist-info directories, not one")
        version = infos[0][: -len(".dist-info")].split("-", 1)[1]
        sides = {
            "ptbuild": ([packer, tree, version, out], top),
            "wheel pack": ([sys.executable, "-m", "wheel", "pack", tree, "-d", out], top),
            "zip -6": (["zip", "-6", "-q", "-r", os.path.join(out, "a.zip"), "."], tree),
        }
        runs = {name: [] for name in sides}
        for _ in range(rounds):
            for name, (command, cwd) in sides.items():
                runs[name].append(measure(name, command, cwd, out))
                if name == "ptbuild":
                    for file in os.listdir(out):
                        shutil.copy(os.path.join(out, file), kept)
                    wheel = os.path.join(kept, os.listdir(kept)[0])
                    again = [ptbuild, "repack", wheel, "--metadata-rev", "2", "--out", out, "--quiet"]
                    runs.setdefault("repack", []).append(measure("repack", again, top, out))
        print(f"{tree_size(tree) / 1e6:.0f} MB in {sum(len(f) for _, _, f in os.walk(tree))} files, {os.cpu_count()} processors, {rounds} rounds, medians")
        best = {name: {k: statistics.median(r[k] for r in rs) for k in rs[0]} for name, rs in runs.items()}
        ours = best["ptbuild"]
        for name, b in best.items():
            print(
                f"{name:11} wall {b['wall']:7.2f} s  cpu {b['cpu']:7.2f} s  {b['memory']:5.0f} MiB  {b['size']:>11} bytes"
                f"   ratio: wall {b['wall'] / ours['wall']:5.2f}  cpu {b['cpu'] / ours['cpu']:5.2f}  size {b['size'] / ours['size']:.4f}"
            )
        other, again = best["wheel pack"], best["repack"]
        print(f"a revision against wheel pack: wall {other['wall'] / again['wall']:.0f}  cpu {other['cpu'] / again['cpu']:.0f}")


if __name__ == "__main__":
    main()
