#!/usr/bin/env python3
"""ci/Dockerfile by Docker and by buildah, with the commands of docs/ci.md: torchaudio for the torch of the image, cold, warm, and with other layers but the same cache mount.

usage: test_containers.py ROOT PTBUILD [ENGINE...]

The engines are Debian 13's own, in a copy-on-write view of ROOT, a bare one (make_bare in ci/lib.sh), with mounts, processes and control groups of their own; their data lie in a new directory below
/var/tmp and go with it. The base image is a Debian 13 without anything more, made by mmdebstrap. PTBUILD verifies the wheels. What is built is HEAD. Needs root and the network (apt), 12 GB and a quarter of an hour.
"""

import contextlib
import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
SHOWN = "/srv/ptbuild" # where the root sees the directory of the test
ENGINES = ("docker", "buildah")
PACKAGES = "docker.io docker-cli docker-buildx buildah netavark iproute2"
WARM, TRIES = 10, 3 # seconds that a build may take that has nothing to do; how often that is tried
LIMIT = 1500 # seconds for one command
# What the official image has on top of Debian: no packages and lists are kept, and lists are compressed.
APT = 'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };\nDir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\nAcquire::GzipIndexes "true";\nAcquire::Languages "none";\n'


def say(text):
    print(text, flush=True)


def base_image(path):
    """A Debian 13 as an image begins, as a tar archive; apt of it goes where this machine's does."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
        conf.write(APT)
        conf.flush()
        script = '. ci/lib.sh && exec mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io --customize-hook="copy-in $1 /etc/apt/apt.conf.d" trixie "$2" "$(own_mirror)"'
        os.chmod(conf.name, 0o644)
        subprocess.run(["bash", "-c", script, "-", conf.name, path], cwd=TOP, check=True)


def drop_groups(name):
    """The control groups of the engines, empty now, in every hierarchy."""
    for top, folders, _ in os.walk("/sys/fs/cgroup", topdown=False):
        if "/" + name in top:
            with contextlib.suppress(OSError):
                os.rmdir(top)


def wheels(folder):
    return {name: open(os.path.join(folder, name), "rb").read() for name in sorted(os.listdir(folder)) if name.endswith(".whl")}


def check_wheels(shown, ptbuild, engines):
    """Every build of every engine has given the same bytes, and ptbuild of this machine finds nothing wrong with them."""
    folders = sorted(name for name in os.listdir(shown) if name.startswith("dist-"))
    assert len(folders) == (1 + 2 * TRIES) * len(engines), folders
    all = {folder: wheels(os.path.join(shown, folder)) for folder in folders}
    first = all[folders[0]]
    assert len(first) == 1, list(first)
    for folder, have in all.items():
        assert have == first, "%s has %s, %s has other bytes" % (folder, list(have), folders[0])
    for name, data in first.items():
        say("%s  %s, %d times" % (hashlib.sha256(data).hexdigest(), name, len(all)))
        subprocess.run([ptbuild, "verify", os.path.join(shown, folders[0], name)], check=True)


def outside(root, ptbuild, engines):
    """The root's own copy of this script does the rest. Who ends the test (timeout) ends all of its group; the directory goes then, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("test_containers: was told to end"))
    with tempfile.TemporaryDirectory(prefix="ptbuild-containers-", dir="/var/tmp") as d:
        for name in ("upper", "work", "merged", "shown"):
            os.mkdir(os.path.join(d, name))
        shown = os.path.join(d, "shown")
        subprocess.run(["git", "clone", "--quiet", "--no-local", TOP, os.path.join(shown, "source")], check=True)
        base_image(os.path.join(shown, "base.tar"))
        script = """
            mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/merged" || exit
            . ci/lib.sh
            enter_root "$2/merged" "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends python3 %s >/dev/null && python3 %s/source/tests/slow/test_containers.py inside $3 $4" "$2/shown"
        """ % (PACKAGES, SHOWN)
        group = os.path.basename(d)
        code = subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", "-c", script, "-", root, d, group, " ".join(engines)], cwd=TOP).returncode
        drop_groups(group)
        check_wheels(shown, ptbuild, engines)
        sys.exit(code)


def manual():
    """The commands of the manual's section, by engine: what is indented and names it, or stands with what does."""
    with open(os.path.join(TOP, "docs", "ci.md"), encoding="utf-8") as f:
        section = f.read().split("\n## A Dockerfile build stage\n")[1].split("\n## ")[0]
    blocks = [block for block in re.split(r"\n\n+", section.strip("\n")) if block.startswith("    ")]
    found = {engine: [line.strip() for block in blocks if engine in block for line in block.splitlines()] for engine in ENGINES}
    assert found["docker"] and len(found["buildah"]) >= 2, found
    return found


def limits():
    """The manual's options for a root that may not raise its limits."""
    with open(os.path.join(TOP, "docs", "ci.md"), encoding="utf-8") as f:
        return re.search(r"`(--ulimit nproc=[^`]+)`", f.read()).group(1)


def run(command, log):
    """A command of the manual in the checkout: its exit code, its seconds and what it said."""
    start = time.monotonic()
    with open(log, "w", encoding="utf-8") as f:
        code = subprocess.run(["bash", "-ec", command], cwd=os.path.join(SHOWN, "source"), stdout=f, stderr=subprocess.STDOUT, timeout=LIMIT).returncode
    with open(log, encoding="utf-8", errors="replace") as f:
        return code, time.monotonic() - start, f.read()


