#!/usr/bin/env python3
"""A slimmed torch has the machine code of its GPU that the official one has: the same cubins, byte for byte, as NVIDIA's cuobjdump takes them out of both.

usage: test_same_cubins.py CUOBJDUMP TARGET OFFICIAL.whl SLIMMED.whl       TARGET such as sm_90
"""
import collections
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile

LIBRARY = "torch/lib/libtorch_cuda.so"


def cubins(cuobjdump, target, wheel, top):
    """How often each content is there. The files are taken out below `top`, and go again."""
    with tempfile.TemporaryDirectory(dir=top) as folder:
        with zipfile.ZipFile(wheel) as z:
            library = z.extract(LIBRARY, folder)
        out = os.path.join(folder, "out")
        os.mkdir(out)
        subprocess.run([cuobjdump, "-xelf", f"{target}.cubin", library], cwd=out, check=True, stdout=subprocess.DEVNULL)
        count = collections.Counter()
        for name in os.listdir(out):
            with open(os.path.join(out, name), "rb") as f:
                count[hashlib.file_digest(f, "sha256").hexdigest()] += 1
    return count


def main():
    cuobjdump, target, official, slimmed = sys.argv[1:] if len(sys.argv) == 5 else sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as top:
        before, after = (cubins(os.path.realpath(cuobjdump), target, wheel, top) for wheel in (official, slimmed))
    lost, new = before - after, after - before
    print(f"{before.total()} cubins for {target} in the official wheel, {after.total()} in the slimmed one; {lost.total()} lost or changed, {new.total()} new or changed")
    sys.exit(bool(lost or new or not before))


if __name__ == "__main__":
    main()
