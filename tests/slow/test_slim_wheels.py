#!/usr/bin/env python3
"""CUDA wheels of many makers, cut to one GPU: how large each is unpacked, and that verify says nothing of it that it does not say of the wheel as it was. tests/data/slim_wheels.tsv has file, sha256, GPU, and the bytes unpacked before and after.

usage: test_slim_wheels.py PTBUILD VENV_BIN CACHE_DIR [WORD...] (WORD: of the files' names; without any, all: 0.7 GB)
"""
import json
import os
import subprocess
import sys
import tempfile

import test_foreign_wheels

HERE = os.path.dirname(os.path.realpath(__file__))


def findings(program, wheel):
    report = json.loads(subprocess.run([program, "verify", wheel, "--json"], stdout=subprocess.PIPE).stdout)["wheels"][0]
    return {(f["level"], f["rule"], f["file"].split(".dist-info/")[-1]) for f in report["findings"]}


def check(program, wheel, gpu, before, after):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(wheel)) as out:
        made = json.loads(subprocess.run([program, "slim", wheel, "--gpu", gpu, "--out", out, "--json"], stdout=subprocess.PIPE, check=True).stdout)["wheels"][0]
        new = findings(program, made["wheel"]) - findings(program, wheel)
        sizes = made["unpacked_before"], made["unpacked"]
    # METADATA, the bill of materials and the marker name the version of ptbuild.
    return [f"new findings {sorted(new)}"] * bool(new) + [f"{sizes} bytes"] * (sizes[0] != before or abs(sizes[1] - after) > 4096)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, bin_dir, cache, *words = sys.argv[1:]
    os.makedirs(cache, exist_ok=True)
    failed = 0
    for line in open(os.path.join(HERE, "../data/slim_wheels.tsv")):
        if line.startswith("#") or (words and not any(w in line for w in words)):
            continue
        name, sha256, gpu, before, after = line.rstrip("\n").split("\t")
        wrong = check(program, test_foreign_wheels.download(bin_dir, cache, name, sha256), gpu, int(before), int(after))
        failed += bool(wrong)
        print(f"{'FAILED' if wrong else 'ok'} {name} for {gpu} {'; '.join(wrong)}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
