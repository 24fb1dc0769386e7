#!/usr/bin/env python3
"""An official torch and every GPU of the tables: slim makes a wheel exactly where cuobjdump lists code for it in libtorch_cuda.so.

usage: test_slim_gpus.py PTBUILD CUOBJDUMP WHEEL... (cuobjdump is in the triton wheel, too)
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

GPUS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../profiles/gpu.yaml")


def gpus():
    rows = re.findall(r'- \{sm: "(\d+)"(.*)', open(GPUS).read())
    return [int(sm) for sm, _ in rows], {int(sm) for sm, rest in rows if "tegra: true" in rest}


def held(cuobjdump, library):
    """How many fat binaries' images of each target: the listing has one line for each."""
    count = collections.Counter()
    for option in ("-lelf", "-lptx"):
        out = subprocess.run([cuobjdump, "-all", option, library], capture_output=True, text=True).stdout
        count.update((option, m) for m in re.findall(r"(?m)^(?:ELF|PTX) file +\d+: .*\.sm_([0-9a-z]+)\.(?:cubin|ptx)$", out))
    return count


def truth(count, gpu, chips):
    cubins = [int(t) for (kind, t), _ in count.items() if kind == "-lelf" and t.isdigit()]
    ptx = [int(t) for (kind, t), _ in count.items() if kind == "-lptx" and t.isdigit()]
    same = [c for c in cubins if c == gpu or (c < gpu and c // 10 == gpu // 10 and c not in chips)]
    return bool(same) or any(p <= gpu for p in ptx)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, cuobjdump, failed = sys.argv[1], sys.argv[2], 0
    known, chips = gpus()
    for wheel in sys.argv[3:]:
        with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.realpath(wheel))) as top:
            with zipfile.ZipFile(wheel) as z:
                library = z.extract("torch/lib/libtorch_cuda.so", top)
            count = held(cuobjdump, library)
            os.unlink(library)
            for gpu in known:
                out = os.path.join(top, "out")
                done = subprocess.run([program, "slim", wheel, "--gpu", f"sm{gpu}", "--out", out, "--json"], capture_output=True, text=True)
                made = bool(done.stdout) and len(json.loads(done.stdout)["wheels"]) == 1
                files = [os.path.join(out, n) for n in os.listdir(out)] if os.path.isdir(out) else []
                right = made == truth(count, gpu, chips) and done.returncode == (0 if made else 7) and bool(files) == made
                failed += not right
                print(f"{'ok' if right else 'FAILED'} {os.path.basename(wheel)} sm{gpu}: {'a wheel' if made else 'refused'}", flush=True)
                for path in files:
                    os.unlink(path)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
