#!/usr/bin/env python3
"""Which copy of each CPU kernel a torch wheel calls on a processor with all of its instruction set, against another wheel of the same release: the same one, or
one for more. Reads the tables of libtorch_cpu.so alone; nothing runs.

usage: test_dispatch_stubs.py WHEEL OTHER_WHEEL [LIST]

LIST: a file for the list: kernel, the wheel's copy, the other wheel's.
"""
import re
import subprocess
import sys
import tempfile
import zipfile

COPIES = ["none", "DEFAULT", "AVX2", "AVX512"]  # from the least
# _ZN2at6native12DispatchStubI...NS0_35div_true_stub_DECLARE_DISPATCH_typeEE7DEFAULTE
STUB = re.compile(r"^_ZN2at6native12DispatchStubI.*?NS0_\d+(\w+?)_DECLARE_DISPATCH_typeEE\d+(DEFAULT|AVX2|AVX512)E$")


def readelf(path, *words):
    return subprocess.run(["readelf", "-W", *words, path], capture_output=True, text=True, check=True).stdout.splitlines()


def copies(wheel):
    """{kernel: the best copy it has}: a pointer that a relocation fills is a copy, one in a section without bytes is none."""
    with tempfile.TemporaryDirectory() as dir, zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if re.fullmatch(r"torch/lib/libtorch_cpu\.so[\d.]*", n)]
        path = archive.extract(name, dir)
        empty = {m.group(1) for m in (re.match(r"\s*\[\s*(\d+)\] \S+\s+NOBITS\b", line) for line in readelf(path, "-S")) if m}
        filled = {int(m.group(0), 16) for m in (re.match(r"[0-9a-f]{16}", line) for line in readelf(path, "-r")) if m}
        found = {}
        for line in readelf(path, "--dyn-syms"):
            words = line.split()
            m = len(words) >= 8 and words[3] == "OBJECT" and STUB.match(words[7].split("@")[0])
            if not m:
                continue
            has = words[6] not in empty and int(words[1], 16) in filled
            best = found.setdefault(m.group(1), "none")
            if has and COPIES.index(m.group(2)) > COPIES.index(best):
                found[m.group(1)] = m.group(2)
    return found


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    ours, others = copies(sys.argv[1]), copies(sys.argv[2])
    assert others and any(copy != "none" for copy in others.values()), "the other wheel has no stubs"
    if len(sys.argv) == 4:
        with open(sys.argv[3], "w") as f:
            f.writelines(f"{name}\t{ours.get(name, 'absent')}\t{copy}\n" for name, copy in sorted(others.items()))
    worse = [f"{name}: {ours.get(name, 'absent')}, not {copy}" for name, copy in sorted(others.items()) if name not in ours or COPIES.index(ours[name]) < COPIES.index(copy)]
    for which, found in (("the wheel", ours), ("the other", others)):
        print(which, {copy: sum(c == copy for c in found.values()) for copy in COPIES})
    print(f"{len(others)} kernels, {len(worse)} with a lesser copy")
    sys.exit("\n".join(worse) if worse else 0)


main()
