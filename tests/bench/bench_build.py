#!/usr/bin/env python3
"""Building PyTorch: ptbuild against the same setup.py run by hand in the same root, in turns.

usage: bench_build.py warm PTBUILD ROOT CACHE HAND_CCACHE [PAIRS]
       bench_build.py tuned PTBUILD ROOT CACHE HAND_CCACHE [PAIRS]
       bench_build.py lean PTBUILD ROOT CACHE HAND_CCACHE [PAIRS]
       bench_build.py cold PTBUILD ROOT CACHE [PAIRS [UNITS [PROFILE]]]
       bench_build.py nvcc PTBUILD ROOT CACHE [PAIRS [UNITS]]

warm: the whole build from the source archives to the wheel with warm compiler caches. CACHE is a store that has the sources and ptbuild's compiler cache,
      HAND_CCACHE the cache of a build by hand (an empty one is filled by an uncounted first run). By hand means: tar, patch, setup.py bdist_wheel; ptbuild
      also relocates, packs, verifies and imports what it made. Both leave their build tree, and no tree is removed before the end: ext4 looks for minutes
      at the inodes that were given back lately before it gives out a new one, so whoever comes next would pay for it. Wall seconds.
tuned: the same, but by hand compiles and links with all that ptbuild chooses: precompiled headers, the fast linker, the settings of ccache that those
      need. HAND_CCACHE may then be a copy of ptbuild's compiler cache.
lean: tuned, and by hand knows that the patch series gives each library three names, which a wheel holds as three copies, and how to stop that.
cold: a sample of at least UNITS (200) compile units of the build by hand, spread evenly over it, against those that compile the same sources in ptbuild's:
      several files in one, or fewer copies of a kernel. Without a compiler cache. CPU seconds; of those of the precompiled headers, which all units share, the
      sample bears its part. PROFILE is cpu-avx2 unless it is said.
nvcc: a sample of nvcc's units of sm90-avx512, spread evenly over the build, without a compiler cache. CPU seconds.
A ratio below 1 means that ptbuild takes less. Needs bubblewrap.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

JOBS = len(os.sched_getaffinity(0))
# What a plan gives beside the settings that a person would have to give as well.
OWN = {"PTBUILD_LINKER", "CMAKE_TOOLCHAIN_FILE", "HOME", "TMPDIR", "PATH", "USE_PRECOMPILED_HEADERS", "TORCH_NVCC_FLAGS"}
# The same options for the compiler on both sides, else the two would not build the same thing.
ENTRIES = 'add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=/ptbuild/src/=>")\n'
# What BACKEND_HEAP (driver/step/compile/build_parts.h) adds where there is memory to spare.
HEAP = "--param=ggc-min-heapsize=1048576"
ONE_NAME = 'set(HAVE_SOVERSION "OFF" CACHE STRING "")\n'


def bwrap(root, binds, env, command):
    argv = ["bwrap", "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    argv += ["--ro-bind", f"{root}/usr", "/usr", "--ro-bind", f"{root}/etc", "/etc"]
    for name in ("bin", "sbin", "lib", "lib64"):
        argv += ["--symlink", f"usr/{name}", f"/{name}"]
    argv += ["--tmpfs", "/ptbuild", "--dir", "/ptbuild/home", "--dir", "/ptbuild/tmp"]
    for host, inside in binds.items():
        argv += ["--bind", host, inside]
    argv += ["--clearenv", "--chdir", "/ptbuild/src"]
    for name, value in env.items():
        argv += ["--setenv", name, value]
    return argv + ["--"] + command


def run(argv, log, **kw):
    with open(log, "ab") as out:
        if subprocess.run(argv, stdout=out, stderr=out, **kw).returncode:
            with open(log, encoding="utf-8", errors="replace") as said:
                sys.exit(f"{said.read()[-4000:]}\nbench_build: {' '.join(argv[:3])}... failed")


class Bench:
    def __init__(self, ptbuild, root, cache, top, profile="cpu-avx2"):
        self.cuda = not profile.startswith("cpu")
        self.variant = ["--profile", profile, "--package", "pytorch", "--release", "2.6.0-debian"]
        self.ptbuild, self.root, self.cache, self.top = os.path.abspath(ptbuild), os.path.abspath(root), os.path.abspath(cache), top
        text = subprocess.run([self.ptbuild, "plan", *self.variant, "--root", self.root, "--json"], check=True, capture_output=True, text=True).stdout
        self.plan = json.loads(text)
        self.log = os.path.join(top, "log")
        # On the cache's file system, so that what is left can be moved there. Not below it, where ptbuild would clear it away.
        self.left = tempfile.mkdtemp(prefix=os.path.basename(self.cache) + "-bench-", dir=os.path.dirname(self.cache))
        self.runs = 0

    def hand_env(self, ccache, tuned=False):
        env = {k: v for k, v in self.plan["env"].items() if k not in OWN}
        env |= {"PATH": "/usr/bin:/bin", "HOME": "/ptbuild/home", "TMPDIR": "/ptbuild/tmp", "CMAKE_TOOLCHAIN_FILE": "/ptbuild/cfg/entries.cmake"}
        env |= {"USE_PRECOMPILED_HEADERS": "OFF", "MAX_JOBS": str(JOBS)}
        if ccache:
            env |= {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_DIR": "/ptbuild/ccache"}
            env |= {"CCACHE_DEPEND": "1", "CCACHE_COMPILERCHECK": "content", "CCACHE_NOHASHDIR": "1"}
        if tuned:
            env |= {"USE_PRECOMPILED_HEADERS": "ON", "LDFLAGS": "-fuse-ld=mold"}
            env |= {"CCACHE_SLOPPINESS": "pch_defines,time_macros", "CCACHE_NAMESPACE": env["SOURCE_DATE_EPOCH"]}
        return env

    def source(self, name):
        sha = next(s["sha256"] for s in self.plan["sources"] if s["name"] == name)
        return os.path.join(self.cache, "objects", "source", sha, name)

    def patch(self, src, patches, skip=()):
        """The patches that the file `series` of a directory names."""
        with open(os.path.join(patches, "series"), encoding="utf-8") as f:
            series = [line.split()[0] for line in f if line.strip() and not line.startswith("#")]
        for name in series:
            if name not in skip:
                run(["patch", "-p1", "-s", "-i", os.path.join(patches, name)], self.log, cwd=src)

    def own_patches(self, src):
        """What ptbuild changes in the sources beside the series that they bring along."""
        top = pathlib.Path(__file__).resolve().parents[2] / "patches/pytorch" / self.plan["release"]
        if (top / "series").exists():
            self.patch(src, top)

    def hand_tree(self, tree, entries=ENTRIES):
        """tar, then the patch series, then flatc: what debian/rules does before setup.py."""
        src = os.path.join(tree, "src")
        os.makedirs(src)
        os.makedirs(os.path.join(tree, "cfg"))
        names = [s["name"] for s in self.plan["sources"]]
        run(["tar", "--no-same-owner", "-xf", self.source(names[0]), "--strip-components=1", "-C", src], self.log)
        run(["tar", "--no-same-owner", "-xf", self.source(names[1]), "-C", src], self.log)
        for name in names[2:]:
            into = os.path.join(src, "third_party", name.split("_")[0])
            os.makedirs(into, exist_ok=True)
            listed = subprocess.run(["tar", "-tf", self.source(name)], check=True, capture_output=True, text=True).stdout.split()
            # Upstream's archives have a top directory, Debian's of a snapshot may have none.
            strip = ["--strip-components=1"] if len({n.split("/")[0] for n in listed}) == 1 else []
            run(["tar", "--no-same-owner", "-xf", self.source(name), *strip, "-C", into], self.log)
        self.patch(src, os.path.join(src, "debian/patches"), ("2000-version.patch",))
        if self.cuda:
            self.own_patches(src)  # without some of them nobody can configure it
        with open(os.path.join(tree, "cfg/entries.cmake"), "w", encoding="utf-8") as f:
            f.write(entries)
        flatc = ["flatc", "--cpp", "--gen-mutable", "--scoped-enums", "mobile_bytecode.fbs"]
        run(bwrap(self.root, {src: "/ptbuild/src"}, {"PATH": "/usr/bin"}, ["env", "-C", "torch/csrc/jit/serialization", *flatc]), self.log)

    def hand_binds(self, tree, ccache=None):
        binds = {os.path.join(tree, "src"): "/ptbuild/src", os.path.join(tree, "cfg"): "/ptbuild/cfg"}
        return binds | ({ccache: "/ptbuild/ccache"} if ccache else {})

    def hand(self, ccache, mode):
        self.runs += 1
        tree = os.path.join(self.left, f"hand{self.runs}")
        start = time.monotonic()
        self.hand_tree(tree, ENTRIES + (ONE_NAME if mode == "lean" else ""))
        middle = time.monotonic()
        run(bwrap(self.root, self.hand_binds(tree, ccache), self.hand_env(True, mode != "warm"), ["python3", "setup.py", "bdist_wheel"]), self.log)
        end = time.monotonic()
        return end - start, end - middle

    def set_aside(self):
        """What would be taken instead of built."""
        for kind in ("objects/wheel", "build"):
            self.runs += 1
            if os.path.isdir(os.path.join(self.cache, kind)):
                os.rename(os.path.join(self.cache, kind), os.path.join(self.left, f"own{self.runs}"))

    def own(self):
        self.runs += 1
        out = os.path.join(self.left, f"out{self.runs}")
        self.set_aside()
        start = time.monotonic()
        run([self.ptbuild, "-q", *self.variant, "--root", self.root, "--cache", self.cache, "--out", out, "--offline", "--keep"], self.log)
        whole = time.monotonic() - start
        with open(os.path.join(out, self.plan["variant"], "build.json"), encoding="utf-8") as f:
            steps = {s["step"]: s["seconds"] for s in json.load(f)["steps"]}
        return whole, steps["build"], steps


def report(what, own, hand):
    ratio = statistics.median(own) / statistics.median(hand)
    print(f"{what}: ptbuild {statistics.median(own):.1f} s, by hand {statistics.median(hand):.1f} s, ratio of medians {ratio:.2f}", flush=True)


def warm(b, ccache, pairs, mode):
    if not os.path.isdir(ccache) or not os.listdir(ccache):
        os.makedirs(ccache, exist_ok=True)
        print(f"filling the cache by hand: {b.hand(ccache, mode)[0]:.0f} s", flush=True)
    own, hand = [], []
    for i in range(pairs):
        hand.append(b.hand(ccache, mode))
        own.append(b.own())
        steps = ", ".join(f"{name} {seconds:.1f}" for name, seconds in own[-1][2].items())
        print(f"pair {i + 1}: ptbuild {own[-1][0]:.1f} s ({steps}); by hand {hand[-1][0]:.1f} s (setup.py {hand[-1][1]:.1f})", flush=True)
    report("source archives to wheel", [o[0] for o in own], [h[0] for h in hand])
    report("the build step against setup.py", [o[1] for o in own], [h[1] for h in hand])


def configured(b, name):
    """A tree of this side, configured: the tree, the environment."""
    tree = os.path.join(b.top, name)
    env = b.hand_env(False)
    entries = ENTRIES
    if name == "own":
        entries += "".join(f'set({k} "{v}" CACHE STRING "")\n' for k, v in b.plan["cmake"].items() if k not in b.plan["env"])
        env |= {"USE_PRECOMPILED_HEADERS": "ON"}
        env |= {"TORCH_NVCC_FLAGS": b.plan["env"]["TORCH_NVCC_FLAGS"]} if b.cuda else {}
        env |= {k: f"{env.get(k, '')} {HEAP}".strip() for k in ("CFLAGS", "CXXFLAGS")}
    b.hand_tree(tree, entries)
    if name == "own" and not b.cuda:
        b.own_patches(os.path.join(tree, "src"))
    run(bwrap(b.root, b.hand_binds(tree), env, ["python3", "setup.py", "build", "--cmake-only"]), b.log)
    return tree, env


def compile_units(b, side, units):
    """CPU seconds of compiling these anew. Told by the shell inside: what bubblewrap reports leaves out the processes below it."""
    tree, env = side
    script = 'cd build && rm -f "$@" && { ninja -j%d "$@" >/ptbuild/tmp/said || { tail -c 4000 /ptbuild/tmp/said >&2; exit 1; }; } && times' % JOBS
    r = subprocess.run(bwrap(b.root, b.hand_binds(tree), env | {"CCACHE_DISABLE": "1"}, ["bash", "-c", script, "sh", *units]), capture_output=True, text=True)
    if r.returncode:
        sys.exit(f"bench_build: the sample does not compile in '{tree}':\n{r.stderr[-4000:]}")
    return sum(int(m) * 60 + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", r.stdout)[2:])


def sources_of(tree):
    """Of each object, the sources that it is made of; the copies of a kernel count as one source."""
    with open(os.path.join(tree, "src/build/compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    found = {}
    for c in commands:
        files = [c["file"]]
        if "/Unity/unity_" in c["file"]:
            with open(c["file"].replace("/ptbuild/src", f"{tree}/src", 1), encoding="utf-8") as f:
                files = re.findall(r'^#include "(.*)"', f.read(), re.M)
        if not c["output"].endswith((".gch", ".pch")) and not c["file"].endswith((".cu", ".asm", ".S")):
            found[c["output"]] = {re.sub(r"(\.cpp)\.\w+\.cpp$", r"\1", name) for name in files}
    return found


def pick(hand, own, count):
    """Objects of both sides that are made of the same sources: at least `count` of those by hand, spread evenly."""
    groups = sorted({frozenset(sources) for sources in own.values()}, key=min)
    for n in range(max(1, count * len(groups) // len(hand)), len(groups) + 1):
        chosen = frozenset().union(*(groups[i * len(groups) // n] for i in range(n)))
        picked = [[o for o, s in side.items() if s & chosen] for side in (hand, own)]
        if len(picked[0]) >= count:
            break
    return picked


def cold(b, pairs, count):
    sides = {name: configured(b, name) for name in ("hand", "own")}
    sources = {name: sources_of(tree) for name, (tree, _) in sides.items()}
    units = dict(zip(("hand", "own"), pick(sources["hand"], sources["own"], count)))
    headers = re.findall(r"^build (\S+\.gch)[ :|]", pathlib.Path(sides["own"][0], "src/build/build.ninja").read_text(encoding="utf-8"), re.M)
    # Generated sources first, so that they are in neither side's figure.
    for name, side in sides.items():
        compile_units(b, side, units[name][:1])
    print(f"by hand {len(units['hand'])} of {len(sources['hand'])} units, ptbuild {len(units['own'])} of {len(sources['own'])}", flush=True)
    cpu, objects = {"hand": [], "own": []}, []
    for i in range(pairs):
        # Each side goes first in turn.
        for name, side in sorted(sides.items(), reverse=i % 2 == 1):
            shared = compile_units(b, side, headers) * len(units["hand"]) / len(sources["hand"]) if name == "own" else 0
            cpu[name].append(compile_units(b, side, units[name]) + shared)
        objects.append([hashlib.sha256(pathlib.Path(sides["own"][0], "src/build", u).read_bytes()).hexdigest() for u in units["own"]])
        print(f"pair {i + 1}: ptbuild {cpu['own'][-1]:.1f} CPU seconds, by hand {cpu['hand'][-1]:.1f}", flush=True)
    report("CPU seconds of the sample", cpu["own"], cpu["hand"])
    # Each pair compiled the headers anew, and their bytes differ from run to run: the objects must not.
    same = sum(len(set(runs)) == 1 for runs in zip(*objects))
    print(f"objects equal in all pairs, whatever bytes the precompiled headers had: {same} of {len(units['own'])}")
    if same != len(units["own"]):
        sys.exit(1)


def nvcc(b, pairs, count):
    sides = {name: configured(b, name) for name in ("hand", "own")}
    with open(os.path.join(b.top, "hand/src/build/build.ninja"), encoding="utf-8") as f:
        units = re.findall(r"^build (\S+\.o): CUDA_COMPILER__", f.read(), re.M)
    count = min(count, len(units))
    sample = [units[i * len(units) // count] for i in range(count)]
    # What they need first, so that it is in neither side's figure.
    for side in sides.values():
        compile_units(b, side, sample[:1])
    print(f"{count} of {len(units)} units", flush=True)
    cpu = {"hand": [], "own": []}
    for i in range(pairs):
        for name, side in sorted(sides.items(), reverse=i % 2 == 1):
            cpu[name].append(compile_units(b, side, sample))
        print(f"pair {i + 1}: ptbuild {cpu['own'][-1]:.1f} CPU seconds, by hand {cpu['hand'][-1]:.1f}", flush=True)
    report("CPU seconds of the sample", cpu["own"], cpu["hand"])


def main():
    if len(sys.argv) < 5 or sys.argv[1] not in ("warm", "tuned", "lean", "cold", "nvcc"):
        sys.exit(__doc__)
    mode, more = sys.argv[1], sys.argv[5:]
    with tempfile.TemporaryDirectory(prefix="ptbuild-bench-", dir=os.environ.get("TMPDIR")) as top:
        profile = "sm90-avx512" if mode == "nvcc" else more[2] if mode == "cold" and len(more) > 2 else "cpu-avx2"
        b = Bench(sys.argv[2], sys.argv[3], sys.argv[4], top, profile)
        try:
            if mode == "cold":
                cold(b, *([int(a) for a in more[:2]] + [3, 200][len(more) :]))
            elif mode == "nvcc":
                nvcc(b, *([int(a) for a in more] + [3, 20][len(more) :]))
            else:
                warm(b, os.path.abspath(more[0]), int(more[1]) if len(more) > 1 else 5, mode)
        finally:
            shutil.rmtree(b.left, ignore_errors=True)


if __name__ == "__main__":
    main()
