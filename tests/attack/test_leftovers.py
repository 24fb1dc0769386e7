#!/usr/bin/env python3
"""What a kill leaves in a directory of the user's goes with the next run of the same command, and what another process is writing there does not.

    PTBUILD_KILL_ROUNDS=100 test_leftovers.py PTBUILD [TEST...]
"""

import contextlib
import hashlib
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import toy  # noqa: E402
from test_slim import cut, official, pack  # noqa: E402
from wheelsite import make_wheel  # noqa: E402

ROUNDS = int(os.environ.get("PTBUILD_KILL_ROUNDS", "5"))
TAIL = f"-cp313-cp313-manylinux_2_28_{os.uname().machine}.whl"


def state(top):
    """Names, kinds and bytes of all that is below; a lock holds the number of a process."""
    found = {}
    for folder, dirs, names in os.walk(top):
        for name in dirs + names:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            data = open(path, "rb").read() if stat.S_ISREG(mode) else os.readlink(path) if stat.S_ISLNK(mode) else ""
            found[os.path.relpath(path, top)] = (stat.S_IFMT(mode), hashlib.sha256(data).hexdigest() if data and not name.endswith(".lock") else "")
    return found


def rounds(world, name, command, start):
    """`start` makes the directory as it is before the first run. What is left by each kill is met by the next run, as it would be by a user's."""
    out, rng, hit = world.path(name), random.Random(3), 0
    start(out)
    began = time.monotonic()
    done = world.run(*command(out))
    seconds = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    whole = state(out)
    for turn in range(ROUNDS):
        shutil.rmtree(out)
        start(out)
        for kill in range(rng.randint(1, 3)):
            process = subprocess.Popen(world.command(*command(out)), cwd=world.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0, seconds * 1.2))
            process.send_signal(signal.SIGKILL)
            process.wait()
            hit += any(".ptbuild-" in n for n in set(state(out)) - set(whole))
        done = world.run(*command(out))
        assert done.returncode == 0, (turn, done.stderr)
        now = state(out)
        more, less = sorted(set(now) - set(whole)), sorted(set(whole) - set(now))
        assert not more and not less, (turn, more, less)
        assert now == whole, (turn, [n for n in now if now[n] != whole[n]])
    print(f"{name}: {ROUNDS} rounds, after {hit} kills something was left")


def with_wheels(world):
    def start(out):
        os.makedirs(out)
        for version in ("2.6.0+cpu.avx2", "2.6.0+cpu.avx512"):
            make_wheel(out, "torch", version, marked=True)

    return start


def test_repack_after_kills_leaves_nothing_else(world):
    wheel = cut(world, official(world), "--gpu", "sm90", "--out", world.path("marked"))[0]["wheel"]
    rounds(world, "repacked", lambda out: ("repack", wheel, "--metadata-rev", "2", "--out", out), os.makedirs)


def test_index_after_kills_leaves_nothing_else(world):
    rounds(world, "indexed", lambda out: ("index", out), with_wheels(world))


def test_index_variants_after_kills_leaves_nothing_else(world):
    rounds(world, "varied", lambda out: ("index", out, "--variants"), with_wheels(world))


def test_slim_after_kills_leaves_nothing_else(world):
    rounds(world, "slimmed", lambda out: ("slim", official(world), "--gpu", "sm90,sm80", "--out", out), os.makedirs)


def test_slim_env_after_kills_leaves_nothing_else(world):
    def start(env):
        site = f"{env}/lib/python3.13/site-packages"
        os.makedirs(site)
        with zipfile.ZipFile(official(world)) as z:
            z.extractall(site)

    rounds(world, "env", lambda env: ("slim", "--env", env, "--gpu", "sm90"), start)


def test_set_after_kills_leaves_nothing_else(world):
    """By the shipped tables, whose wheels are of this test."""
    mirror, profiles, rows = world.path("mirror"), world.path("shipped"), ""
    os.makedirs(mirror)
    shutil.copytree(os.path.join(toy.TOP, "profiles"), profiles)
    with zipfile.ZipFile(official(world)) as z:
        files = {n: z.read(n) for n in z.namelist() if not n.endswith("RECORD")}
    info = "torchvision-0.24.1.dist-info"
    vision = {
        "torchvision/__init__.py": b"",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: torchvision\nVersion: 0.24.1\n\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: {TAIL[1:-4]}\n".encode(),
    }
    for name, content, cuda in ((f"torch-2.9.1{TAIL}", files, "12.8"), (f"torchvision-0.24.1{TAIL}", vision, "-")):
        path = os.path.join(mirror, name)
        pack(path, content)
        with open(path, "rb") as f:
            data = f.read()
        rows += f"{name} {hashlib.sha256(data).hexdigest()} {len(data)} {cuda}\n"
    with open(os.path.join(profiles, "official", "2.9.1"), "w") as f:
        f.write("ptbuild official 1\n" + rows)
    with open(world.path("bundle.yaml"), "w") as f:
        f.write("profile: sm90-avx2\npython: '3.13'\ntorch: slim==2.9.1\ncompanions: [torchvision]\n")
    rounds(world, "bundle", lambda out: ("bundle", world.path("bundle.yaml"), "--profiles", profiles, "--mirror", mirror, "--out", out), os.makedirs)


def test_several_slim_into_one_directory_succeed(world):
    """None takes what another has just made."""
    out, wheel = world.path("shared"), official(world)
    whole = None
    for turn in range(max(ROUNDS // 4, 2)):
        shutil.rmtree(out, ignore_errors=True)
        with contextlib.ExitStack() as stack:
            several = [stack.enter_context(subprocess.Popen(world.command("slim", wheel, "--gpu", gpu, "--out", out), cwd=world.dir, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)) for gpu in ("sm90", "sm80", "sm120", "sm90") * 4]
            told = [p.communicate()[1] for p in several]
        assert {p.returncode for p in several} == {0}, told
        whole = whole or sorted(os.listdir(out))
        assert sorted(os.listdir(out)) == whole and len(whole) == 9, whole


if __name__ == "__main__":
    toy.main([f for n, f in sorted(globals().items()) if n.startswith("test_")])
