#!/usr/bin/python3
"""Compares ptbuild's reader of GPU code with NVIDIA's cuobjdump: the same entries for every file named.

    compare_cuobjdump.py FATBIN_LIST CUOBJDUMP FILE...

FATBIN_LIST is the program of that name from the build tree. What cuobjdump has no list for (intermediate code) is shown, not compared.
Exit status: 0 all equal, 1 not, 2 usage.
"""
import collections
import re
import subprocess
import sys


def ours(program, path):
    out = subprocess.run([program, path], capture_output=True, text=True)
    if out.returncode:
        raise SystemExit(f"{path}: {out.stderr.strip()}")
    return [tuple(line.split(" ")[:2]) for line in out.stdout.splitlines() if not line.startswith("LTO")], out.stdout


def theirs(program, path):
    lists = {}
    for kind, option in (("cubin", "-lelf"), ("PTX", "-lptx")):
        out = subprocess.run([program, "-all", option, path], capture_output=True, text=True)
        lists[kind] = [f"sm_{m}" for m in re.findall(r"(?m)^(?:ELF|PTX) file +\d+: .*\.sm_([0-9a-z]+)\.(?:cubin|ptx)$", out.stdout)]
    return lists


def main():
    if len(sys.argv) < 4:
        print(__doc__)
        return 2
    bad = 0
    for path in sys.argv[3:]:
        entries, text = ours(sys.argv[1], path)
        reference = theirs(sys.argv[2], path)
        # cuobjdump names a cubin for a family (sm_100f) without its letter, though PTX with it.
        mine = {kind: [t.rstrip("f") if kind == "cubin" else t for k, t in entries if k == kind] for kind in ("cubin", "PTX")}
        others = [e for e in entries if e[0] not in mine]
        # Of a file with linked and unlinked code cuobjdump goes through the sections in another order.
        same = all(sorted(mine[k]) == sorted(reference[k]) for k in mine) and not others
        bad += not same
        count = collections.Counter(f"{k} {t}" for k, t in entries)
        print(f"{'equal' if same else 'DIFFERENT'}  {path}: {len(mine['cubin'])} cubins, {len(mine['PTX'])} PTX, {text.count('LTO code')} LTO")
        if not same:
            for kind in mine:
                a, b = collections.Counter(mine[kind]), collections.Counter(reference[kind])
                print(f"  {kind}: only here {dict(a - b)}, only there {dict(b - a)}")
            print(f"  of other kinds: {dict(collections.Counter(others))}; all: {dict(count)}")
    return 1 if bad else 0


sys.exit(main())
