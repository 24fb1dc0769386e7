#!/usr/bin/env python3
"""The jobs that `ptbuild matrix` writes, run: GitHub's by act, GitLab's by bitrab, each twice, cold and then from the caches of the first run.

usage: test_jobs.py ROOT

They build the stand-in for PyTorch in eight variants, with GPU code where this machine has a CUDA toolkit. GitHub's jobs come without an image, so each installs its packages, and ptbuild from the
checkout. Debian 13 is a copy-on-write view of ROOT, a bare one (make_bare in ci/lib.sh), which act and bitrab run in: neither starts containers here, so `container` is taken out of GitHub's jobs; bitrab passes over `image` itself.
Needs root and the network (apt, pip).
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
SHOWN = "/srv/ptbuild" # where the root sees the directory of the test
# So that ptbuild itself is compiled once only. What it builds sees nothing of this.
QUICK = {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": "/tmp", "CCACHE_NOHASHDIR": "1"}
LIMIT = 1500 # seconds for one engine, both runs


def outside(root):
    """The root's own copy of this script does the rest."""
    with tempfile.TemporaryDirectory(prefix="ptbuild-jobs-", dir="/var/tmp") as d:
        for name in ("upper", "work", "merged", "shown"):
            os.mkdir(os.path.join(d, name))
        shutil.copy("/etc/ssl/certs/ca-certificates.crt", os.path.join(d, "shown")) # this machine's: pip may need them to get out
        subprocess.run(["git", "clone", "--quiet", "--no-local", TOP, os.path.join(d, "shown", "source")], check=True)
        script = """
            mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/merged" || exit
            . ci/lib.sh
            for toolkit in /usr/local/cuda-*; do
                [ -d "$toolkit/bin" ] && mkdir -p "$2/merged$toolkit" && mount --bind "$toolkit" "$2/merged$toolkit"
            done
            enter_root "$2/merged" "apt-get -qq update && apt-get -qq install -y --no-install-recommends python3-venv >/dev/null && python3 %s/source/tests/slow/test_jobs.py inside" "$2/shown"
        """ % SHOWN
        sys.exit(subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", "-c", script, "-", root, d], cwd=TOP).returncode)


def tools():
    """act and bitrab, from the Python index."""
    subprocess.run(["python3", "-m", "venv", "/opt/tools"], check=True)
    subprocess.run(["/opt/tools/bin/pip", "--cert", SHOWN + "/ca-certificates.crt", "install", "--quiet", "--disable-pip-version-check", "--requirement", os.path.join(HERE, "requirements-jobs.txt")], check=True)
    return "/opt/tools/bin/"


def say(text):
    print(text, flush=True)


def git(where, *words):
    subprocess.run(["git", "-C", where, "-c", "user.name=T", "-c", "user.email=t@example.invalid", *words], check=True, stdout=subprocess.DEVNULL)


class Jobs:
    """A repository that has the file, and the words of `ptbuild matrix` that made it."""

    def __init__(self, world):
        from toy import host_python
        from toy_cuda import pin, toolkit

        self.world = world
        self.cuda = bool(glob.glob("/usr/local/cuda*/bin/nvcc"))
        python = host_python().replace(".", "")
        if self.cuda:
            pin(world, "jobs")
            where, self.gpus, self.isas = "cuda%s-" % toolkit().replace(".", "_"), ("sm75", "sm80", "sm90", "sm75+sm90"), ("avx", "avx2")
            more = ["--without", "cudnn"] + [w for t in ("USE_CUSPARSELT", "USE_CUFILE", "USE_NCCL") for w in ("--set", t + "=OFF")]
        else:
            world.pin("setup-py-env", None, "jobs")
            where, self.gpus, self.isas, more = "", ("cpu",), ("avx", "avx2"), []
        self.variants = ["pytorch-python%s-%s%s-%s" % (python, where, gpu, isa) for gpu in self.gpus for isa in self.isas]
        with open(world.path("variants"), "w", encoding="utf-8") as f:
            f.write("\n".join(self.variants) + "\n")
        self.words = ["--file", world.path("variants"), "--release", "2.9.1-jobs", "--profiles", world.profiles, *more]
        labels = re.findall(r'"runs_on": \[\s*"([^"]+)"', self.ptbuild("--format", "github"))
        self.labels = set(labels)
        say(self.ptbuild().split("\nwave  ")[0])

    def ptbuild(self, *words):
        got = subprocess.run(["ptbuild", "matrix", *self.words, *words], capture_output=True, text=True)
        assert got.returncode == 0, got.stderr
        return got.stdout

    def repository(self, name, path, document):
        where = self.world.path(name)
        git(".", "clone", "--quiet", os.path.join(SHOWN, "source"), where)
        os.makedirs(os.path.dirname(os.path.join(where, path)), exist_ok=True)
        with open(os.path.join(where, path), "w", encoding="utf-8") as f:
            json.dump(document, f, indent=1)
        git(where, "add", "-A")
        git(where, "commit", "-qm", "jobs")
        return where


def check(jobs, engine, number, log, wheels, index, seconds):
    """What a run must have given: every wheel, in the index too; and what the compiler cache's log says: each unit compiled once in the first run, none in the second."""
    assert len(wheels) == len(jobs.variants), wheels
    for wheel in wheels:
        assert urllib.parse.quote(wheel) in index, (wheel, index)
    counts = [(int(n), int(m)) for n, m in re.findall(r"  units +(\d+) compiled, (\d+) from the compiler cache", log)]
    assert len(counts) == len(jobs.variants), counts
    compiled, cached = map(sum, zip(*counts))
    each = {n + m for n, m in counts}
    assert len(each) == 1, counts # every variant has the same sources
    gpu = 2 if jobs.cuda else 0 # one.cu and two.cu
    once = len(jobs.isas) * (each.pop() - gpu) + len(jobs.gpus) * gpu
    say("%s run %d: %d jobs green in %.0f s; units: %d compiled, %d from the cache (%.0f %%)" % (engine, number, len(counts) + 1, seconds, compiled, cached, 100 * cached / (compiled + cached)))
    assert compiled == (once if number == 1 else 0), (counts, once)


def run(command, where, log):
    start = time.monotonic()
    with open(log, "w", encoding="utf-8") as f:
        code = subprocess.run(command, cwd=where, stdout=f, stderr=subprocess.STDOUT, timeout=LIMIT).returncode
    with open(log, encoding="utf-8", errors="replace") as f:
        text = f.read()
    assert code == 0, "exit %d; the log ends: %s" % (code, text[-6000:])
    return text, time.monotonic() - start


def test_github(jobs, bin):
    """The jobs install their packages, and ptbuild from the checkout."""
    document = json.loads(jobs.ptbuild("--format", "github"))
    for job in document["jobs"].values():
        assert job.pop("container")["image"] == "debian:13"
        if "strategy" in job: # they share one root
            job["strategy"]["max-parallel"] = 1
    where = jobs.repository("github", ".github/workflows/wheels.yml", document)
    keeps = jobs.world.path("github-keeps")
    os.mkdir(keeps)
    local = set()
    for action in {step["uses"] for job in document["jobs"].values() for step in job["steps"] if "uses" in step}:
        name, commit = action.split("@")
        owner, repository = name.split("/")[:2]
        if repository != "checkout": # act does that itself
            local.add("%s/%s@%s=%s" % (owner, repository, commit, os.path.join(HERE, "actions", repository)))
    command = [bin + "act", "workflow_dispatch", "--cache-server-addr", "127.0.0.1", "--cache-server-path", jobs.world.path("github-caches"), "--action-cache-path", jobs.world.path("github-work"),
               "--action-offline-mode", "--pull=false", *[w for one in sorted(local) for w in ("--local-repository", one)]]
    for label in sorted(jobs.labels):
        command += ["-P", label + "=-self-hosted"]
    for number in (1, 2):
        env = {"GITHUB_RUN_ID": str(number), "STAND_IN": os.path.join(HERE, "actions", "stand_in.py"), "STAND_IN_KEEPS": keeps, **QUICK}
        log, seconds = run([*command, *[w for k, v in env.items() for w in ("--env", k + "=" + v)]], where, jobs.world.path("github-%d.log" % number))
        assert log.count("Job succeeded") == len(jobs.variants) + 1, log[-6000:]
        made = os.path.join(keeps, "artifacts", str(number), "index")
        check(jobs, "github", number, log, *indexed(made), seconds)


def test_gitlab(jobs, bin):
    """The root is the image, which has ptbuild. bitrab runs stages of one job in the repository itself and without caches; no stage of builds has one job here."""
    document = json.loads(jobs.ptbuild("--format", "gitlab", "--image", "example.org/ptbuild:1"))
    where = jobs.repository("gitlab", ".gitlab-ci.yml", document)
    for number in (1, 2):
        log, seconds = run([bin + "bitrab", "run", "--no-tui", "--yes", "-j", "2", "--parallel-backend", "thread"], where, jobs.world.path("gitlab-%d.log" % number))
        check(jobs, "gitlab", number, log, *indexed(os.path.join(where, "dist")), seconds)
        shutil.rmtree(os.path.join(where, "dist"))


def indexed(top):
    """The wheels there, and all pages of the index."""
    pages = []
    for folder, _, names in os.walk(top):
        pages += [open(os.path.join(folder, name), encoding="utf-8").read() for name in names if name.endswith(".html")]
    return sorted(name for name in os.listdir(top) if name.endswith(".whl")), "\n".join(pages)


def main():
    say("== packages and ptbuild, for the matrix itself")
    source = os.path.join(SHOWN, "source")
    for command in ("ci/install-packages", "cmake --preset release -DPTBUILD_TESTS=OFF", "cmake --build --preset release", "cmake --install build --prefix /usr/local"):
        subprocess.run(command.split(), cwd=source, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "CMAKE_C_COMPILER_LAUNCHER": "ccache"})
    from toy import World

    world = World("/usr/local/bin/ptbuild")
    jobs, bin = Jobs(world), tools()
    test_github(jobs, bin)
    test_gitlab(jobs, bin)
    world.close()


if sys.argv[1] == "inside":
    main()
else:
    outside(os.path.abspath(sys.argv[1]))
