"""One command over several worlds: each is made once, each wheel is built in its own, and one that cannot be made stops nothing else."""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile

import faults_kinds
from debsite import Archive, Keys
from hostdeb import machine_deb
from toy import TOP, host_python, main

PYTHON = host_python()
TAG = PYTHON.replace(".", "")
OTHER = "3.12" if PYTHON != "3.12" else "3.13"
PART = """sources: made for a test
part: {name}
kind: base
suite: toy
components: [main]
python: "{python}"
glibc: "{glibc}"
packages: [machine, mark-{name}]
"""
MATRIX = """note: a world that can be made, and one that cannot
release: 2.9.1
pythons: ["{python}", "{other}"]
rows:
  - {{gpus: [cpu], isas: [avx2]}}
"""
CHECK = """
import json, sys
import torchaudio
want = json.loads(sys.argv[1])
print(json.dumps({"check": "version", "ok": torchaudio.__version__ == want["version"], "detail": ""}))
print(json.dumps({"done": True, "checks": 1, "failed": 0}))
"""

site = None


def libc():
    """glibc's version here."""
    return os.confstr("CS_GNU_LIBC_VERSION").split()[1]


class Site:
    """An archive with this machine as a package, two bases of it, and releases that stand on them."""

    def __init__(self, world):
        self.world = world
        os.makedirs(world.path("site"))
        self.keys = Keys(world.path("site"))
        self.archive = Archive(world.path("site", "debian"), self.keys)
        self.archive.put("machine", "1", {})
        self.replace("machine", machine_deb("machine"))
        for name in ("one", "two"):
            self.archive.put(f"mark-{name}", "1", {"usr/": None, "usr/share/": None, f"usr/share/{name}": name.encode()})
            with open(os.path.join(world.profiles, "worlds", f"{name}.yaml"), "w") as f:
                f.write(PART.format(name=name, python=PYTHON, glibc=libc()))
        self.archive.publish()
        for name in ("one", "two"):
            done = self.run("world", "lock", name, "--write", "--keyring", self.keys.ring)
            assert done.returncode == 0, done.stderr
        self.cannot_be_made("python" + OTHER.replace(".", "_"))
        self.release("2.9.1", "one", pythons=[PYTHON, OTHER])
        self.release("2.8.0", "two")
        self.torchaudio("2.8.0")

    def replace(self, name, data):
        version, _, more = self.archive.packages[name]
        self.archive.packages[name] = (version, data, more)
        with open(os.path.join(self.archive.top, self.archive.path_of(name)), "wb") as f:
            f.write(data)

    def cannot_be_made(self, part):
        """The shipped part of another Python, whose archive is nowhere."""
        (lock,) = [n for n in os.listdir(os.path.join(TOP, "profiles", "worlds")) if re.fullmatch(rf"{part}\.{os.uname().machine}-linux\.lock", n)]
        path = os.path.join(self.world.profiles, "worlds", lock)
        with open(path) as f:
            text = re.sub(r"https://\S+/", "https://127.0.0.1:9/", f.read())
        with open(path, "w") as f:
            f.write(text)

    def release(self, name, base, pythons=None):
        """The quick stand-in as one of upstream's own releases, which a variant's name alone picks."""
        faults_kinds.pin_tiny(self.world, "tiny", base.encode())
        with open(self.world.release("tiny")) as f:
            text = f.read()
        os.unlink(self.world.release("tiny"))
        archive = self.world.path(f"tiny-{name}.tar.gz")
        os.rename(self.world.path("tiny.tar.gz"), archive)
        text = text.replace("name: 2.9.1-tiny", f"name: {name}\nworlds: [{{base: {base}}}]").replace("2.9.1", name).replace("/tiny.tar.gz", f"/tiny-{name}.tar.gz")
        if pythons:
            text = re.sub(r"^pythons: .*", f"pythons: {json.dumps(pythons)}", text, flags=re.M)
        with open(os.path.join(self.world.profiles, "releases", f"{name}.yaml"), "w") as f:
            f.write(text)

    def torchaudio(self, release):
        """The same stand-in under another name."""
        files = {}
        with tarfile.open(self.world.path(f"tiny-{release}.tar.gz")) as t:
            for m in t.getmembers():
                files[m.name] = t.extractfile(m).read()
        setup = "tiny-1.0/setup.py"
        files[setup] = files[setup].replace(b"torch/", b"torchaudio/").replace(b"torch-{version}", b"torchaudio-{version}").replace(b"Name: torch\\n", b"Name: torchaudio\\n").replace(b'"PYTORCH_BUILD_VERSION"', b'"BUILD_VERSION"')
        files["tiny-1.0/__init__.py"] = files["tiny-1.0/__init__.py"].replace(b"torch._C", b"torchaudio._C").replace(b'"torch"', b'"torchaudio"')
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w:gz") as t:
            for name, data in sorted(files.items()):
                info = tarfile.TarInfo(name)
                info.size, info.mtime, info.mode = len(data), 1700000000, 0o644
                t.addfile(info, io.BytesIO(data))
        path = self.world.path("audio.tar.gz")
        with open(path, "wb") as f:
            f.write(raw.getvalue())
        sha256 = hashlib.sha256(raw.getvalue()).hexdigest()
        with open(os.path.join(self.world.profiles, "releases", f"{release}.yaml"), "a") as f:
            f.write(f'torchaudio:\n  version: 2.8.0\n  backend: setuptools\n  sources:\n    - name: audio.tar.gz\n      sha256: {sha256}\n      urls: ["file://{path}"]\n')
        with open(os.path.join(self.world.profiles, "checks", "check_torchaudio.py"), "w") as f:
            f.write(CHECK)

    def run(self, *words, cache=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith("PTBUILD_ARCHIVE") and k != "PTBUILD_LOWER_STORE"}
        return self.world.run(*words, "--archive", f"debian={self.archive.top}", cache=cache, env={**env, "no_proxy": "*"})


