"""Machines and roots that lack something: each is refused within seconds, with the way out, before the first compiler is run. Things are hidden by mounts in a name space
of this test's own, on this machine with the stand-in for PyTorch, and with PTBUILD_TEST_ROOT or a made world debian13 at hand on that root with PyTorch itself as well."""

import glob
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile

from toy import TOP, debian13, host_python, main

LIMIT_S = 10.0  # of processor time, which other work on the machine does not change
REACHED = "the-compiler-was-reached"
LIMIT = os.path.join(TOP, "ci", "memory-limited")
DEBIAN = debian13()
if os.path.basename(os.path.dirname(os.path.dirname(DEBIAN))) == "worlds":
    # As the world of another store it would be looked at as a whole, and what is laid over it here would be seen: in this place it is any root.
    with tempfile.TemporaryDirectory(prefix="ptbuild-root-") as place:
        space = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
        command = [*space, "sh", "-ec", 'mount --bind "$0" "$1"; shift; exec "$@"', DEBIAN, place, sys.executable, *sys.argv]
        sys.exit(subprocess.run(command, env=dict(os.environ, PTBUILD_TEST_ROOT=place)).returncode)


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Place:
    """A root to build in, and what is built."""

    def __init__(self, world, root):
        self.world, self.root = world, root
        self.python = "3.13" if root else host_python()
        self.profiles = world.path("profiles-of-root") if root else world.profiles
        self.lib = f"/usr/lib/python{self.python}"
        self.gone = world.path("gone")
        os.makedirs(self.gone, exist_ok=True)
        if root and not os.path.isdir(self.profiles):
            shutil.copytree(os.path.join(TOP, "profiles"), self.profiles)
            # /tmp is in memory on many a host: what needs 12 GiB of disk there would be refused for that.
            release = os.path.join(self.profiles, "releases/2.6.0-debian.yaml")
            with open(release, encoding="utf-8") as f:
                text = f.read()
            assert "\ndisk: 12G\n" in text
            with open(release, "w", encoding="utf-8") as f:
                f.write(text.replace("\ndisk: 12G\n", "\ndisk: 1G\n"))

    def __str__(self):
        return "debian13" if self.root else "host"

    def script(self, name, text):
        path = self.world.path(name)
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)
        return path

    def over(self, path, what):
        """A shell line that puts a file or an empty directory over what is at `path` of the root, if it is there."""
        path = os.path.realpath((self.root or "") + path)
        return f"if [ -e {shlex.quote(path)} ]; then mount --bind {shlex.quote(what)} {shlex.quote(path)}; fi"

    def without(self, path):
        full = (self.root or "") + path
        return self.over(path, self.gone if os.path.isdir(full) else "/dev/null")

    def no_compiler(self):
        """Whoever compiles something is found out."""
        stub = self.script("compiler", f"echo {REACHED} >&2; exit 42")
        found = [p for name in ("cc1", "cc1plus") for p in glob.glob(f"{self.root or ''}/usr/lib*/gcc/*/*/{name}")]
        assert found, "no compiler to put something else in its place"
        return [self.over(p.removeprefix(self.root or ""), stub) for p in found]

    def build(self, *lines, before=(), options=(), profiles=None, chroot=False):
        """Runs a build in a mount name space where these shell lines were run first."""
        w = self.world
        shutil.rmtree(w.cache, ignore_errors=True)
        os.makedirs(w.cache)
        release = ["--release", "2.6.0-debian", "--root", self.root] if self.root else ["--release", "2.9.1-setup-py-env"]
        command = [w.ptbuild, "build", "--profiles", profiles or self.profiles, "--cache", w.cache, "--out", w.out, "--profile", "cpu-avx2", *release, *options]
        command = [*before, *command]
        if chroot:
            command = ["/usr/sbin/chroot", chroot, *command]  # which a user's PATH lacks
        text = "\n".join(["set -e", *self.no_compiler(), *lines, "exec " + shlex.join(command)])
        space = ["unshare", "--mount", "--propagation", "private"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
        start = cpu_seconds()
        done = subprocess.run([*space, "sh", "-c", text], capture_output=True, text=True, timeout=120, cwd=w.dir)
        return done, cpu_seconds() - start

    def refused(self, code, *parts, lines=(), **how):
        done, seconds = self.build(*lines, **how)
        print(f"    {self}: {seconds:.1f} s, exit {done.returncode}: {done.stderr.strip()}")
        assert done.returncode == code, f"{self}: exit {done.returncode} instead of {code}: {done.stderr}"
        assert seconds < LIMIT_S, f"{self}: {seconds:.1f} s"
        for part in parts:
            assert part in done.stderr, f"{self}: '{part}' is not in: {done.stderr}"
        assert REACHED not in done.stderr, f"{self}: {done.stderr}"
        assert "cannot be built here" not in done.stderr or " reasons:" not in done.stderr, f"{self}: more than was broken: {done.stderr}"
        left = [p for p in glob.glob(os.path.join(self.world.cache, "build", "*")) + glob.glob(os.path.join(self.world.cache, "compiled", "*"))]
        assert not left, f"{self}: it has begun: {left}"


def places(world):
    return [Place(world, None), *([Place(world, DEBIAN)] if os.path.isdir(DEBIAN) else [])]


IN_WORLD = "nothing is installed in a world of the store"


def apt(place, package):
    if place.root and "PTBUILD_TEST_ROOT" not in os.environ:
        return IN_WORLD
    return f"apt-get install -y {package}'" if place.root else f"sudo apt-get install {package}"


def can_mount():
    space = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    return subprocess.run([*space, "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True).returncode == 0


def needing(profiles, world, row):
    """Tables of a package that needs one thing more."""
    with_row = world.path("needing")
    shutil.rmtree(with_row, ignore_errors=True)
    shutil.copytree(profiles, with_row)
    with open(os.path.join(with_row, "needs.yaml"), "a") as f:
        f.write(f"  - {row}\n")
    return with_row


def test_the_compiler_would_be_found_out(world):
    for place in places(world):
        done, _ = place.build()
        assert done.returncode == 8 and REACHED in done.stderr, done.stderr


def test_no_ca_bundle(world):
    for place in places(world):
        pip = subprocess.run(["/usr/bin/python3", "-c", "import pip; print(pip.__version__.split('.')[0])"], capture_output=True, text=True).stdout
        if not place.root and int(pip or 0) < 25:
            print("    the pip of this machine does without")
            continue
        # The package is there, so its script makes the file again; without that script the package is to be installed.
        fix = "ca-certificates.crt" if apt(place, "") == IN_WORLD else "update-ca-certificates"
        place.refused(8, "CA bundle", "No such file", fix, lines=[place.without("/etc/ssl/certs")])
        if fix == "update-ca-certificates":
            gone = [place.without(path) for path in ("/etc/ssl/certs", "/usr/sbin/update-ca-certificates")]
            place.refused(8, "CA bundle", apt(place, "ca-certificates"), lines=gone)


def test_no_flatc(world):
    for place in places(world):
        profiles = place.profiles if place.root else needing(place.profiles, world, "{program: flatc, debian: flatbuffers-compiler, why: for the test}")
        place.refused(8, "flatc: not in the root", apt(place, "flatbuffers-compiler"), lines=[place.without("/usr/bin/flatc")], profiles=profiles)


def test_no_python_headers(world):
    for place in places(world):
        place.refused(8, "python3-dev: not in the Python", apt(place, "python3-dev"), lines=[place.without(f"/usr/include/python{place.python}")])


def test_no_python_module(world):
    for place in places(world):
        profiles = place.profiles if place.root else needing(place.profiles, world, "{module: numpy, debian: python3-numpy, why: for the test}")
        place.refused(8, "numpy: not in the Python", apt(place, "python3-numpy"), lines=[place.without("/usr/lib/python3/dist-packages/numpy")], profiles=profiles)


def test_wrong_cmake(world):
    for place in places(world):
        old = place.script("cmake", "echo cmake version 2.8.12")
        place.refused(7, "cmake is 2.8.12, release", "needs >=3.18", "--root", lines=[place.over("/usr/bin/cmake", old)])


def test_a_root_that_is_not_whole(world):
    """Without parts of the torch that a companion is built against, or without a shell; doctor says it, which runs the same checks to their end."""
    if not os.path.isdir(DEBIAN):
        print("    needs a Debian 13 root")
        return
    place = Place(world, DEBIAN)
    site, lib = "/usr/lib/python3/dist-packages", "/usr/lib/x86_64-linux-gnu"
    if not os.path.isdir(DEBIAN + site + "/torch"):
        print("    that root has no torch")
        return
    doctor = [world.ptbuild, "doctor", "--profiles", place.profiles, "--cache", world.cache, "--out", world.out, "--profile", "cpu-avx2", "--release", "2.6.0-debian",
              "--package", "torchaudio", "--torch", "root", "--root", DEBIAN]
    for hidden, said in ((f"{site}/torch", "it cannot be imported"), ("/usr/include/torch/csrc/api/include/torch", "its headers are not all there"),
                         (f"{lib}/cmake/Torch", "CMake does not find it"), ("/usr/bin/dash", "has no sh")):
        assert os.path.exists(DEBIAN + hidden), hidden
        space = ["unshare", "--mount", "--propagation", "private"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
        done = subprocess.run([*space, "sh", "-c", f"set -e\n{place.without(hidden)}\nexec {shlex.join(doctor)}"], capture_output=True, text=True, timeout=200, cwd=world.dir)
        assert done.returncode == 8 and said in done.stderr, (hidden, done.returncode, done.stderr)
        assert said.endswith("sh") or ("the root's torch cannot be used" in done.stderr and ("libtorch-dev" in done.stderr or IN_WORLD in done.stderr)), done.stderr


def test_no_user_name_spaces(world):
    """A process in a chroot cannot make any. Root's bubblewrap does without them, but not where it may not mount either. Who is not root is it in a namespace,
    which has no other user to become: there bubblewrap is refused."""
    with open("/proc/self/uid_map") as f:
        of_the_machine = os.geteuid() == 0 and f.read().split() == ["0", "0", "4294967295"]
    first, second = (("cannot create a mount namespace", "as another user"), ("user namespaces",)) if of_the_machine else (("user namespaces",),) * 2
    for place in places(world):
        top = world.path("chroot")
        os.makedirs(top, exist_ok=True)
        hidden = [f"mount --rbind / {top}"]
        done, _ = place.build(*hidden, chroot=top)
        if of_the_machine and "setuid use" in done.stderr:  # Debian 13's bubblewrap
            assert "--without-protection user" in done.stderr, done.stderr
            done, _ = place.build(*hidden, chroot=top, options=["--without-protection", "user"])
        assert REACHED in done.stderr and "sandbox" not in done.stderr, done.stderr
        powerless = ["setpriv", "--bounding-set=-sys_admin"]
        place.refused(7, "cannot create the sandbox", *first, lines=hidden, chroot=top, before=powerless)
        place.refused(7, "cannot create the sandbox", *second, lines=hidden, chroot=top, before=powerless, options=["--without-protection", "user"])


def test_full_disk(world):
    for place in places(world):
        size = "100m" if place.root else "512k"
        mounted = f"mount -t tmpfs -o size={size} none {world.cache}"
        place.refused(8, f"too little space left in '{world.cache}'", "it needs", "--cache DIR", lines=[mounted])


def test_no_memory(world):
    if subprocess.run([LIMIT, "100M", "true"], capture_output=True).returncode != 0:
        print("    needs control groups")
        return
    for place in places(world):
        place.refused(8, "memory", "one of them alone needs", "more memory", before=[LIMIT, "300M"])


def test_a_promise_of_no_network(world):
    """Without a sandbox the container's word counts for nothing: an interface that is up is found, and none in a name space that has none."""
    words = ["ptbuild", "doctor", "--offline", "--sandbox", "none", "--cache", world.cache]
    words[0] = world.ptbuild
    promise = dict(os.environ, PTBUILD_NETWORK="none")
    net = ["unshare", "--map-root-user", "--net", "bash", "-c", 'ip=$1; shift; [ -z "$ip" ] || python3 -c "$ip"; exec "$@"', "-"]
    # A bridge of its own name space: no other machine hears of it.
    up = "import fcntl,socket,struct;s=socket.socket();fcntl.ioctl(s,0x89a0,b'br-test\\0');fcntl.ioctl(s,0x8914,struct.pack('16sh14s',b'br-test',1,b''))"
    lines = []
    for setup, env in (("", promise), (up, promise), (up, os.environ)):
        got = subprocess.run([*net, setup, *words], capture_output=True, text=True, env=env)
        lines.append(re.findall(r"^(\w+) +network +(.*)$", got.stdout, re.M))
        assert got.returncode in (7, 8) if lines[-1][0][0] == "failure" else True, got.stderr
    assert lines == [
        [("ok", "none: only the loopback interface is up")],
        [("failure", "'br-test' is up, and a build without a sandbox has it: PTBUILD_NETWORK says otherwise")],
        [("warning", "'br-test' is up, and a build without a sandbox has it")],
    ], lines


def test_unknown_decoder_set(world):
    for place in places(world):
        profiles = world.path(f"fewer-sets-{place}")
        shutil.copytree(place.profiles, profiles, dirs_exist_ok=True)
        path = os.path.join(profiles, "extensions.yaml")
        with open(path) as f:
            text = f.read()
        fewer = re.sub(r"\bCMOV, ", "", text)
        assert fewer != text
        with open(path, "w") as f:
            f.write(fewer)
        place.refused(8, "has no row for the decoder's set 'CMOV'", "add the set to a row", profiles=profiles)


def test_no_pip(world):
    for place in places(world):
        place.refused(8, "pip: not in the Python", apt(place, "python3-pip"), lines=[place.without("/usr/lib/python3/dist-packages/pip")])


def test_no_venv(world):
    for place in places(world):
        place.refused(8, "python3-venv: not in the Python", apt(place, "python3-venv"), lines=[place.without(f"{place.lib}/venv")])
        # What Debian's package of that name holds.
        place.refused(8, "python3-venv: not in the Python", apt(place, "python3-venv"), lines=[place.without(f"{place.lib}/ensurepip")])


def test_noexec(world):
    for place in places(world):
        place.refused(8, f"programs in '{world.cache}' cannot be run", "--cache DIR", lines=[f"mount -t tmpfs -o noexec none {world.cache}"])


def test_an_output_directory_that_cannot_be_written(world):
    for place in places(world):
        os.makedirs(world.out, exist_ok=True)
        place.refused(8, f"cannot write into '{world.out}'", "--out DIR", lines=[f"mount -t tmpfs -o ro none {world.out}"])


def test_of_several_packages_all_are_looked_at_first(world):
    """PyTorch is fine, and would be built for an hour: torchvision lacks a header."""
    with open(world.release("setup-py-env")) as f:
        text = f.read()
    package = text[text.index("pytorch:") :].replace("pytorch:", "torchvision:").replace("backend: setup-py-env", "backend: setuptools")
    with open(world.release("two"), "w") as f:
        f.write(text.replace("2.9.1-setup-py-env", "2.9.1-two") + package)
    profiles = needing(world.profiles, world, "{header: no/such.h, package: torchvision, debian: no-such-dev, why: for the test}")
    for more in ([], ["--metadata-rev", "2"]):
        done = subprocess.run(
            [world.ptbuild, "build", "--profiles", profiles, "--cache", world.path("two"), "--out", world.out, "--profile", "cpu-avx2", "--release", "2.9.1-two"]
            + ["--package", "pytorch", "--package", "torchvision", *more],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 8 and "torchvision-python" in done.stderr and "no/such.h: not in the root" in done.stderr, done.stderr
        assert not glob.glob(world.path("two", "build", "*")) and not glob.glob(world.path("two", "objects", "wheel", "*")), done.stderr


def test_a_torch_that_cannot_be_had_is_tried_once(world):
    """Of a matrix of two packages that are built against it."""
    with open(world.release("setup-py-env")) as f:
        text = f.read()
    package = text[text.index("pytorch:") :].replace("backend: setup-py-env", "backend: setuptools")
    with open(world.release("three"), "w") as f:
        f.write(text.replace("2.9.1-setup-py-env", "2.9.1-three") + "".join(package.replace("pytorch:", f"{name}:") for name in ("torchvision", "torchaudio")))
    profiles = needing(world.profiles, world, "{header: no/such.h, package: pytorch, debian: no-such-dev, why: for the test}")
    matrix = world.path("companions.yaml")
    with open(matrix, "w") as f:
        f.write(f'note: companions\nrelease: 2.9.1-three\npythons: ["{host_python()}"]\nrows:\n  - {{packages: [torchvision, torchaudio], gpus: [cpu], isas: [avx2]}}\n')
    words = [world.ptbuild, "build", "--matrix", matrix, "--profiles", profiles, "--cache", world.path("three"), "--out", world.out, "--verbose"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 8, (done.returncode, done.stderr)
    assert done.stderr.count("needs the torch of its variant") == 1, done.stderr
    for name in ("torchvision", "torchaudio"):
        assert f"the torch that {name} is built against" in done.stderr, done.stderr


def test_doctor_says_ok_and_the_build_gets_through(world):
    """The trial is made by both, and remembered by what it depends on."""
    words = ["--profile", "cpu-avx2", "--release", "2.9.1-setup-py-env"]
    world.clear()
    doctor = world.run("doctor", *words)
    assert doctor.returncode == 0 and re.search(r"^ok +trial +test extension built", doctor.stdout, re.M), doctor.stdout + doctor.stderr
    said = "test extension built"
    # Nothing is written into the machine's own temporary directory, which may be small.
    first = world.run("build", "-v", *words, env={**os.environ, "TMPDIR": "/nowhere"})
    assert first.returncode == 0 and said not in first.stderr, first.stderr[-2000:]
    for stamp in glob.glob(world.path("cache", "stamps", "trial-*")):
        os.remove(stamp)
    again = world.run("build", "-v", *words, "--set", "USE_NUMA=ON")
    assert again.returncode == 0 and said in again.stderr, again.stderr[-2000:]
    third = world.run("build", "-v", *words, "--set", "USE_NUMA=ON", "--set", "USE_ITT=ON")
    assert third.returncode == 0 and said not in third.stderr, third.stderr[-2000:]


def test_a_trial_that_fails(world):
    """What no list can name: the extension does not get through, and its log is kept."""
    profiles = world.path("other-trial")
    shutil.copytree(world.profiles, profiles, dirs_exist_ok=True)
    with open(os.path.join(profiles, "trial", "trial.cpp"), "a") as f:
        f.write("#error what the test wants\n")
    world.clear()
    done = world.run("build", "--profile", "cpu-avx2", "--release", "2.9.1-setup-py-env", "--profiles", profiles, timeout=600)
    assert done.returncode == 8 and "the test build for" in done.stderr and "what the test wants" in done.stderr, done.stderr
    log = re.search(r"see its log '([^']+)'", done.stderr).group(1)
    assert "what the test wants" in open(log).read()
    assert not glob.glob(world.path("cache", "build", "*")) and not os.listdir(world.path("cache", "tmp")), done.stderr


TESTS = [
    test_the_compiler_would_be_found_out,
    test_no_ca_bundle,
    test_no_flatc,
    test_no_python_headers,
    test_no_python_module,
    test_wrong_cmake,
    test_a_root_that_is_not_whole,
    test_no_user_name_spaces,
    test_full_disk,
    test_no_memory,
    test_a_promise_of_no_network,
        test_unknown_decoder_set,
    test_no_pip,
    test_no_venv,
    test_noexec,
    test_an_output_directory_that_cannot_be_written,
]

if __name__ == "__main__":
    if not can_mount():
        print("no mount name space here: only what needs none is tested")
        TESTS = []
    main([*TESTS, test_of_several_packages_all_are_looked_at_first, test_a_torch_that_cannot_be_had_is_tried_once, test_doctor_says_ok_and_the_build_gets_through, test_a_trial_that_fails])
