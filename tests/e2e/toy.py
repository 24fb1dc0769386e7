"""The world of an end-to-end test: a stand-in for PyTorch as a pinned source archive, tables that name it, a cache and an output directory of its own."""

import fcntl
import glob
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
ERAS = ("setup-py-env", "setup-py-cmake-env", "scikit-build-core")

RELEASE = """\
name: 2.9.1-{name}
base: 2.9.1
pythons: ["{python}"]
toolkits: ["12.8", "12.9"]
cmake: ">=3.18"
gcc: ">=9"
cuda: ">=12.0"
disk: 1M
source_date_epoch: 1700000000
pytorch:
  version: 2.9.1
  backend: {era}
  sources:
    - name: toy-{era}.tar.gz
      sha256: {sha256}
      urls: ["{url}"]
  python_requires: [{requires}]
{extra}  cudnn: ""
  settings:
    - {{name: USE_KINETO, value: "OFF", why: "the stand-in has none"}}
"""


# Templates that keep a compiler busy for a moment.
BUSY = """\
#include <map>
#include <string>

int toy_unit@UNIT@(int n)
{
	std::map<std::string, int> counts;
	for (int i = 0; i < n; i++)
		counts[std::to_string(i) + "-@UNIT@"]++;
	int sum = 0;
	for (const auto &entry : counts)
		sum += entry.second * std::stoi(entry.first) * @UNIT@;
	return sum;
}
"""


def busy(files):
    """The stand-in with units that take a moment: for a build that is to be interrupted."""
    files["csrc/unit.cpp.in"] = BUSY.encode()


def replaced(text, old, new):
    """One of `old` becomes `new`: where there is none, whoever asks would try nothing."""
    assert text.count(old) == 1, f"'{old}' is there {text.count(old)} times"
    return text.replace(old, new)


