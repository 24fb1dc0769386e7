#!/usr/bin/env python3
"""Links, FIFOs and large files that a build leaves where ptbuild looks, and trees that were prepared before a step. Each case asserts that the attack ran, what was said of it, and that no file
of the host was opened, changed or shown: the host's files are watched meanwhile.

    test_links.py PTBUILD [BUILD...]
"""

import concurrent.futures
import ctypes
import json
import os
import re
import resource
import shutil
import struct
import sys
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import toy  # noqa: E402

SECRET = "swordfish"
LOOKED_AT = 0x1 | 0x2 | 0x4 | 0x8 | 0x20 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800  # all events of inotify but closing without a write
WAITED_S = 600
LARGE_KIB = 300 << 10  # nothing of a file of 10 GB is kept in memory

# A build: what it does, its exit status, and the words about each case. 6: the build itself fails after the attack, and ptbuild goes on to collect what it left.
DURING = {
    "cache": (("cache",), 5, {"cache": "will not follow a link: '{tree}/src/build/CMakeCache.txt' points to '{host}/CMakeCache.txt'"}),
    "commands": (("commands",), 5, {"commands": "will not follow a link: '{tree}/src/build/compile_commands.json'"}),
    "directory": (("directory",), 5, {"directory": "will not follow a link: '{tree}/src/build' points to '{host}/build'"}),
    "cache_fifo": (("cache_fifo",), 5, {"cache_fifo": "not a regular file: '{tree}/src/build/CMakeCache.txt' is a FIFO"}),
    "cache_device": (("cache_device",), 5, {"cache_device": "points to '/dev/zero'"}),
    "cache_big": (("cache_big",), 5, {"cache_big": "file too large: "}),
    "wheel": (("wheel",), 5, {"wheel": "will not follow a link: '{tree}/out/torch-"}),
    "wheel_fifo": (("wheel_fifo",), 5, {"wheel_fifo": "whl' is a FIFO"}),
    "collected": (
        ("ninja", "statistics"),
        6,
        {
            "ninja": "no job pools in build.ninja: will not follow a link",
            "units": "the report lacks units: will not follow a link: '{tree}/src/build/build.ninja'",
            "statistics": "the report lacks the compiler cache's figures: will not follow a link",
        },
    ),
    "swapped": (("swapped",), 6, {"swapped": "failed with status 3"}),
    "removed": (("torn_directory",), 6, {}),
    "kept": (("torn",), 6, {}),
}


def hard_link(world, tree):
    os.link(world.path("linked"), f"{tree}/src/build/.ninja_log")


def replaced(name, to):
    def change(world, tree):
        os.symlink(world.host(to), f"{tree}/{name}")

    return change


# A tree that such a build left, what is done to it before the next, which path of it is put back afterwards, exit status and words.
BEFORE = {
    "removed": ("removed", lambda world, tree: None, None, 6, ""),
    "hard_link": ("kept", hard_link, "src/build/.ninja_log", 6, ""),
    "source": ("kept", replaced("src", "build"), "src", 5, "will not follow a link: '{tree}/src' points to '{host}/build'"),
    "log": ("kept", replaced("log/build.log", "log"), "log/build.log", 5, "will not follow a link: '{tree}/log/build.log' points to '{host}/log'"),
    "log_directory": ("kept", replaced("log", "build"), "log", 5, "will not follow a link: '{tree}/log' points to '{host}/build'"),
    "configuration": ("kept", replaced("cfg", "build"), "cfg", 5, "will not follow a link: '{tree}/cfg' points to '{host}/build'"),
    "results": ("kept", replaced("out", "build"), "out", 6, "failed with status 3"),
}


def read_tree(top):
    """All that a directory holds, to be compared."""
    paths = [os.path.join(d, n) for d, _, names in os.walk(top) for n in names]
    return {p: open(p, "rb").read() for p in paths if os.path.isfile(p) and not os.path.islink(p) and os.path.getsize(p) < 1 << 20}


class Watch:
    """Whether somebody opens, changes or removes a file of the host."""

    def __init__(self, top):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.names = {}
        for folder, _, names in list(os.walk(top)):
            for path in [folder] + [os.path.join(folder, n) for n in names]:
                self.names[libc.inotify_add_watch(self.fd, os.fsencode(path), LOOKED_AT)] = path
        assert self.fd >= 0 and -1 not in self.names and self.names

    def seen(self):
        found = []
        try:
            while data := os.read(self.fd, 1 << 16):
                at = 0
                while at < len(data):
                    number, mask, _, size = struct.unpack_from("iIII", data, at)
                    at += 16 + size
                    found.append((self.names[number], hex(mask)))
        except BlockingIOError:
            return sorted(set(found))


