#!/usr/bin/env python3
"""The platform tag that ptbuild computes against the one of `auditwheel show`, on wheels of the Python index, for x86_64 and aarch64.

usage: test_tags.py PTBUILD VENV_BIN CACHE_DIR

The wheels (about 60 MB) are downloaded once into CACHE_DIR.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

X86 = """
aiohttp==3.11.11 bcrypt==4.2.1 bitarray==3.0.0 brotli==1.1.0 cffi==1.17.1 cryptography==44.0.0 frozenlist==1.5.0 greenlet==3.1.1 httptools==0.6.4
kiwisolver==1.4.8 lxml==5.3.0 lz4==4.3.3 markupsafe==3.0.2 msgpack==1.1.0 multidict==6.1.0 orjson==3.10.13 pillow==11.1.0 psutil==6.1.1 pyyaml==6.0.2
pyroaring==1.2.0 pyzmq==26.2.0 rapidfuzz==3.11.0 regex==2024.11.6 shiboken6==6.8.1 torchcodec==0.2.0 ujson==5.10.0 uvloop==0.21.0 wrapt==1.17.0 xxhash==3.5.0
zstandard==0.23.0
""".split()
ARM = """
bcrypt==4.2.1 cffi==1.17.1 cryptography==44.0.0 greenlet==3.1.1 kiwisolver==1.4.8 markupsafe==3.0.2 msgpack==1.1.0 orjson==3.10.13 pillow==11.1.0 pyyaml==6.0.2
pyroaring==1.2.0 shiboken6==6.8.1 ujson==5.10.0 xxhash==3.5.0
""".split()
# The policies that ptbuild's table has no rows for (glibc 2.5 and 2.12): it says 2.17 there, the lowest it has.
BELOW = {"manylinux_2_5", "manylinux_2_12"}


def download(bin_dir, cache, machine, requirement):
    folder = os.path.join(cache, machine, requirement)
    if not os.path.isdir(folder) or not os.listdir(folder):
        tags = [f"{t}_{machine}" for t in ("manylinux2014", "manylinux_2_39", "manylinux_2_36", "manylinux_2_35", "manylinux_2_34", "manylinux_2_31", "manylinux_2_28", "manylinux_2_27", "manylinux_2_24", "manylinux_2_17", "manylinux_2_12", "manylinux_2_5", "manylinux1")]
        platforms = [a for t in tags for a in ("--platform", t)]
        command = [os.path.join(bin_dir, "python"), "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--python-version", "3.11", *platforms, "-d", folder, requirement]
        subprocess.run(command, check=True)
    return os.path.join(folder, os.listdir(folder)[0])


def auditwheel(bin_dir, wheel):
    env = {**os.environ, "COLUMNS": "1000"}
    out = subprocess.run([os.path.join(bin_dir, "auditwheel"), "show", wheel], capture_output=True, text=True, check=True, env=env).stdout
    text = " ".join(out.split())
    found = re.search(r'is consistent with the following platform tag: "([^"]+)"', text)
    if not found:
        raise AssertionError(f"auditwheel says no tag of {wheel}: {text}")
    return found.group(1)


def ptbuild(program, wheel):
    result = subprocess.run([program, "verify", "--json", wheel], capture_output=True, text=True)
    if result.returncode not in (0, 5):
        raise AssertionError(f"exit {result.returncode} for {wheel}: {result.stderr}")
    return json.loads(result.stdout)["wheels"][0]


def normal(tag):
    policy = re.match(r"(manylinux_\d+_\d+)_(.*)$", tag)
    return f"manylinux_2_17_{policy.group(2)}" if policy and policy.group(1) in BELOW else tag


def judge(theirs, report):
    """Both say the same; where auditwheel gives no policy for a library that lies outside, ptbuild names the library instead."""
    errors = [f for f in report["findings"] if f["level"] == "error"]
    told = [f for f in report["findings"] if f["rule"] == "needed"]
    if theirs.startswith("linux_") and report["honest_platform"] != theirs:
        return bool(told)
    return normal(theirs) == report["honest_platform"] and not any(f["rule"] == "tag" for f in errors)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    program, bin_dir, cache = sys.argv[1:]
    wanted = [("x86_64", r) for r in X86] + [("aarch64", r) for r in ARM]
    with ThreadPoolExecutor(4) as pool:
        wheels = list(pool.map(lambda w: download(bin_dir, cache, *w), wanted))
    passed, failed = 0, []
    for (machine, requirement), wheel in zip(wanted, wheels):
        theirs, report = auditwheel(bin_dir, wheel), ptbuild(program, wheel)
        ok = judge(theirs, report)
        print(f"[{'       OK ' if ok else '  FAILED  '}] {requirement} {machine}: {report['honest_platform']} (auditwheel: {theirs})", flush=True)
        passed += ok
        failed += [] if ok else [requirement]
    print(f"[  PASSED  ] {passed} test(s).")
    if failed:
        print(f"[  FAILED  ] {len(failed)} test(s): {' '.join(failed)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
