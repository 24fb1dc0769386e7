#!/usr/bin/env python3
"""Building PyTorch: ptbuild against the same setup.py run by hand in the same root, in turns.

usage: bench_build.py warm PTBUILD ROOT CACHE HAND_CCACHE [PAIRS]
       bench_build.py tuned PTBUILD ROOT CACHE HAND_CCACHE [PAIRS]
       bench_build.py lean PTBUILD ROOT CACHE HAND_CCACHE [PAIRS]
       bench_build.py cold PTBUILD ROOT CACHE [PAIRS [UNITS [CUDA_UNITS]]]

warm: the whole build from the source archives to the wheel with warm compiler caches. CACHE is a store that has the sources and ptbuild's compiler cache,
      HAND_CCACHE the cache of a build by hand (an empty one is filled by an uncounted first run). By hand means: tar, patch, setup.py bdist_wheel; ptbuild
      also relocates, packs, verifies and imports what it made. Both leave their build tree, and no tree is removed before the end: ext4 looks for minutes
      at the inodes that were given back lately before it gives out a new one, so whoever comes next would pay for it. Wall seconds.
tuned: the same, but by hand compiles and links with all that ptbuild chooses: precompiled headers, the fast linker, the settings of ccache that those
      need. HAND_CCACHE may then be a copy of ptbuild's compiler cache.
lean: tuned, and by hand knows that the patch series gives each library three names, which a wheel holds as three copies, and how to stop that.
cold: a sample of compile units, spread evenly over the build, without a compiler cache. CPU seconds; of those of the precompiled headers, which all units share,
      the sample bears its part, and what they take whole is told. With CUDA_UNITS the build is that of sm90-avx512, and the sample has as many units of
      nvcc's besides; their CPU seconds are told apart, too.
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

# What a plan gives beside the settings that a person would have to give as well.
OWN = {"PTBUILD_LINKER", "CMAKE_TOOLCHAIN_FILE", "HOME", "TMPDIR", "PATH", "USE_PRECOMPILED_HEADERS", "TORCH_NVCC_FLAGS"}
# The same options for the compiler on both sides, else the two would not build the same thing.
ENTRIES = 'add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=/ptbuild/src/=>")\n'
# What BACKEND_HEAP (driver/step/compile/backend.h) adds where there is memory to spare.
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
    def __init__(self, ptbuild, root, cache, top, cuda=False):
        self.cuda = cuda
        self.variant = ["--profile", "sm90-avx512" if cuda else "cpu-avx2", "--package", "pytorch", "--release", "2.6.0-debian"]
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
        env |= {"USE_PRECOMPILED_HEADERS": "OFF", "MAX_JOBS": str(os.cpu_count())}
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


def compile_sample(b, tree, env, units, headers):
    """CPU seconds of compiling the headers and then `units` anew. Told by the shell inside: what bubblewrap reports leaves out the processes below it."""
    script = "n() { ninja -j%d \"$@\" >/ptbuild/tmp/said || { tail -c 4000 /ptbuild/tmp/said >&2; exit 1; }; }; cd build && rm -f \"$@\" && find . -name '*.gch' -delete && n %s && times && n \"$@\" && times"
    script %= (os.cpu_count(), " ".join(headers) or "-t list")
    argv = bwrap(b.root, b.hand_binds(tree), env | {"CCACHE_DISABLE": "1"}, ["bash", "-c", script, "sh", *units])
    r = subprocess.run(argv, capture_output=True, text=True)
    if r.returncode:
        sys.exit(f"bench_build: the sample does not compile in '{tree}':\n{r.stderr[-4000:]}")
    text = r.stdout
    times = [int(m) * 60 + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", text)]
    first, whole = sum(times[2:4]), sum(times[6:8])
    return first, whole - first


def digests(tree, units):
    return [hashlib.sha256(pathlib.Path(tree, "src/build", u).read_bytes()).hexdigest() for u in units]


def spread(units, count):
    """`count` of them, evenly; all where there are fewer."""
    count = min(count, len(units))
    return [units[i * len(units) // count] for i in range(count)]


def cold(b, pairs, count, cuda):
    sides = {}
    for name, pch in (("hand", "OFF"), ("own", "ON")):
        tree = os.path.join(b.top, name)
        b.hand_tree(tree)
        env = b.hand_env(False) | {"USE_PRECOMPILED_HEADERS": pch}
        if name == "own" and cuda:
            env["TORCH_NVCC_FLAGS"] = b.plan["env"]["TORCH_NVCC_FLAGS"]
        elif name == "own":
            b.own_patches(os.path.join(tree, "src"))
        if name == "own":
            env |= {k: f"{env.get(k, '')} {HEAP}".strip() for k in ("CFLAGS", "CXXFLAGS")}
        run(bwrap(b.root, b.hand_binds(tree), env, ["python3", "setup.py", "build", "--cmake-only"]), b.log)
        with open(os.path.join(tree, "src/build/build.ninja"), encoding="utf-8") as f:
            sides[name] = (tree, env, re.findall(r"^build (\S+\.gch)[ :|]", f.read(), re.M))
    with open(os.path.join(b.top, "hand/src/build/build.ninja"), encoding="utf-8") as f:
        text = f.read()
    units = re.findall(r"^build (\S+\.o): C(?:XX)?_COMPILER__", text, re.M)
    of_nvcc = re.findall(r"^build (\S+\.o): CUDA_COMPILER__", text, re.M)
    sample, sample_of_nvcc = spread(units, max(count, 1)), spread(of_nvcc, cuda)
    # Generated sources first, so that they are in neither side's figure.
    for tree, env, _ in sides.values():
        run(bwrap(b.root, b.hand_binds(tree), env, ["sh", "-c", 'cd build && ninja "$@"', "sh", *sample[:1]]), b.log)
    print(f"{len(sample)} of {len(units)} units" + (f", {len(sample_of_nvcc)} of {len(of_nvcc)} of nvcc's" if cuda else ""), flush=True)
    cpu, whole, nvcc, objects = ({"hand": [], "own": []} for _ in range(4))
    for i in range(pairs):
        # Each side goes first in turn.
        for name, (tree, env, headers) in sorted(sides.items(), reverse=i % 2 == 1):
            shared, alone = compile_sample(b, tree, env, sample, headers)
            nvcc[name].append(compile_sample(b, tree, env, sample_of_nvcc, [])[1] if cuda else 0)
            cpu[name].append(alone + shared * len(sample) / len(units) + nvcc[name][-1])
            whole[name].append(alone + shared + nvcc[name][-1])
            objects[name].append(digests(tree, sample))
        print(f"pair {i + 1}: ptbuild {cpu['own'][-1]:.1f} CPU seconds, by hand {cpu['hand'][-1]:.1f}" + (f", of nvcc's {nvcc['own'][-1]:.1f} and {nvcc['hand'][-1]:.1f}" if cuda else ""), flush=True)
    report("CPU seconds of the sample", cpu["own"], cpu["hand"])
    report("the same, as though the sample alone needed the headers", whole["own"], whole["hand"])
    if cuda:
        report("of nvcc's units", nvcc["own"], nvcc["hand"])
    # Each pair compiled the headers anew, and their bytes differ from run to run: the objects must not.
    same = sum(len(set(runs)) == 1 for runs in zip(*objects["own"]))
    print(f"objects equal in all pairs, whatever bytes the precompiled header had: {same} of {len(sample)}")
    if same != len(sample):
        sys.exit(1)


def main():
    if len(sys.argv) < 5 or sys.argv[1] not in ("warm", "tuned", "lean", "cold"):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="ptbuild-bench-", dir=os.environ.get("TMPDIR")) as top:
        numbers = [int(a) for a in sys.argv[5:]] if sys.argv[1] == "cold" else []
        b = Bench(sys.argv[2], sys.argv[3], sys.argv[4], top, len(numbers) > 2 and numbers[2] > 0)
        try:
            if sys.argv[1] != "cold":
                warm(b, os.path.abspath(sys.argv[5]), int(sys.argv[6]) if len(sys.argv) > 6 else 5, sys.argv[1])
            else:
                cold(b, *(numbers + [3, 100, 0][len(numbers) :]))
        finally:
            shutil.rmtree(b.left, ignore_errors=True)


if __name__ == "__main__":
    main()
