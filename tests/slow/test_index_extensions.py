#!/usr/bin/python3
"""Extensions of the Python index that no table names: built twice from one lock, offline the second time, with the same bytes; or refused, with the reason.

usage: test_index_extensions.py PTBUILD PLACE [NAME...]

Their sdists, the store and the wheels go to the directory PLACE and are kept. Against Debian's torch, in the world of Debian 13, for cpu-avx2.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request

from pip._internal.models.index import PyPI

BUILT = "built"
# name, version, sha256 of the sdist, and what becomes of it: the exit status and words of the message, where it is refused
EXTENSIONS = [
    # its sdist lacks a file that its setup.py compiles
    ("fairseq", "0.12.2", "34f1b18426bf3844714534162f065ab733e049597476daa35fffb4d06a92b524", (6, "balanced_assignment.cpp', needed by")),
    ("compressai", "1.2.8", "d90a923694b4b66c3e39bd90316e7f177a620787190ca7550731fc16c1bc7d5e", BUILT),
    ("fastsafetensors", "0.5.0", "2532cd58c779035eeadea4f8da8cd4340ba1d4a1a04753946e4f89aed2043c13", BUILT),
    ("torchlpc", "0.7.2", "260a765645cdf0112d3fcfcebc41d11855ac52264b3185f24068ad873b1b0be3", BUILT),
    ("openpifpaf", "0.13.11", "f15936201fe5180fddda9e42437d4c41d6884e6130387e9e67dfc79240dcc61b", (7, "requires torch==1.13.1, not torch 2.6.0")),
    ("monai", "1.6.1", "e24ae4bb944f1779b7a6445acc4ff2efd9cc504d05dffe2498c49af117350136", (7, "requires torch>=2.8.0, not torch 2.6.0")),
    ("instanttensor", "0.2.2", "aca07c1afe4fde23dcbfb53044e2bef50dad4c0af054317acc669a1c8dc2b325", (7, "requires torch>=2.8.0, not torch 2.6.0")),
    ("torchani", "2.9.0", "fc1ff7df470bf7ffed7e8d7f428db8051dd54622a178577960999a0618f5a297", (7, "has GPU code alone")),
    ("kvcached", "0.1.6", "4a1a428244b5e3667841e28f03a4a20be7066a21a856b2deaef727e18f845068", (6, "kvcached requires torch>=2.10.0, found 2.6.0+debian")),
]


def sdist(place, name, version, sha256):
    """As the index has it, by its digest; pip would run it."""
    with urllib.request.urlopen(f"{PyPI.simple_url}/{name}/", timeout=60) as answer:
        page, base = answer.read().decode(), answer.url
    found = re.search(f'href="([^"#]+)#sha256={sha256}"', page)
    assert found, f"the index has no {name} {version} of that digest"
    url = urllib.parse.urljoin(base, found[1])
    path = os.path.join(place, os.path.basename(url))
    if not os.path.exists(path):
        with urllib.request.urlopen(url, timeout=600) as answer:
            data = answer.read()
        assert hashlib.sha256(data).hexdigest() == sha256, name
        with open(path, "wb") as f:
            f.write(data)
    return path


def build(ptbuild, place, source, *args):
    command = [ptbuild, "build", "--extension", source, "--profile", "cpu-avx2", "--torch", "root", "--cache", os.path.join(place, "store"), "--out", os.path.join(place, "dist"), "--json", *args]
    return subprocess.run(command, capture_output=True, text=True)


def digest(r):
    (item,) = json.loads(r.stdout)
    return item["record"]["sha256"], item["wheel"]


def look(ptbuild, place, name, version, sha256, expected):
    source = sdist(place, name, version, sha256)
    r = build(ptbuild, place, source)
    if expected != BUILT:
        status, words = expected
        return None if (r.returncode, words in r.stderr) == (status, True) else r.stderr
    if r.returncode:
        return r.stderr
    first, wheel = digest(r)
    lock = next((os.path.join(top, "requirements.txt") for top, _, names in os.walk(os.path.join(place, "dist")) if "requirements.txt" in names and os.path.basename(top).startswith(f"{name}-")), None)
    shutil.rmtree(os.path.join(place, "store", "objects", "wheel"))
    r = build(ptbuild, place, source, "--offline", *(["--requirements", lock] if lock else []))
    if r.returncode:
        return r.stderr
    print(f"{name} {version}: {os.path.basename(wheel)}, {'locked' if lock else 'nothing to lock'}", flush=True)
    return None if digest(r)[0] == first else f"other bytes: {digest(r)[0]} and {first}"


def main():
    ptbuild, place, *names = sys.argv[1:]
    os.makedirs(place, exist_ok=True)
    failed = 0
    for name, *rest in EXTENSIONS:
        why = look(ptbuild, place, name, *rest) if not names or name in names else None
        if why:
            failed += 1
            print(f"{name}: {why}", file=sys.stderr)
    sys.exit(failed > 0)


main()
