#!/usr/bin/env python3
"""Verifies wheels that ptbuild did not make. Downloads about 250 MB (1.2 GB with --large), so it is run by hand, not by ci/test.

usage: foreign_wheels.py PTBUILD [DIRECTORY] [--large]

DIRECTORY keeps the wheels (default: a temporary one). Each wheel must be verified to the end: exit code 0 or 5, a JSON report whose findings have known rules, the same findings a second time, nothing but findings in
--ci lines. What is found is counted by rule; a wheel that nobody claimed anything of may break ptbuild's own rules (DT_RUNPATH), but not those of undefined symbols, and its code is a matter of notes.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time

WHEELS = ["numpy", "scipy", "pillow", "opencv-python-headless", "onnxruntime", "tokenizers", "scikit-learn", "pyarrow", "torchvision==0.21.0", "torchaudio==2.6.0"]
LARGE = ["torch==2.6.0"]
ARM = ["numpy", "torch==2.6.0"]
LINE = re.compile(r"^[^ :]+\.whl(:[^:]+)?: (error|warning|note)\[[a-z-]+\]: .")


def download(directory, requirement, *options):
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d", directory, *options, requirement],
                   check=True)


def verify(ptbuild, wheel, *options):
    done = subprocess.run([ptbuild, "verify", *options, wheel], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 5):
        sys.exit(f"{os.path.basename(wheel)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def check(ptbuild, wheel, rules):
    start = time.monotonic()
    report = json.loads(verify(ptbuild, wheel, "--json"))["wheels"][0]
    seconds = time.monotonic() - start
    lines = verify(ptbuild, wheel, "--ci").splitlines()
    name = os.path.basename(wheel)
    wrong = [line for line in lines if not LINE.match(line)]
    if wrong or len(lines) != len(report["findings"]):
        sys.exit(f"{name}: {len(lines)} lines for {len(report['findings'])} findings {wrong[:3]}")
    for finding in report["findings"]:
        if finding["rule"] not in rules:
            sys.exit(f"{name}: unknown rule {finding['rule']}")
        if finding["level"] == "error" and finding["rule"].startswith(("isa", "undefined", "gpu")):
            sys.exit(f"{name}: {finding['file']}: {finding['text']} [{finding['rule']}]")
    counts = collections.Counter(f"{f['level']} {f['rule']}" for f in report["findings"])
    code = report["code"]
    print(f"{name}\n  {seconds:.1f} s, {code['files']} libraries, {code['functions']} functions, {code['bytes'] / 1e6:.1f} MB of code: "
          + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))


def main():
    arguments = [a for a in sys.argv[1:] if a != "--large"]
    if not arguments:
        sys.exit(__doc__)
    ptbuild = os.path.abspath(arguments[0])
    listed = json.loads(subprocess.run([ptbuild, "verify", "--rules", "--json"], check=True, capture_output=True, text=True).stdout)
    rules = {r["code"] for r in listed["rules"]}
    with tempfile.TemporaryDirectory(prefix="ptbuild-foreign-") as temporary:
        directory = arguments[1] if len(arguments) > 1 else temporary
        for requirement in WHEELS + (LARGE if "--large" in sys.argv else []):
            download(directory, requirement)
        for requirement in ARM:
            download(directory, requirement, "--platform", "manylinux_2_28_aarch64", "--platform", "manylinux_2_27_aarch64", "--python-version", "3.11")
        for name in sorted(os.listdir(directory)):
            if name.endswith(".whl"):
                check(ptbuild, os.path.join(directory, name), rules)


if __name__ == "__main__":
    main()
