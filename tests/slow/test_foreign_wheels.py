#!/usr/bin/env python3
"""What verify says of wheels that others made; the table says which findings were looked at with another reader: tests/data/foreign_wheels.tsv has file, sha256, and the findings that are true, as LEVEL[RULE]xCOUNT. A finding more is a false one, one less is missed.

usage: test_foreign_wheels.py PTBUILD VENV_BIN CACHE_DIR [WORD...] (WORD: of the files' names; without any, all: 2.5 GB)

Beside it auditwheel judges the same wheels: its platform tag must be ptbuild's, or ptbuild names the library that it takes exception to; the last line but one has the time of both as a ratio.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter

import test_tags

HERE = os.path.dirname(os.path.realpath(__file__))


def rows(words):
    for line in open(os.path.join(HERE, "../data/foreign_wheels.tsv")):
        if not line.startswith("#"):
            name, sha256, findings = line.rstrip("\n").split("\t")
            if not words or any(w in name for w in words):
                yield name, sha256, findings


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def download(bin_dir, cache, name, sha256):
    path = os.path.join(cache, name)
    if not os.path.exists(path):
        dist, version, python, abi, platform = name[:-4].split("-")
        number = re.search(r"(\d)(\d*)", python.split(".")[-1]).groups()
        command = [os.path.join(bin_dir, "python"), "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "-d", cache]
        if platform != "any":
            command += ["--implementation", "cp", "--python-version", number[0] + "." + (number[1] or "13")]
            command += [a for p in platform.split(".") for a in ("--platform", p)] + [a for b in abi.split(".") for a in ("--abi", b)]
        subprocess.run([*command, f"{dist}=={version}"], check=True)
    if digest(path) != sha256:
        raise AssertionError(f"'{path}' has another sha256 than the table")
    return path


def said(report):
    found = Counter(f"{f['level']}[{f['rule']}]" for f in report["findings"] if f["level"] != "note")
    return " ".join(f"{k}x{n}" for k, n in sorted(found.items())) or "-"


def agrees(tag, report):
    """Both have one tag; or auditwheel has none (linux), and ptbuild has told why. ptbuild computes none for musl, for static programs, and for machines without policies."""
    told = {f["rule"] for f in report["findings"]}
    if tag is None or tag.startswith("musllinux_") or report["honest_platform"] in ("", "any"):
        return True
    return test_tags.normal(tag) == report["honest_platform"] or (tag.startswith("linux_") and bool(told & {"needed", "tag", "elf"}))


def audit(bin_dir, path):
    try:
        return test_tags.auditwheel(bin_dir, path)
    except (AssertionError, subprocess.CalledProcessError):
        return None


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, bin_dir, cache, *words = sys.argv[1:]
    os.makedirs(cache, exist_ok=True)
    passed, failed, ours, theirs = 0, [], 0.0, 0.0
    for name, sha256, want in rows(words):
        path = download(bin_dir, cache, name, sha256)
        start = time.monotonic()
        report = test_tags.ptbuild(program, path)
        middle = time.monotonic()
        tag = audit(bin_dir, path) if "linux" in name else None
        if tag:
            ours, theirs = ours + middle - start, theirs + time.monotonic() - middle
        got = said(report)
        ok = got == want and agrees(tag, report)
        print(f"[{'       OK ' if ok else '  FAILED  '}] {name}: {got}" + ("" if ok else f" (want {want}; {report['honest_platform']}, auditwheel {tag})"), flush=True)
        passed += ok
        failed += [] if ok else [name]
    if theirs:
        print(f"verify took {ours:.1f} s, auditwheel {theirs:.1f} s: ratio {ours / theirs:.2f}")
    print(f"[  PASSED  ] {passed} test(s).")
    if failed:
        print(f"[  FAILED  ] {len(failed)} test(s): {' '.join(failed)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
