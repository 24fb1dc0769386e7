#!/usr/bin/python3
"""Roots that somebody made to do harm: what `capture` reads there and the root's own words. Each case is one lie in a root that is otherwise taken; the answer is an error that names it, or a wheel, soon, without a file of the host
in it, and nothing is written anywhere else.

    test_roots.py PTBUILD [TEST]
"""

import functools
import os
import shutil
import stat
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import test_capture  # noqa: E402
import toy  # noqa: E402
from test_capture import METADATA, SITE  # noqa: E402

SECRET = "swordfish"
TORCH, EGG, DPKG = f"{SITE}/torch", f"{SITE}/torch-2.6.0+debian.egg-info", "var/lib/dpkg"
LIST = f"{DPKG}/info/python3-torch.list"


def text(path, words):
    return lambda top, host: test_capture.write(os.path.join(top, path), words)


def more(path, words):
    def change(top, host):
        with open(os.path.join(top, path)) as f:
            old = f.read()
        text(path, old + words)(top, host)

    return change


def place(path, make, *then):
    def change(top, host):
        at = os.path.join(top, path)
        if os.path.isdir(at) and not os.path.islink(at):
            shutil.rmtree(at)
        elif os.path.lexists(at):
            os.remove(at)
        os.makedirs(os.path.dirname(at), exist_ok=True)
        make(at, host)
        for t in then:
            t(top, host)

    return change


def link(name):
    return lambda at, host: os.symlink(host + name, at)


def out_of_it(at, host):
    """As many ".." as there can be: they end at the top of the root, or, where it is not heeded, at the host's."""
    os.symlink("../" * 30 + host.lstrip("/") + "/secret.py", at)


def sparse(at, host):
    with open(at, "w") as f:
        f.truncate(1 << 42)


def device(at, host):
    if os.getuid() == 0:
        os.mknod(at, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    else:
        os.symlink("/dev/zero", at)


def fifo(at, host):
    os.mkfifo(at)


listed = more(LIST, f"/{TORCH}/planted.py\n")
# name: (the change, exit codes)
LIES = {
    "init_is_a_fifo": (place(f"{TORCH}/__init__.py", fifo), (5, 7)),
    "init_is_a_device": (place(f"{TORCH}/__init__.py", device), (5, 7)),
    "init_is_a_link_to_the_host": (place(f"{TORCH}/__init__.py", link("/secret.py")), (5, 7)),
    "init_leads_out": (place(f"{TORCH}/__init__.py", out_of_it), (5, 7)),
    "version_is_a_fifo": (place(f"{TORCH}/version.py", fifo), (5,)),
    "version_is_endless": (place(f"{TORCH}/version.py", sparse), (5, 6, 7, 8)),
    "torch_is_a_link_to_the_host": (place(TORCH, link("")), (5, 7)),
    "a_listed_fifo": (place(f"{TORCH}/planted.py", fifo, listed), (5,)),
    "a_listed_device": (place(f"{TORCH}/planted.py", device, listed), (5,)),
    "a_name_with_escapes": (place(f"{TORCH}/\033[2J.py", lambda at, host: open(at, "w").close(), more(LIST, f"/{TORCH}/\033[2J.py\n")), (5,)),
    "names_of_another_package": (more(LIST, "/etc/passwd\n/\n//\n/..\n" + f"/{SITE}/../../../etc/passwd\n"), (5,)),
    "list_is_a_fifo": (place(LIST, fifo), (5, 7, 8)),
    "list_is_a_link_to_the_host": (place(LIST, link("/list")), (5, 7)),
    "list_is_endless": (place(LIST, sparse), (5, 7, 8)),
    "status_is_a_fifo": (place(f"{DPKG}/status", fifo), (5, 7, 8)),
    "name_leads_out": (text(f"{EGG}/PKG-INFO", METADATA.replace("Name: torch", "Name: ../torch")), (5, 7)),
    "version_leads_out": (text(f"{EGG}/PKG-INFO", METADATA.replace("2.6.0+debian", "../../../x")), (5, 7)),
}


def prepare(world):
    test_capture.prepare(world)
    world.host = world.path("host")
    os.mkdir(world.host)
    for name in ("secret.py", "list"):
        test_capture.write(os.path.join(world.host, name), f"{SECRET} = 1\n")
    r = test_capture.capture(world)
    assert r.returncode == 0, r.stderr


def take_along(source, to):
    """What no lie changes, all of Python, is linked: copied for each it would take most of the time."""
    (shutil.copy2 if any(part in source for part in (TORCH, EGG, DPKG)) else os.link)(source, to)


def lying(world, name):
    change, codes = LIES[name]
    kept, was = world.root, world.path("root-" + name)
    shutil.copytree(kept, was, symlinks=True, copy_function=take_along)
    change(was, world.host)
    world.root = was
    try:
        shutil.rmtree(world.out, ignore_errors=True)
        r = test_capture.capture(world, timeout=300)
    finally:
        world.root = kept
        shutil.rmtree(was)
    said = r.stdout + r.stderr
    assert r.returncode in codes and (r.returncode == 0 or said.count("ptbuild: error: ") == 1), (r.returncode, said[-1500:])
    assert SECRET not in said and not any(c in said for c in "\x1b\u202e") and len(said) < 20000 and "Sanitizer" not in said, said[-3000:]
    assert len(world.wheels()) == (r.returncode == 0), (world.wheels(), said[-500:])
    for wheel in world.wheels():
        with zipfile.ZipFile(os.path.join(world.out, wheel)) as z:
            assert not any(SECRET.encode() in z.read(n) for n in z.namelist()), wheel
    assert not os.listdir(os.path.join(world.cache, "tmp")) and sorted(os.listdir(world.host)) == ["list", "secret.py"]


TESTS = [functools.partial(lying, name=n) for n in LIES]
for t in TESTS:
    t.__name__ = t.keywords["name"]

if __name__ == "__main__":
    toy.main(TESTS, prepare)