def prepare(world):
    global site
    site = Site(world)


def stands_on(item):
    return item["record"]["inputs"]["world"]


def made(stderr, name):
    return len(re.findall(rf"created world {re.escape(name)} in", stderr))


def test_each_is_built_in_its_own(world):
    done = site.run("build", f"pytorch-python{TAG}-cpu-avx2", f"torchaudio-python{TAG}-cpu-avx2", "--json")
    assert done.returncode == 0, done.stderr[-3000:]
    items = {(i["variant"].split("-")[0], i["record"]["release"]): i for i in json.loads(done.stdout)}
    assert sorted(items) == [("pytorch", "2.8.0"), ("pytorch", "2.9.1"), ("torchaudio", "2.8.0")], items.keys()
    names = {k: stands_on(i)["name"] for k, i in items.items()}
    assert names == {("pytorch", "2.9.1"): "one", ("pytorch", "2.8.0"): "two", ("torchaudio", "2.8.0"): "two"}, names
    assert stands_on(items["pytorch", "2.9.1"])["key"] != stands_on(items["pytorch", "2.8.0"])["key"]
    assert made(done.stderr, "one") == made(done.stderr, "two") == 1, done.stderr
    again = site.run("build", f"pytorch-python{TAG}-cpu-avx2", f"torchaudio-python{TAG}-cpu-avx2", "--json", "--offline")
    assert again.returncode == 0 and all(i["store_hit"] for i in json.loads(again.stdout)) and not made(again.stderr, "one"), again.stderr
    assert {i["record"]["sha256"] for i in json.loads(again.stdout)} == {i["record"]["sha256"] for i in items.values()}


def test_built_twice_in_a_world(world):
    """The second build has a store of its own and the world of the first."""
    done = site.run("build", f"pytorch-python{TAG}-cpu-avx2", "--release", "2.9.1", "--check", "--json")
    assert done.returncode == 0, done.stderr[-3000:]
    (item,) = json.loads(done.stdout)
    assert item["check"]["same"] and stands_on(item)["name"] == "one", item


