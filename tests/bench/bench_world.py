#!/usr/bin/env python3
"""A world, and the steps from its torch to a wheel that is verified: ptbuild against the programs that a person would use, in turns.

usage: bench_world.py PTBUILD CACHE WORLD [ROUNDS]

CACHE is a store that has all packages of WORLD (it is only read: each run has a store of its own, with copies of them). By hand the packages are unpacked by
`dpkg-deb -x`, one for each processor, and their modules compiled by `compileall`, then on the same number of them; nothing is hashed, and what the world has
from wheels is left out. Where the world has a torch, `ptbuild capture` follows, whose steps are told, beside `wheel pack` of the same files and `pip install` of
what it packed. No tree is removed before the end: ext4 looks for minutes at the inodes that were given back lately before it gives out a new one.
A ratio above 1 means that ptbuild is faster. Needs bubblewrap, dpkg-deb and the Python package `wheel`.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

COMPILE = ["python3", "-I", "-m", "compileall", "-q", "-j", str(os.cpu_count()), "-x", "/tests?/", "/usr/lib/python3", "/usr/lib/python3.13"]


def timed(command, fails=False):
    """Wall and processor seconds of a command and its children, and what it wrote."""
    start, before = time.monotonic(), os.times()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL if fails else None)
    if done.returncode and not fails:
        sys.exit(f"bench_world: {' '.join(command[:4])}... gave {done.returncode}")
    after = os.times()
    return time.monotonic() - start, after[2] - before[2] + after[3] - before[3], done.stdout


def packages(ptbuild, cache, world):
    """The files of the store that the world is made of."""
    lines = json.loads(subprocess.run([ptbuild, "world", "show", world, "--json", "--cache", cache], stdout=subprocess.PIPE, check=True).stdout)
    keys = {f["sha256"] for f in walk(lines) if "sha256" in f}
    found = {k: os.path.join(cache, "objects/source", k) for k in keys if os.path.isdir(os.path.join(cache, "objects/source", k))}
    if not found or len(found) < len(keys):
        sys.exit(f"bench_world: '{cache}' has {len(found)} of the {len(keys)} files of '{world}'")
    return found


def walk(node):
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    for below in node if isinstance(node, list) else ():
        yield from walk(below)


def new_store(top, number, found):
    store = os.path.join(top, f"store{number}")
    for key, path in found.items():
        shutil.copytree(path, os.path.join(store, "objects/source", key))
    with open(os.path.join(store, "format"), "w") as f:
        f.write("ptbuild store 1\n")
    return store


def by_hand(root, found):
    debs = "\0".join(os.path.join(p, f) for p in found.values() for f in os.listdir(p) if f.endswith(".deb"))
    for name in ("bin", "sbin", "lib", "lib64"):
        os.makedirs(os.path.join(root, "usr", name))
        os.symlink(f"usr/{name}", os.path.join(root, name))
    with open(root + ".list", "w") as f:
        f.write(debs)
    unpack = timed(["xargs", "-0", "-a", root + ".list", "-n", "1", "-P", str(os.cpu_count()), "sh", "-c", 'dpkg-deb --fsys-tarfile "$1" | tar -xC "$0" --keep-directory-symlink', root])
    # A file that is no Python of this version is not the end.
    modules = timed(["bwrap", "--bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--"] + COMPILE, fails=True)
    return unpack[0] + modules[0], unpack[1] + modules[1]


def tail(ptbuild, top, store, world):
    """The steps from a torch that is there to a verified wheel, and the same files by wheel and pip."""
    out, tree, env = (os.path.join(top, d) for d in ("dist", "tree", "env"))
    timed([ptbuild, "capture", "pytorch", "--root", f"world:{world}", "--offline", "--cache", store, "--out", out, "--quiet"])
    wheel = os.path.join(out, next(f for f in os.listdir(out) if f.endswith(".whl")))
    record = next(os.path.join(d, "build.json") for d, _, files in os.walk(out) if "build.json" in files)
    with open(record) as f:
        steps = json.load(f)["steps"]
    for s in steps:
        print(f"  {s['step']:12} wall {s['seconds']:6.1f} s  cpu {s.get('cpu_seconds', 0):6.1f} s")
    print(f"  {'together':12} wall {sum(s['seconds'] for s in steps):6.1f} s")
    subprocess.run([sys.executable, "-m", "wheel", "unpack", "-d", tree, wheel], check=True, stdout=subprocess.DEVNULL)
    pack = timed([sys.executable, "-m", "wheel", "pack", os.path.join(tree, os.listdir(tree)[0]), "-d", tree])
    subprocess.run([sys.executable, "-m", "venv", env], check=True)
    install = timed([os.path.join(env, "bin/pip"), "install", "-q", "--no-deps", "--no-index", "--no-compile", "--target", os.path.join(top, "site"), "--python-version", "3.13", "--only-binary", ":all:",
                     "--platform", "manylinux_2_39_x86_64", "--disable-pip-version-check", wheel])
    print(f"by hand: wheel pack wall {pack[0]:.1f} s  cpu {pack[1]:.1f} s, pip install --no-compile wall {install[0]:.1f} s  cpu {install[1]:.1f} s")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    ptbuild, cache, world, rounds = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 3
    found = packages(ptbuild, cache, world)
    runs = {"ptbuild": [], "by hand": []}
    with tempfile.TemporaryDirectory(prefix="ptbuild-bench-") as top:
        for i in range(rounds):
            store = new_store(top, i, found)
            runs["ptbuild"].append(timed([ptbuild, "world", "make", world, "--offline", "--cache", store, "--quiet"])[:2])
            runs["by hand"].append(by_hand(os.path.join(top, f"root{i}"), found))
        best = {name: [statistics.median(r[k] for r in rs) for k in (0, 1)] for name, rs in runs.items()}
        print(f"{world}: {len(found)} files, {os.cpu_count()} processors, {rounds} rounds, medians")
        for name, (wall, cpu) in best.items():
            print(f"{name:8} wall {wall:6.1f} s  cpu {cpu:6.1f} s   ratio: wall {wall / best['ptbuild'][0]:5.2f}  cpu {cpu / best['ptbuild'][1]:5.2f}")
        made = os.path.join(store, "worlds")
        if os.path.isdir(os.path.join(made, os.listdir(made)[0], "root/usr/lib/python3/dist-packages/torch")):
            print("from the torch of the last world to a wheel:")
            tail(ptbuild, top, store, world)


if __name__ == "__main__":
    main()
