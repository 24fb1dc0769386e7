#!/usr/bin/env python3
"""'ptbuild slim --env' on an environment that somebody else may write: links out of it, and files that are exchanged while it is at work. As root the other is a user of this test's own; as a
user it is the user, and what is outside is the user's too.

    PTBUILD_RACE_SECONDS=600 test_environments.py PTBUILD [TEST...]
"""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import toy  # noqa: E402
from test_slim import check_record, official, state, used  # noqa: E402
import zipfile  # noqa: E402

SECONDS = float(os.environ.get("PTBUILD_RACE_SECONDS", "4"))
ROOT = os.geteuid() == 0
os.umask(0o022)  # modes are looked at
OTHER = 12345 if ROOT else os.geteuid()
INFO = "torch-2.9.1.dist-info"
SITE = "lib/python3.13/site-packages"
LIBRARY = "torch/lib/libtorch_cuda.so"

# A directory and a link to another are exchanged (RENAME_EXCHANGE) at random times, or a file and a link, each made anew, as what is cut takes the place of either. While all is in its place,
# what is to be cut is made again from its original.
RACER = """
import ctypes, os, random, stat, sys, time
libc = ctypes.CDLL(None, use_errno=True)
name, other, *pairs = (os.fsencode(a) for a in sys.argv[1:])
rng, turns, parent, target = random.Random(os.getpid()), 0, os.getppid(), os.readlink(other)

def put(make, source, to):
    st = os.lstat(to) if os.path.lexists(to) else os.lstat(b".")
    if stat.S_ISREG(st.st_mode) and (st.st_mode & 0o7000 or st.st_uid != os.geteuid()):
        os.rename(to, other + b".caught")
    make(source, other + b".new")
    os.rename(other + b".new", to)
    if os.path.lexists(other + b".new"):  # two names of one file stay
        os.unlink(other + b".new")

while os.getppid() == parent:
    turns += 1
    if name not in pairs:
        assert libc.renameat2(-100, name, -100, other, 2) == 0, ctypes.get_errno()
    elif turns % 2:
        put(os.symlink, target, name)
    if turns % 2 == 0 and (name in pairs or rng.random() < 0.3):
        for to, original in zip(pairs[::2], pairs[1::2]):
            put(os.link, original, to)
    if turns % 2 == 0 or rng.random() < 0.5:  # between a look and a use there is little time
        time.sleep(10 ** rng.uniform(-6, -2))
"""


class Place:
    """An environment of the other's, and a directory that is none of its business: a setuid program, a RECORD, and an environment."""

    def __init__(self, world):
        self.world = world
        self.top = tempfile.mkdtemp(prefix="ptbuild-attack-")
        os.chmod(self.top, 0o755)
        self.own, self.victim = os.path.join(self.top, "own"), os.path.join(self.top, "victim")
        self.env, self.original = os.path.join(self.own, "env"), os.path.join(self.own, "original")
        self.site = os.path.join(self.env, SITE)
        for site in (self.site, os.path.join(self.victim, SITE)):
            os.makedirs(site)
            with zipfile.ZipFile(official(world)) as z:
                z.extractall(site)
        open(os.path.join(self.env, "pyvenv.cfg"), "w").close()
        shutil.copy(os.path.join(self.site, LIBRARY), self.original)
        shutil.copytree(os.path.join(self.site, INFO), os.path.join(self.victim, INFO))
        self.program = os.path.join(self.victim, "program")
        shutil.copy("/bin/true", self.program)
        os.chmod(self.program, 0o6755)
        shutil.copy(os.path.join(self.site, INFO, "RECORD"), self.original + "-record")
        if ROOT:
            for folder, dirs, names in os.walk(self.own):
                for name in [folder, *(os.path.join(folder, n) for n in names)]:
                    os.lchown(name, OTHER, OTHER)
        self.before = self.outside()

    def outside(self):
        found = {}
        for folder, dirs, names in os.walk(self.victim):
            for name in dirs + names:
                path = os.path.join(folder, name)
                st = os.lstat(path)
                found[os.path.relpath(path, self.victim)] = (st.st_ino, st.st_mode, st.st_uid, st.st_size, st.st_mtime_ns)
        return found

    def check(self):
        assert self.outside() == self.before, "something outside of the environment was changed"
        # By descriptor: what is a directory now may be a link in a moment.
        for folder, _, names, fd in os.fwalk(self.own, follow_symlinks=False):
            for name in names:
                try:
                    st = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                assert not stat.S_ISREG(st.st_mode) or not st.st_mode & 0o7000, f"{folder}/{name} has the mode {st.st_mode:o}"
                # A fresh file is root's until it is finished.
                assert st.st_uid == OTHER or name.startswith(".ptbuild-"), f"{folder}/{name} belongs to user {st.st_uid}"

    def slim(self, *args, env=None, gpu="sm90"):
        return self.world.run("slim", "--env", env or self.env, "--gpu", gpu, *args)

    def close(self):
        shutil.rmtree(self.top)


def as_other(command):
    return subprocess.Popen(command, **({"user": OTHER, "group": OTHER, "extra_groups": []} if ROOT else {}))