def test_the_world_of_another_store(world):
    """It is no changed one: the store that it lies in knows it."""
    root = site.run("world", "make", "one", "--quiet").stdout.strip()
    store = os.path.dirname(os.path.dirname(os.path.dirname(root)))
    words = ["build", f"pytorch-python{TAG}-cpu-avx2", "--release", "2.9.1", "--root", root]
    other = world.path("other")
    done = site.run(*words, cache=other)
    assert done.returncode == 7 and f"the world '{root}' is of another store" in done.stderr and f"add --lower-store {store}" in done.stderr, done.stderr
    done = site.run(*words, "--lower-store", store, cache=other)
    assert done.returncode == 0, done.stderr


def test_one_that_cannot_be_made_stops_nothing_else(world):
    matrix = world.path("worlds.yaml")
    with open(matrix, "w") as f:
        f.write(MATRIX.format(python=PYTHON, other=OTHER))
    shutil.rmtree(world.out, ignore_errors=True)
    other = OTHER.replace(".", "")
    done = site.run("build", "--matrix", matrix, "--json")
    assert done.returncode == 4, (done.returncode, done.stderr[-3000:])
    good, bad = json.loads(done.stdout)
    assert good["variant"] == f"pytorch-python{TAG}-cpu-avx2" and stands_on(good)["name"] == "one" and os.path.exists(good["wheel"]), good
    assert (bad["variant"], bad["error"]["exit_code"]) == (f"pytorch-python{other}-cpu-avx2", 4), bad
    assert f"world 'one+python{OTHER.replace('.', '_')}'" in bad["error"]["message"], bad
    assert "1 of 2 variants of matrix" in done.stderr and len(world.wheels()) == 1, done.stderr
    # Words without a matrix: what cannot be is told before anything is built.
    shutil.rmtree(world.out, ignore_errors=True)
    done = site.run("build", f"pytorch-python{TAG}-cpu-avx2", f"pytorch-python{other}-cpu-avx2")
    assert done.returncode == 4 and not world.wheels(), (done.returncode, done.stderr[-3000:])


def test_doctor_and_fetch_go_root_by_root(world):
    words = [f"pytorch-python{TAG}-cpu-avx2", f"torchaudio-python{TAG}-cpu-avx2"]
    done = site.run("doctor", *words, "--json")
    assert done.stdout, done.stderr
    roots = [d["root"] for d in json.loads(done.stdout)]
    assert len(roots) == 2 and roots[0] != roots[1] and all("/worlds/" in r for r in roots), (roots, done.stderr)
    done = site.run("fetch", *words, "--json", "--offline")
    assert done.returncode == 0, done.stderr
    asked = [r["variant"].split("-")[0] for r in json.loads(done.stdout)["requirements"]]
    assert asked == ["pytorch", "pytorch", "torchaudio"], asked


def test_doctor_tells_that_no_archive_is_known(world):
    bin_dir = world.path("no-apt")
    os.makedirs(bin_dir)
    for name in os.listdir("/usr/bin"):
        if not name.startswith("apt"):
            os.symlink(os.path.join("/usr/bin", name), os.path.join(bin_dir, name))
    env = {k: v for k, v in os.environ.items() if not k.startswith("PTBUILD_")}
    words = [world.ptbuild, "--profiles", world.profiles, "--cache", world.path("nothing"), "doctor", f"pytorch-python{TAG}-cpu-avx2", "--release", "2.9.1"]
    done = subprocess.run(words, capture_output=True, text=True, env={**env, "PATH": bin_dir}, check=False)
    assert done.returncode == 4 and "no address of the archive 'debian' is known" in done.stderr and "PTBUILD_ARCHIVE_DEBIAN" in done.stderr, (done.stdout, done.stderr)
    known = subprocess.run([*words, "--archive", f"debian={site.archive.top}"], capture_output=True, text=True, env={**env, "PATH": bin_dir}, check=False)
    assert "no address" not in known.stdout + known.stderr and " MB for the world" in known.stdout, (known.stdout, known.stderr)


def test_keys_are_closed(world):
    site.keys.close()


if __name__ == "__main__":
    if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 3 << 30:
        tempfile.tempdir = "/dev/shm"
    main([t for n, t in list(globals().items()) if n.startswith("test_")], prepare)