class Links(toy.World):
    def __init__(self, ptbuild, asked):
        super().__init__(ptbuild)
        os.chmod(self.dir, 0o755)
        files = {
            "CMakeCache.txt": f"{SECRET}\n",
            "secret.json": f'{{"{SECRET}": {SECRET}}}\n',
            "build.ninja": f"build a.o: C_COMPILER__x /{SECRET}.cpp\n",
            "swapped.ninja": f"build unit1.o: C_COMPILER__x /{SECRET}.cpp\n",
            "statistics": f"# /{SECRET}\n{SECRET}_counter\ncache_miss\n",
            "log": f"# ninja log v5\n0\t1\t0\t{SECRET}.o\tab\n0\t1",
            "build/CMakeCache.txt": f"{SECRET}\n",
            "build/lib.linux/keep": f"{SECRET}\n",
        }
        for name, text in files.items():
            os.makedirs(os.path.dirname(self.host(name)), exist_ok=True)
            with open(self.host(name), "w") as f:
                f.write(text)
        with zipfile.ZipFile(self.host("host.whl"), "w") as z:
            for name, text in {"torch/__init__.py": SECRET, "torch-2.9.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n", "torch-2.9.1.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: cp3-cp3-linux_x86_64\n"}.items():
                z.writestr(name, text)
        shutil.copy(self.host("log"), self.path("linked"))
        self.before = self.all()
        for name in asked:
            self.pin_case(name, DURING[name][0])

    def all(self):
        """The build of an ordinary user is that user, and what has a second name in its tree is its own to write."""
        return {**read_tree(self.host("")), **({"linked": open(self.path("linked")).read()} if os.geteuid() == 0 else {})}

    def host(self, name):
        return self.path("host", name).rstrip("/")

    def pin_case(self, name, does):
        def change(files):
            files.clear()
            files["setup.py"] = open(os.path.join(HERE, "hostile_links.py"), "rb").read()
            # The name makes the tree of each case another one.
            files["case.json"] = json.dumps({"does": does, "case": name, "host": self.host("")}).encode()

        self.pin("setup-py-env", change, name.replace("_", "-"))

    def build(self, name):
        result = super().build(name.replace("_", "-"), timeout=WAITED_S)
        trees = re.findall(r"building \S+ \(tree (.*)\)", result.stderr)
        assert len(trees) == 1, (result.returncode, result.stderr[-1000:])
        return result, trees[0]


def wrong(world, result, tree, status, words):
    """What did not hold, in words; nothing when all did."""
    said = result.stdout + result.stderr
    words = words.format(tree=tree, host=world.host(""))
    if result.returncode != status or words not in said:
        return f"status {result.returncode}, not {status} with '{words}': {said[-500:]}"
    if SECRET in said:
        return "the host's file was shown: " + said[-500:]
    # The hard link of a case is the host's file itself.
    kept = [p for p, d in read_tree(tree).items() if SECRET.encode() in d and os.stat(p).st_nlink == 1]
    return f"the host's file lies in {kept}" if kept else None


def attack(world, name):
    """A hostile build, and then the cases that begin with its tree: each with what did not hold."""
    does, status, cases = DURING[name]
    result, tree = world.build(name)
    log = open(f"{tree}/log/build.log").read()
    ran = all(f"ATTACK {d}\n" in log for d in does)
    found = {case: wrong(world, result, tree, status, words) if ran else "the attack did not run: " + result.stderr[-500:] for case, words in cases.items()}
    for case, (of, change, path, status, words) in BEFORE.items():
        if of != name:
            continue
        if not ran:
            found[case] = "the attack did not run: " + result.stderr[-500:]
            continue
        if path:
            os.rename(f"{tree}/{path}", f"{tree}/aside")
        change(world, tree)
        again, _ = world.build(name)
        found[case] = wrong(world, again, tree, status, words)
        if path:
            shutil.rmtree(f"{tree}/{path}") if os.path.isdir(f"{tree}/{path}") and not os.path.islink(f"{tree}/{path}") else os.remove(f"{tree}/{path}")
            os.rename(f"{tree}/aside", f"{tree}/{path}")
    return found


def main():
    start = time.monotonic()
    asked = [n for n in DURING if len(sys.argv) < 3 or n in sys.argv[2:]]
    world, failed = Links(sys.argv[1], asked), []
    try:
        watch = Watch(world.host(""))
        # The first finds out what the machine can do, which the others then know.
        results = attack(world, asked[0])
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for found in pool.map(lambda n: attack(world, n), reversed(asked[1:])):
                results.update(found)
        seen = watch.seen()
        if "swapped" in results:
            results["swapped"] = results["swapped"] or str([s for s in seen if "swapped" in s[0]] or "")
        results["no_file_of_the_host_is_opened"] = seen and f"{seen}"
        after = world.all()
        results["no_file_of_the_host_is_changed"] = after != world.before and f"{after}"
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        results["no_large_file_is_read"] = peak > LARGE_KIB and f"{peak} KiB"
        results["nothing_is_published"] = world.wheels() and f"{world.wheels()}"
        for name, why in results.items():
            print(f"[{'  FAILED  ' if why else '       OK '}] {name}{': ' + why if why else ''}", flush=True)
            if why:
                failed.append(name)
    finally:
        world.close()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"[  PASSED  ] {len(results) - len(failed)} test(s). {time.monotonic() - start:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of processors, {peak >> 10} MiB")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