def host_python():
    """The version of the Python that the sandbox sees, which need not be the one that runs this."""
    out = subprocess.run(["/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True, check=True)
    return out.stdout.strip()


def debian13():
    """A Debian 13 root: PTBUILD_TEST_ROOT, or the world of that name in this user's store; "" where there is none."""
    there = os.environ.get("PTBUILD_TEST_ROOT")
    if there:
        return there
    tables = os.path.join(os.path.dirname(os.path.dirname(HERE)), "profiles")
    out = subprocess.run([sys.argv[1], "world", "show", "debian13", "--json", "--profiles", tables], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)["dir"] or ""


def sanitizers(program):
    """The runtimes that want to be loaded before everything else."""
    out = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
    return [words[2] for words in map(str.split, out.stdout.splitlines()) if words and words[0].startswith(("libasan", "libubsan"))]


def archive(era, change=None):
    """The source archive's bytes; `change` may alter the files, a dict of name to bytes."""
    files = {}
    for top in ("common", era):
        base = os.path.join(HERE, "toys", top)
        for folder, _, names in os.walk(base):
            for name in names:
                path = os.path.join(folder, name)
                files[os.path.relpath(path, base)] = open(path, "rb").read()
    if change:
        change(files)
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name in sorted(files):
            info = tarfile.TarInfo(f"toy-1.0/{name}")
            info.size, info.mtime, info.mode = len(files[name]), 1700000000, 0o644
            tar.addfile(info, io.BytesIO(files[name]))
    return gzip.compress(raw.getvalue(), mtime=0)  # two worlds have the same bytes


class World:
    def __init__(self, ptbuild, tables=os.path.join(TOP, "profiles")):
        self.ptbuild = os.path.abspath(ptbuild)
        self.dir = tempfile.mkdtemp(prefix="ptbuild-e2e-")
        self.profiles = self.path("profiles")
        self.cache = self.path("cache")
        self.out = self.path("dist")
        self.used = set()
        shutil.copytree(tables, self.profiles)
        shutil.rmtree(os.path.join(self.profiles, "releases"))
        shutil.rmtree(os.path.join(self.profiles, "checks"))
        os.mkdir(os.path.join(self.profiles, "releases"))
        os.remove(os.path.join(self.profiles, "known_sources"))  # the stand-in has versions of PyTorch's
        shutil.copytree(os.path.join(HERE, "checks"), os.path.join(self.profiles, "checks"))
        shutil.copy(os.path.join(HERE, "requirements-toy.txt"), os.path.join(self.profiles, "requirements"))
        # The stand-in imports no modules and has no BLAS.
        self.change("needs.yaml", r"^  - \{module:.*\n", "")
        self.change("blas.yaml", r"pkgconf: openblas, ", "")
        for era in ERAS:
            self.pin(era)

    def change(self, table, pattern, new):
        """Changes a table, which must have what is changed."""
        with open(os.path.join(self.profiles, table)) as f:
            old = f.read()
        text = re.sub(pattern, new, old, flags=re.M)
        assert text != old, f"{table} has no {pattern}"
        with open(os.path.join(self.profiles, table), "w") as f:
            f.write(text)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def release(self, name):
        return os.path.join(self.profiles, "releases", f"2.9.1-{name}.yaml")

    def pin(self, era, change=None, name=None):
        """Writes the archive and the table row that pins it."""
        data = archive(era, change)
        name = name or era
        path = self.path(f"{name}.tar.gz")
        with open(path, "wb") as f:
            f.write(data)
        modern = era == "scikit-build-core"
        text = RELEASE.format(
            name=name,
            era=era,
            python=host_python(),
            sha256=hashlib.sha256(data).hexdigest(),
            url="file://" + urllib.parse.quote(path),
            requires='"scikit-build-core>=0.10"' if modern else '"setuptools>=60", wheel',
            extra="  requirements: requirements-toy.txt\n" if modern else "",
        )
        with open(self.release(name), "w") as f:
            f.write(text)
        return path

    def share_trials(self, command, cache):
        """A root that passed its trial in one store has passed it in the next: what a test wants to see is seldom the trial. ctest names a place for all tests."""
        known = os.environ.get("PTBUILD_TEST_TRIALS") or self.path("trials")
        os.makedirs(known, exist_ok=True)
        for used in self.used:
            stamps = glob.glob(os.path.join(glob.escape(used), "stamps", "trial-*"))
            for path in [*stamps, os.path.join(used, "format")] if stamps else []:
                to = os.path.join(known, os.path.basename(path))
                if os.path.isfile(path) and os.access(path, os.R_OK) and not os.path.exists(to):
                    part = shutil.copy(path, os.path.join(known, f".{os.getpid()}"))
                    os.replace(part, to)
        if command == "build" and not os.path.exists(cache) and os.path.exists(os.path.join(known, "format")):
            os.makedirs(os.path.join(cache, "stamps"), exist_ok=True)  # two commands may start at once
            for path in glob.glob(os.path.join(glob.escape(known), "trial-*")):
                shutil.copy(path, os.path.join(cache, "stamps"))
            shutil.copy(os.path.join(known, "format"), cache)
        self.used.add(cache)

    def command(self, *args, cache=None):
        return [self.ptbuild, args[0], "--profiles", self.profiles, "--cache", cache or self.cache, "--out", self.out, *args[1:]]

    def run(self, *args, cache=None, timeout=900, **kw):
        self.share_trials(args[0], cache or self.cache)
        return subprocess.run(self.command(*args, cache=cache), capture_output=True, text=True, timeout=timeout, cwd=self.dir, **kw)

    def start(self, *args, **kw):
        self.share_trials(args[0], self.cache)
        return subprocess.Popen(self.command(*args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.dir, **kw)

    def build(self, era, *args, **kw):
        return self.run("build", "--profile", "cpu-avx2", "--release", f"2.9.1-{era}", "--json", *args, **kw)

    def wheels(self):
        return sorted(n for n in os.listdir(self.out) if n.endswith(".whl")) if os.path.isdir(self.out) else []

    def clear(self):
        shutil.rmtree(self.cache, ignore_errors=True)
        shutil.rmtree(self.out, ignore_errors=True)

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def remove_place():
    """What builds without a sandbox leave of their place when they are done; not while another test builds there."""
    top = "/ptbuild/.ptbuild"
    try:
        with open(f"{top}/lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if set(os.listdir(top)) == {"lock", "marker"}:
                shutil.rmtree(top)
                os.rmdir("/ptbuild")
    except OSError:
        pass


def record(result):
    """The one item of a build's JSON."""
    items = json.loads(result.stdout)
    assert len(items) == 1, items
    return items[0]


def main(tests, prepare=None):
    """Runs the functions, those named behind the program alone if there are any, and closes with the line that the test run counts by."""
    world = World(sys.argv[1])
    tests = [t for t in tests if len(sys.argv) < 3 or t.__name__ in sys.argv[2:]]
    passed, failed = 0, []
    try:
        if prepare:
            prepare(world)
        for test in tests:
            try:
                test(world)
                passed += 1
                print(f"[       OK ] {test.__name__}", flush=True)
            except Exception as ex:  # noqa: BLE001 - the other tests still run
                failed.append(test.__name__)
                print(f"[  FAILED  ] {test.__name__}: {type(ex).__name__}: {ex}", flush=True)
    finally:
        world.close()
    print(f"[  PASSED  ] {passed} test(s).")
    if failed:
        print(f"[  FAILED  ] {len(failed)} test(s), listed below:\n" + "\n".join(f"[  FAILED  ] {n}" for n in failed))
    sys.exit(1 if failed else 0)
