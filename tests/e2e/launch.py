"""Stands before each compiler of a toy and makes it behave as the test wants: launch.py MODE... COMMAND, modes being words UNIT=WHAT. What has happened once, a file in the source tree remembers.

eats:N     takes N MiB of memory for a moment, so that the kernel kills it if that is too much
alone:N    where memory cannot be limited: dies like a killed compiler while N or more of its kind run
blocks     the first time: starts a process that will not end by being asked, and waits for it
fails      the first time: says an error and fails"""

import fcntl
import os
import signal
import sys
import time

TREE = os.path.dirname(os.path.abspath(__file__))


def once(name):
    try:
        os.close(os.open(os.path.join(TREE, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        return True
    except FileExistsError:
        return False


def eat(mib):
    memory = bytearray(mib << 20)
    for i in range(0, len(memory), 4096):
        memory[i] = 1
    time.sleep(0.5)


def alone(most):
    for i in range(most):
        slot = os.open(os.path.join(TREE, f"slot{i}"), os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        time.sleep(0.5)
        return
    print("c++: fatal error: Killed signal terminated program cc1plus", flush=True)
    sys.exit(1)


def block():
    import subprocess  # it takes as long as all the rest, for each compiler

    ignore = "import signal, time\nfor s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\ntime.sleep(3456)"
    p = subprocess.Popen([sys.executable, "-c", ignore], start_new_session=True)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    once("blocking")
    p.wait()


def main():
    words = sys.argv[1:]
    unit = next(os.path.basename(w).split(".")[0] for w in words if w.endswith(".cpp"))
    while "=" in words[0] and not words[0].startswith("-"):
        name, what = words.pop(0).split("=")
        if name != unit:
            continue
        what, _, number = what.partition(":")
        if what == "eats":
            eat(int(number))
        elif what == "alone":
            alone(int(number))
        elif what == "blocks" and once(f"{unit}.blocked"):
            block()
        elif what == "fails" and once(f"{unit}.failed"):
            print(f"{unit}.cpp:7:1: error: what the test wants\n" + "and many words after it\n" * 5000)
            sys.exit(1)
    rc = os.spawnvp(os.P_WAIT, words[0], words)
    if rc == 0:
        with open(os.path.join(TREE, "compiled"), "a") as f:
            f.write(unit + "\n")
    sys.exit(rc)


main()