class Docker:
    """The daemon has no bridge, and so no rules of a packet filter: steps that need the network have this machine's."""

    name = "docker"

    def __init__(self, group):
        os.environ["DOCKER_HOST"] = "unix:///run/ptbuild-docker.sock"
        os.mkdir(SHOWN + "/docker")
        command = ["dockerd", "--data-root", SHOWN + "/docker", "--exec-root", "/run/ptbuild-docker", "--pidfile", "/run/ptbuild-docker.pid", "--host", os.environ["DOCKER_HOST"],
                   "--iptables=false", "--ip6tables=false", "--bridge=none", "--cgroup-parent", group]
        with open(SHOWN + "/dockerd.log", "w", encoding="utf-8") as log:
            self.daemon = subprocess.Popen(command, stdout=log, stderr=log)
        self.wait()
        subprocess.run(["docker", "import", SHOWN + "/base.tar", "debian:13"], check=True, stdout=subprocess.DEVNULL)

    def wait(self):
        end = time.monotonic() + 60
        while subprocess.run(["docker", "version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            if self.daemon.poll() is not None or time.monotonic() > end:
                with open(SHOWN + "/dockerd.log", encoding="utf-8") as log:
                    sys.exit("NOT RUN: no Docker here; the daemon's log ends: " + log.read()[-3000:])
            time.sleep(0.2)

    def commands(self, manual, more, dist):
        command = manual[0] # the other one is for a first look
        return [command.replace("docker build", "docker build --network host --progress plain " + more).replace("--output dist", "--output " + dist)]

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait(60)


class Buildah:
    """The last command of the manual leaves the wheels in an image."""

    name = "buildah"

    def __init__(self, group):
        os.mkdir(SHOWN + "/tmp") # cache mounts go there
        with open(SHOWN + "/storage.conf", "w", encoding="utf-8") as f:
            f.write('[storage]\ndriver = "overlay"\ngraphroot = "%s/buildah"\nrunroot = "/run/ptbuild-buildah"\n' % SHOWN)
        os.environ.update(CONTAINERS_STORAGE_CONF=SHOWN + "/storage.conf", TMPDIR=SHOWN + "/tmp")
        subprocess.run(["bash", "-ec", 'c=$(buildah from scratch); buildah add -q "$c" %s/base.tar /; buildah commit -q "$c" debian:13; buildah rm "$c"' % SHOWN], check=True, stdout=subprocess.DEVNULL)

    def commands(self, manual, more, dist):
        more = limits() + " " + more  # not every root may have what buildah asks for
        return [line.replace("buildah bud", "buildah bud " + more) for line in manual] + ['c=$(buildah from ptbuild-wheels); cp -r "$(buildah mount "$c")/dist" %s; buildah rm "$c"' % dist]

    def stop(self):
        pass


def build(engine, manual, kind, *more):
    """One build by the manual's commands: its seconds and what it said."""
    arguments = " ".join("--build-arg " + shlex.quote(word) for word in ("PACKAGE=torchaudio", "OPTIONS=--torch root", *more))
    commands = engine.commands(manual, arguments, "%s/dist-%s-%s" % (SHOWN, engine.name, kind))
    code, seconds, text = run("\n".join(commands), "%s/%s-%s.log" % (SHOWN, engine.name, kind))
    assert code == 0, "%s, %s: exit %d; the log ends: %s" % (engine.name, kind, code, text[-6000:])
    say("%s, %s: exit 0, %.1f s" % (engine.name, kind, seconds))
    return seconds, text


def test_engine(engine, manual):
    """What takes no longer than WARM is the quickest of three: other programs of this machine are not meant."""
    cold = build(engine, manual, "cold")
    assert "22 compiled, 0 from the compiler cache" in cold[1], cold[1][-3000:]
    warm = [build(engine, manual, "warm-%d" % i)[0] for i in range(TRIES)]
    other = [build(engine, manual, "other-%d" % i, "BUILD_OPTIONS=--ccache-size %dG" % (20 + i)) for i in range(TRIES)]
    assert all("from the store; built in" in text for _, text in other), other
    late = [what for what, least in (("the same again", min(warm)), ("other layers", min(seconds for seconds, _ in other))) if least > WARM]
    assert not late, "more than %d s: %s" % (WARM, ", ".join(late))


def test_network(manual):
    """A container that has the network after all builds nothing: buildah ignores --network=none in the Dockerfile itself."""
    command = manual[-1].replace("""unshare --net sh -c 'ip link set lo up && exec "$@"' - """, "").replace("buildah bud", "buildah bud " + limits() + " --build-arg PACKAGE=torchaudio --build-arg 'OPTIONS=--torch root' --build-arg BUILD_OPTIONS=--keep")
    code, seconds, text = run(command, SHOWN + "/network.log")
    assert code and "PTBUILD_NETWORK says otherwise" in text, (code, text[-3000:])
    say("buildah, with the network up: refused, exit %d, %.1f s" % (code, seconds))


def inside(group, names):
    found, failed = manual(), 0
    for name in names:
        engine = {"docker": Docker, "buildah": Buildah}[name](group)
        try:
            test_engine(engine, found[name])
            if name == "buildah":
                test_network(found[name])
        except AssertionError as ex: # the other engine still runs
            say("FAILED: %s: %s" % (name, ex))
            failed = 1
        finally:
            engine.stop()
    sys.exit(failed)


if sys.argv[1] == "inside":
    inside(sys.argv[2], sys.argv[3:])
else:
    outside(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:] or ENGINES)
