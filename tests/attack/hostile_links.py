"""The setup.py of a package whose build puts links, FIFOs and the like where ptbuild looks afterwards. What it does is listed in case.json; it says so in its output when it has done it."""

import json
import os
import re
import sys
import threading
import time
import zipfile

with open("case.json") as f:
    CASE = json.load(f)
HOST = CASE["host"]
OUT = "/ptbuild/out"
WHEEL = OUT + "/torch-2.9.1-cp3-cp3-linux_x86_64.whl"
CACHE, COMMANDS, NINJA = "build/CMakeCache.txt", "build/compile_commands.json", "build/build.ninja"


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def configure():
    """What CMake would leave, as asked for."""
    asked = {n: v for n, v in os.environ.items() if re.match("BUILD_|USE_|CMAKE_|BLAS|ATEN|INSTALL_TEST|ONNX|WERROR", n)}
    asked.update(re.findall(r'^set\((\S+) "(.*?)" CACHE', open("/ptbuild/cfg/entries.cmake").read(), re.M))
    write(CACHE, "".join(f"{n}:STRING={v}\n" for n, v in asked.items()))
    write(COMMANDS, json.dumps([{"file": "a.c", "command": f"gcc {os.environ.get('CFLAGS', '')} -c a.c -o a.o"}]))
    write(NINJA, "build a.o: C_COMPILER__x a.c\n")
    write("build/.ninja_log", "# ninja log v5\n0\t1\t0\ta.o\tab\n")


def link(path, to):
    if os.path.lexists(path):
        os.rename(path, path + ".old")
    os.symlink(to, path)


def big(path):
    with open(path, "w") as f:
        f.truncate(10 << 30)


def fifo(path):
    if os.path.lexists(path):
        os.remove(path)
    os.mkfifo(path)


def swap(path, to):
    """The file and a link to a file of the host change places all the time."""
    os.symlink(to, path + ".link")

    def go():
        while True:
            os.rename(path, path + ".real")
            os.rename(path + ".link", path)
            time.sleep(0.003)
            os.rename(path, path + ".link")
            os.rename(path + ".real", path)

    threading.Thread(target=go, daemon=True).start()
    for n in range(1, 60):
        print(f"[{n}/60] unit{n}.o", flush=True)
        time.sleep(0.005)


def leave_a_log():
    """Half a line, as a kill leaves it: the next run cuts it."""
    write("build/.ninja_log", "# ninja log v5\n0\t1\t0\ta.o\tab\n0\t1")
    write("build/.ninja_deps", "# ninjadeps\n\4\0\0\0torn")


# In the configuration: what it left is read at once.
EARLY = {
    "cache": lambda: link(CACHE, HOST + "/CMakeCache.txt"),
    "commands": lambda: link(COMMANDS, HOST + "/secret.json"),
    "directory": lambda: link("build", HOST + "/build"),
    "cache_fifo": lambda: fifo(CACHE),
    "cache_device": lambda: link(CACHE, "/dev/zero"),
    "cache_big": lambda: big(CACHE),
    "ninja": lambda: link(NINJA, HOST + "/build.ninja"),
}
# In the build itself.
LATE = {
    "wheel": lambda: link(WHEEL, HOST + "/host.whl"),
    "wheel_fifo": lambda: fifo(WHEEL),
    "statistics": lambda: link(OUT + "/ccache.stats", HOST + "/statistics"),
    "swapped": lambda: swap(NINJA, HOST + "/swapped.ninja"),
    "torn": leave_a_log,
    "torn_directory": lambda: link("build", HOST + "/build"),
}



def do(attacks):
    for name in CASE["does"]:
        if name in attacks:
            attacks[name]()
            print(f"ATTACK {name}", flush=True)


if "--cmake-only" in sys.argv:
    configure()
    do(EARLY)
    sys.exit(0)
if os.path.exists(NINJA):
    print("READ", open(NINJA).read(), flush=True)
do(LATE)
sys.exit(0 if os.path.lexists(WHEEL) else 3)
