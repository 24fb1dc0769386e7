"""How many system calls and processes a plan and a wheel that is in the store take: a look-up that is made twice is noticed here first.

The figures are those of the program's own work: what `ptbuild --version` takes, which is the loader's and the sanitizers', is taken off. They are of the calls
that a look-up is made of, and are the same with every compiler; a listing counts by its open, since how many reads it takes is a matter of the host. A limit stands a tenth above what is needed; one that is raised wants a reason."""

import collections
import os
import re
import subprocess
import tempfile

from test_worlds import Site, TAG
from toy import TOP, main

KINDS = {
    "opens": ("open", "openat", "openat2"),
    "stats": ("stat", "lstat", "fstat", "newfstatat", "fstatat64", "statx", "access", "faccessat", "faccessat2", "readlink", "readlinkat"),
    "reads": ("read", "pread64"),
    "programs": ("execve", "execveat"),
    "processes": ("fork", "vfork", "clone", "clone3"),
}
# The map of the addresses, anew with twice the room until it fits: how often is a matter of where the kernel puts things.
SANITIZERS = re.compile(r"/proc/(self|\d+)/maps\b")
# How much memory and how many processors a build may use is asked of each control group that it is in: how many those are is the machine's matter.
GROUPS = re.compile(r"/proc/(self|\d+)/(cgroup|mountinfo)\b|/sys/fs/cgroup\b")
# A program's view of the processors is as long as there are many of them.
LONG = re.compile(r'\bread\(\d+</proc/cpuinfo>')
# Where the loader looks for the driver's library, which most machines lack: in how many directories is a matter of the C library and of the processor.
LOADER = re.compile(r'"/(usr/)?lib(64)?/[^"]*\blibcuda\.so\.1"|"(/usr)?/lib(64)?(/\w+-linux-gnu\w*)?(/(tls|glibc-hwcaps|haswell|avx512_1|x86[-_]64[^/"]*))+"')
# Each such look begins with this.
LOOK = re.compile(r'\bopen(at2?)?\(.*"/proc/self/cgroup"')
CALLS = ",".join("?" + call for calls in KINDS.values() for call in calls)


def count(command, **kw):
    """How many of each kind a command and its children make, and the lines. Threads are counted with the processes."""
    with tempfile.NamedTemporaryFile("r") as out:
        done = subprocess.run(
            ["strace", "-f", "-qq", "-y", "-e", f"trace={CALLS}", "-o", out.name, *command], capture_output=True, text=True, timeout=900, **kw
        )
        assert done.returncode == 0, f"{command}: {done.stderr[-2000:]}"
        lines = [line for line in out if not SANITIZERS.search(line)]
    looks = sum(bool(LOOK.search(line)) for line in lines)
    lines = [line for line in lines if not any(p.search(line) for p in (GROUPS, LONG, LOADER))]
    calls = collections.Counter(call for line in lines for call in re.findall(r"^\d+ +(\w+)\(", line))
    assert calls.get("execve"), "strace counted no program: is it allowed to trace here?"
    return {kind: sum(calls.get(call, 0) for call in names) for kind, names in KINDS.items()} | {"groups": looks}, lines


def hold(world, name, command, limits):
    """The command's figures, less those of a command that looks nothing up, against their limits."""
    # The sanitizer looks for leaks by tracing, which strace does already.
    env = {k: v for k, v in os.environ.items() if k not in ("PTBUILD_ARCHIVE", "PTBUILD_LOWER_STORE")}
    # The directories of PATH are listed.
    os.makedirs(world.path("venv"), exist_ok=True)
    with open(world.path("venv", "pyvenv.cfg"), "w") as f:
        f.write("version = 3.13.5\n")
    env.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME=world.dir, VIRTUAL_ENV=world.path("venv"), ASAN_OPTIONS="detect_leaks=0:" + env.get("ASAN_OPTIONS", ""), no_proxy="*")
    nothing, _ = count([world.ptbuild, "--version"], env=env, cwd=world.dir)
    made, lines = count(command, env=env, cwd=world.dir)
    got = {kind: n - nothing[kind] for kind, n in made.items()}
    print(f"{name}: {got}", flush=True)
    grown = [f"{kind} from at most {limits[kind]} to {n}" for kind, n in got.items() if n > limits[kind]]
    if grown:
        print("".join(lines))
    assert not grown, f"{name} takes more than it did: {', '.join(grown)}"


def limits(opens, stats, reads, groups, programs=0, processes=0):
    return dict(opens=opens, stats=stats, reads=reads, groups=groups, programs=programs, processes=processes)


def plan(world, *words):
    return [world.ptbuild, "plan", "--profiles", os.path.join(TOP, "profiles"), "--cache", world.path("empty"), "--json", *words]


def test_plan_of_a_profile(world):
    hold(world, "the plan of a profile", plan(world, "--profile", "cpu-avx2", "--release", "2.9.1"), limits(53, 208, 55, 1))


def test_plan_of_a_matrix(world):
    # The tables of all parts of worlds are read once, for those that emulate another platform.
    hold(world, "the plans of a matrix", plan(world, "--matrix", "build-pytorch/main"), limits(165, 750, 137, 1, processes=1))


def test_wheel_in_the_store(world):
    era = "setup-py-env"
    done = world.build(era)
    assert done.returncode == 0, done.stderr[-3000:]
    hold(world, "a wheel in the store", world.command("build", "--profile", "cpu-avx2", "--release", f"2.9.1-{era}", "--json"), limits(74, 612, 107, 1))


def test_wheel_in_the_store_of_a_world(world):
    site = Site(world)
    words = ["build", f"pytorch-python{TAG}-cpu-avx2", "--json"]
    done = site.run(*words)
    site.keys.close()
    assert done.returncode == 0, done.stderr[-3000:]
    # Each directory of the world is looked at once. How many there are is a matter of the packages of the host, which the test's archive is made of.
    made = world.path("cache", "worlds")
    folders = sum(len(names) for _, names, _ in os.walk(made))
    print(f"{folders} directories", flush=True)
    hold(world, "a wheel in the store, of a world", world.command(*words, "--archive", f"debian={site.archive.top}"), limits(93, folders + 607, 128, 6))


main([test_plan_of_a_profile, test_plan_of_a_matrix, test_wheel_in_the_store, test_wheel_in_the_store_of_a_world])