def with_place(test):
    def run(world):
        place = Place(world)
        try:
            test(place)
            place.check()
        finally:
            place.close()

    run.__name__ = test.__name__
    return run


def race(p, name, target):
    """`name` of the environment, and a link to `target`, in turns."""
    other, path, library = os.path.join(p.own, "other"), os.path.join(p.env, name), os.path.join(p.site, LIBRARY)
    os.symlink(target, other)
    os.lchown(other, OTHER, OTHER)
    pairs = (library, p.original, os.path.join(p.site, INFO, "RECORD"), p.original + "-record")
    racer = as_other([sys.executable, "-c", RACER, path, other, *pairs])
    codes, until = {}, time.monotonic() + SECONDS
    try:
        while time.monotonic() < until or 0 not in codes:
            done = p.slim()
            codes[done.returncode] = codes.get(done.returncode, 0) + 1
            assert done.returncode in (0, 2, 5, 7, 8), (done.returncode, done.stderr)
            p.check()
        assert racer.poll() is None, "the racer has ended"
    finally:
        racer.kill()
        racer.wait()
    print(f"{name}: {sum(codes.values())} turns, by exit code {codes}")
    if os.path.islink(path) and not os.path.islink(other):
        os.unlink(path)
        os.rename(other, path)
    for left in (other, other + ".new"):
        if os.path.lexists(left):
            os.unlink(left)
    for to, original in zip(pairs[::2], pairs[1::2]):
        with open(to + ".new", "wb") as f, open(original, "rb") as old:
            f.write(old.read())
        os.chown(to + ".new", OTHER, OTHER)
        os.rename(to + ".new", to)
    done = p.slim()
    assert done.returncode == 0, done.stderr
    assert used(library) == ["2", "0"]
    check_record(p.site)
    names = {os.path.relpath(f, p.site) for f in state(p.site)}
    assert not [n for n in names if ".ptbuild-" in n], names


@with_place
def test_race_library_becomes_link_to_setuid_program(p):
    race(p, os.path.join(SITE, LIBRARY), p.program)


@with_place
def test_race_dist_info_becomes_link(p):
    race(p, os.path.join(SITE, INFO), os.path.join(p.victim, INFO))


@with_place
def test_race_site_packages_becomes_link(p):
    race(p, "lib", os.path.join(p.victim, "lib"))


@with_place
def test_setuid_library_loses_the_bits(p):
    library = os.path.join(p.site, LIBRARY)
    os.chmod(library, 0o6775)
    done = p.slim()
    assert done.returncode == 0, done.stderr
    st = os.stat(library)
    assert (stat.S_IMODE(st.st_mode), st.st_uid) == (0o775, OTHER), f"mode {st.st_mode:o}, user {st.st_uid}"
    record = os.stat(os.path.join(p.site, INFO, "RECORD"))
    assert record.st_uid == OTHER and not record.st_mode & 0o7022


def refused(p, env, status, words):
    done = p.slim(env=env)
    assert done.returncode == status, (done.returncode, done.stderr)
    assert words in done.stderr, done.stderr


@with_place
def test_links_of_an_environment_stay_inside(p):
    lib = os.path.join(p.env, "lib")
    os.rename(lib, os.path.join(p.env, "real"))
    for target in (os.path.join(p.victim, "lib"), "../../victim/lib", "real/../../../victim/lib"):
        os.symlink(target, lib)
        refused(p, p.env, 7, f"points to '{target}'")
        os.unlink(lib)
    for target in ("real", "./real/../real", os.path.join(p.env, "real")):
        os.symlink(target, lib)
        os.symlink("lib", os.path.join(p.env, "lib64"))
        done = p.slim("--dry-run")
        assert done.returncode == 0, done.stderr
        os.unlink(lib)
        os.unlink(os.path.join(p.env, "lib64"))
    os.symlink("real", lib)
    assert p.slim().returncode == 0
    assert used(os.path.join(p.env, "real/python3.13/site-packages", LIBRARY)) == ["2", "0"]


@with_place
def test_links_of_an_image_stay_inside(p):
    image = os.path.join(p.own, "image")
    venv = os.path.join(image, "opt/venv")
    os.makedirs(venv)
    for target in (os.path.join(p.victim, "lib"), "/elsewhere/lib"):
        os.symlink(target, os.path.join(venv, "lib"))
        refused(p, image, 7, f"points to '{target}'")
        os.unlink(os.path.join(venv, "lib"))
    # What the link means for who runs in the image.
    inside = os.path.join(image, p.victim.lstrip("/"))
    shutil.copytree(os.path.join(p.env, "lib"), os.path.join(inside, "lib"))
    os.symlink(os.path.join(p.victim, "lib"), os.path.join(venv, "lib"))
    done = p.slim(env=image)
    assert done.returncode == 0, done.stderr
    assert used(os.path.join(inside, SITE, LIBRARY)) == ["2", "0"]
    if ROOT:
        subprocess.run(["chown", "-R", f"{OTHER}", p.own], check=True)


if __name__ == "__main__":
    toy.main([f for n, f in sorted(globals().items()) if n.startswith("test_")])
