#!/usr/bin/env python3
"""The sandbox in containers, by runc: each row of the table of docs/sandbox.md, with its message and its hint; then builds of the fake torch with the flags that work.

usage: test_runc.py PTBUILD      needs root, runc and bubblewrap
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from runc_container import DOCKER, RUNC, TOP, Container, docker_profile, own_profile, podman_profile

PTBUILD = os.path.abspath(sys.argv[1])
TRY = os.path.join(TOP, "ci", "wheel", "try_installed.py")
ADMIN = [*DOCKER, "SYS_ADMIN"]
LESS = ("--without-protection", "processes")
WORKS, PROC, PROFILE, USER = None, "complete /proc", "profiles/container/seccomp.json", "--user 1000"

# The container; options of ptbuild; what the message has; what the hint has.
ROWS = [
    ("runc, root", {}, (), "mount namespace", USER),
    ("runc, user 1000", {"user": 1000}, (), "/proc", PROC),
    ("runc, user 1000, without processes", {"user": 1000}, LESS, WORKS, ""),
    ("runc, root without user", {}, ("--without-protection", "user"), "uid map", USER),
    ("docker, root", {"capabilities": DOCKER, "seccomp": docker_profile(), "new_privileges": True}, (), "keyring", PROFILE),
    ("docker, user 1000", {"user": 1000, "capabilities": DOCKER, "seccomp": docker_profile(), "new_privileges": True}, (), "keyring", PROFILE),
    ("podman, user 1000", {"user": 1000, "capabilities": DOCKER, "seccomp": podman_profile(), "new_privileges": True}, (), "hostname", PROFILE),
    ("profile, root", {"capabilities": DOCKER, "seccomp": own_profile(), "new_privileges": True}, (), "mount namespace", USER),
    ("profile, user 1000", {"user": 1000, "capabilities": DOCKER, "seccomp": own_profile(), "new_privileges": True}, (), "/proc", PROC),
    ("profile, user 1000, without processes", {"user": 1000, "capabilities": DOCKER, "seccomp": own_profile(), "new_privileges": True}, LESS, WORKS, ""),
    ("profile and /proc, user 1000", {"user": 1000, "capabilities": DOCKER, "seccomp": own_profile(), "whole_proc": True, "new_privileges": True}, (), WORKS, ""),
    ("profile and /proc, user 1000, no capabilities", {"user": 1000, "capabilities": [], "seccomp": own_profile(), "whole_proc": True}, (), WORKS, ""),
    ("seccomp off and /proc, user 1000", {"user": 1000, "capabilities": DOCKER, "whole_proc": True, "new_privileges": True}, (), WORKS, ""),
    ("SYS_ADMIN, profile, root", {"capabilities": ADMIN, "seccomp": own_profile(), "new_privileges": True}, (), "/proc", PROC),
    ("SYS_ADMIN, profile and /proc, root", {"capabilities": ADMIN, "seccomp": own_profile(), "whole_proc": True, "new_privileges": True}, (), WORKS, ""),
    ("SYS_ADMIN alone, /proc, root", {"capabilities": [*RUNC, "SYS_ADMIN"], "whole_proc": True}, (), "become the build's user", USER),
]


def doctor(container, options):
    done = container.run(PTBUILD, "doctor", "--profiles", os.path.join(TOP, "profiles"), "--root", "/", "--cache", "/tmp/store", "--out", "/tmp/out", "--json", *options)
    assert done.stdout.startswith("{"), (done.returncode, done.stderr)
    return {row["name"]: row for row in json.loads(done.stdout)["checks"]}


def test_rows():
    for name, given, options, words, hint in ROWS:
        with Container(**given) as container:
            rows = doctor(container, options)
        row = rows["sandbox"]
        got = row["text"] + " -> " + row["fix"]
        if words is WORKS:
            assert row["level"] == "ok", (name, got)
            assert rows["protection processes"]["level"] == ("warning" if options else "ok"), (name, rows["protection processes"])
        else:
            assert row["level"] == "failure" and words in row["text"] and hint in row["fix"], (name, got)
            assert row["fix"].count(" or ") <= 1, (name, row["fix"])
        print(f"{name}: {'works' if words is WORKS else got}", flush=True)


def test_builds():
    """The fake torch is built and verified, with a test build of an extension, with the flags of the manual."""
    for name, given, options in (
        ("profile and /proc", {"whole_proc": True}, ()),
        ("profile, without processes", {}, LESS),
    ):
        with Container(user=1000, capabilities=DOCKER, seccomp=own_profile(), new_privileges=True, **given) as container:
            done = container.run("python3", TRY, PTBUILD, TOP, *options, env=["PYTHONDONTWRITEBYTECODE=1"])
        assert done.returncode == 0, (name, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
        print(f"{name}: the fake torch is built", flush=True)


def test_profile_is_for_all_engines():
    """One file for docker, podman, containerd and runc: only the keys that all of them have."""
    profile = own_profile()
    assert sorted(profile) == ["architectures", "defaultAction", "syscalls"], sorted(profile)
    assert all(sorted(row) == ["action", "errnoRet", "names"] for row in profile["syscalls"])
    refused = {name for row in profile["syscalls"] for name in row["names"]}
    with open(os.path.join(TOP, "driver", "core", "root", "seccomp_linux.c"), encoding="utf-8") as f:
        listed = set(re.findall(r"\w+", " ".join(re.findall(r'\{("[^{}]*?"),\s*E\w+', f.read().split("calls[] = {")[1].split("\n};")[0], re.S))))
    assert refused <= listed, sorted(refused - listed)


def main():
    if os.geteuid() != 0 or not shutil.which("runc"):
        sys.exit("NOT RUN: test_runc needs root and runc")
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            print(f"{name}", flush=True)
            test()
    print("test_runc: passed")


main()
