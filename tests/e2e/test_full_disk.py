"""A full disk, a used up quota and a limit of a file's size, in many places of many commands: exit 8 with the words, nothing half-written, and the same command gets through once there is room."""

import ctypes
import errno
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
MS_REMOUNT = 32
ROOM = "size=512m,nr_inodes=100k"
KEPT = (".ptbuild-pyenv",)


def mount(kind, target, flags, options):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", target.encode(), kind, flags, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"cannot mount on {target}")


def leftovers(tops):
    """Files and directories that only a running ptbuild may have."""
    found = []
    for top in tops:
        for folder, dirs, names in os.walk(top):
            found += [os.path.join(folder, n) for n in [*dirs, *names] if n.startswith(".ptbuild-") and n not in KEPT]
        found += [os.path.join(top, "tmp", n) for n in (os.listdir(os.path.join(top, "tmp")) if os.path.isdir(os.path.join(top, "tmp")) and os.path.exists(os.path.join(top, "format")) else [])]
        found += [n for n in (os.listdir(top) if os.path.isdir(top) else []) if n.startswith("ptbuild-apt-")]
    return found


def run(command, env, limit=None):
    limited = ["sh", "-c", f'ulimit -f {limit} && exec "$@"', "sh", *command] if limit else command
    done = subprocess.run(limited, capture_output=True, text=True, errors="replace", env=env, timeout=600)
    return {"code": done.returncode, "text": done.stderr, "out": done.stdout}


def inside(spec):
    """In a mount namespace of its own: on a small disk, then on the same one with room."""
    mount(b"tmpfs", spec["disk"], 0, spec["options"])
    for source, to in spec["copy"]:
        shutil.copytree(source, to, symlinks=True, dirs_exist_ok=True)
    if spec["fill"] is not None:
        with open(os.path.join(spec["disk"], "filler"), "wb", 0) as f:
            v = os.statvfs(spec["disk"])
            f.write(bytes(max(0, v.f_bavail * v.f_bsize - spec["fill"])))
    first = run(spec["command"], spec["env"])
    left = leftovers(spec["watch"])
    mount(b"tmpfs", spec["disk"], MS_REMOUNT, ROOM)
    print(json.dumps({"first": first, "left": left, "second": run(spec["command"], spec["env"])}))


if sys.argv[1] == "--inside":
    with open(sys.argv[2]) as spec_file:
        inside(json.load(spec_file))
    sys.exit(0)

from debsite import Archive, Keys  # noqa: E402
from test_slim import image, box, pack  # noqa: E402
from toy import host_python, main, sanitizers  # noqa: E402
from wheelsite import clean_env, make_wheel, venv  # noqa: E402

SHIM = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "tests", "libfaulty.so")
WORDS = {errno.ENOSPC: "No space left on device", errno.EDQUOT: "Disk quota exceeded", errno.EFBIG: "File too large"}
HINTS = {errno.ENOSPC: "free some space", errno.EDQUOT: "quota", errno.EFBIG: "raise the limit"}
WHEEL = "torch-2.9.1-cp313-cp313-manylinux_2_28_x86_64.whl"
PACKAGES = 12
PART = """sources: made for a test
part: toy
kind: base
suite: toy
components: [main]
python: "3.13"
glibc: "2.41"
packages: [all]
exclude: []
keep: []
links: []
made: []
"""


class Disk:
    """What the commands need, made once; and the disk's directory."""

    def __init__(self, world):
        self.world, self.places, self.dir = world, 0, world.path("disk")
        os.makedirs(self.dir)
        self.env = clean_env(TMPDIR=world.path("roomy"), HOME=world.dir, ASAN_OPTIONS="detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", ""))
        os.makedirs(world.path("roomy"))
        self.official()
        self.archive()

    def official(self):
        """A wheel of the index, in a directory that pip takes it from, and its table."""
        folder = self.world.path("site")
        os.makedirs(folder)
        lib = self.world.path("lib")
        os.makedirs(lib)
        for name, data in {"box0": box(image(80, 1), image(90, 2)), "host": random.Random(1).randbytes(2 << 20)}.items():
            with open(os.path.join(lib, name), "wb") as f:
                f.write(data)
        source = '__asm__(".section .nv_fatbin,\\"a\\"\\n.balign 8\\nbox0: .incbin \\"box0\\"\\n.section .rodata\\n.incbin \\"host\\"\\n.text\\n");\nextern const unsigned char box0[];\nconst unsigned char *volatile use = box0;\n'
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-x", "c", "-o", "libtorch_cuda.so", "-"], input=source, text=True, cwd=lib, check=True)
        info = "torch-2.9.1.dist-info"
        with open(os.path.join(lib, "libtorch_cuda.so"), "rb") as f:
            library = f.read()
        pack(os.path.join(folder, WHEEL), {"torch/__init__.py": b"", "torch/version.py": b"cuda: str = '12.8'\n", "torch/lib/libtorch_cuda.so": library,
             f"{info}/METADATA": b"Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n", f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: cp313-cp313-manylinux_2_28_x86_64\n"})
        with open(os.path.join(folder, WHEEL), "rb") as f:
            data = f.read()
        with open(os.path.join(self.world.profiles, "official", "2.9.1"), "w") as f:
            f.write(f"ptbuild official 1\n{WHEEL} {hashlib.sha256(data).hexdigest()} {len(data)} -\n")
        self.site, self.size = folder, len(data)
        self.env.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=folder)

    def archive(self):
        keys = Keys(self.world.path("site"))
        archive = Archive(self.world.path("debian"), keys)
        noise = random.Random(2)
        for i in range(PACKAGES):
            archive.put(f"p{i:03}", "1.0", {"usr/": None, **{f"usr/p{i}-{k}": noise.randbytes(20000) for k in range(8)}})
        archive.put("all", "1", {"usr/": None}, f"Depends: {', '.join(f'p{i:03}' for i in range(PACKAGES))}\n")
        archive.publish()
        self.keyring, self.url = keys.ring, archive.serve()
        with open(os.path.join(self.world.profiles, "worlds", "toy.yaml"), "w") as f:
            f.write(PART)
        done = run([*self.command("world", cache=self.world.path("lock-store")), "lock", "toy", "--write", *self.of_archive()], self.env)
        assert done["code"] == 0, done["text"]
        keys.close()

    def of_archive(self):
        return ["--archive", f"debian={self.url}", "--keyring", self.keyring]

    def command(self, *words, cache=None, out=None):
        return [self.world.ptbuild, *words, "--profiles", self.world.profiles, "--cache", cache or self.world.path("store"), "--out", out or self.world.path("out")]

    def slim(self, *more, **kw):
        return [*self.command("slim", **kw), "--release", "2.9.1", "--gpu", "sm90", "--python", "3.13", "--platform", "x86_64-linux", *more]

    def make(self, **kw):
        return [*self.command("world", **kw), "make", "toy", *self.of_archive()]

    def on(self, *parts):
        return os.path.join(self.dir, *parts)

    def clear(self):
        for name in ("store", "out"):
            shutil.rmtree(self.world.path(name), ignore_errors=True)

    def full(self, command, options="size=64k", fill=None, copy=(), env=None, words="space left", second=0):
        """Runs it on a disk that is too small, and again with room."""
        self.places += 1
        self.clear()
        spec = {"disk": self.dir, "options": options, "fill": fill, "copy": copy, "command": command, "env": {**self.env, **(env or {})},
                "watch": [self.dir, self.on("store"), self.world.path("store"), self.world.path("out"), self.world.path("roomy")]}
        path = self.world.path("spec.json")
        with open(path, "w") as f:
            json.dump(spec, f)
        space = ["unshare", "--mount", "--propagation", "private"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"]
        done = subprocess.run([*space, sys.executable, os.path.abspath(__file__), "--inside", path], capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        check(seen["first"], words, command)
        assert seen["left"] == [], (command, seen["left"])
        assert seen["second"]["code"] == second, (command, seen["second"])
        return seen["first"]["text"]

    def shimmed(self, command, under, **settings):
        env = {**self.env, "LD_PRELOAD": " ".join([*sanitizers(self.world.ptbuild), SHIM]), "FAULTY_UNDER": ":".join(under), **{f"FAULTY_{k.upper()}": str(v) for k, v in settings.items()}}
        return run(command, env)

    def each(self, command, under, calls, number, share):
        """One call in so many of these fails, and all behind it; each is followed by the command on a good disk."""
        self.clear()
        count = self.world.path("count")
        done = self.shimmed(command, under, calls=calls, count=count)
        assert done["code"] == 0, done["text"]
        with open(count) as f:
            total = int(f.read())
        assert total, calls
        for at in sorted({1, *(max(1, int(total * s)) for s in share)}):
            self.places += 1
            self.clear()
            done = self.shimmed(command, under, calls=calls, at=at, errno=number, **{"for": 0})
            check(done, WORDS[number], (command, calls, at, total))
            assert HINTS[number] in done["text"].split("hint: ")[-1], (calls, at, done["text"])
            left = [n for n in leftovers([self.world.path("store"), self.world.path("out")])]
            assert left == [], (calls, at, left)
            again = run(command, self.env)
            assert again["code"] == 0, (calls, at, again["text"])


def of_disk(text, *options):
    """The hint names the disk, and of the options only these."""
    hint = text.split("hint: ")[-1]
    assert f"'{disk.dir}'" in hint, text
    assert [o for o in ("--cache", "--out", "TMPDIR") if o in hint] == list(options), text


def check(done, words, what):
    assert done["code"] == 8 and words.lower() in done["text"].lower(), (what, done)
    assert "wrong bytes" not in done["text"] and "changed at its source" not in done["text"], (what, done)
    assert done["text"].count("ptbuild: error: ") == 1, (what, done)


disk = None


def prepare(world):
    global disk
    disk = Disk(world)


def test_slim_download_by_pip(world):
    """The table has the wheel's size: pip is not started."""
    for size in ("64k", "512k", "1500k"):
        text = disk.full(disk.slim(cache=disk.on("store")), options=f"size={size}")
        hint = text.split("hint: ")[-1]
        assert f"'{disk.dir}" in text and "MB free, and the download needs" in text, text
        assert "--cache" in hint and "--out" not in hint, text


def test_slim_room_for_all_is_asked_before_the_download(world):
    """Of the output directory, and of one disk for both."""
    text = disk.full(disk.slim(out=disk.on("out")), options="size=1m")
    assert "MB free, and the output needs 2." in text, text
    text = disk.full(disk.slim(cache=disk.on("store"), out=disk.on("out")), options="size=3m")
    assert "MB free, and the output with the download needs 4." in text and "--cache or --out" in text, text


def test_slim_download_few_inodes(world):
    assert "more files" in disk.full(disk.slim(cache=disk.on("store")), options="size=100m,nr_inodes=7")


def test_slim_copy_from_a_mirror(world):
    disk.full(disk.slim("--mirror", disk.site, cache=disk.on("store")), options="size=1m", env={"PIP_FIND_LINKS": "/nonexistent"})


def test_slim_output(world):
    for size in ("64k", "1m", "4m"):
        text = disk.full(disk.slim(out=disk.on("out")), options=f"size={size}")
        hint = text.split("hint: ")[-1]
        assert "--out" in hint and "--cache" not in hint, text


def test_slim_environment(world):
    site = world.path("env", "lib", "python3.13", "site-packages")
    os.makedirs(site)
    shutil.unpack_archive(os.path.join(disk.site, WHEEL), site, "zip")
    text = disk.full([*disk.command("slim"), "--env", disk.on("env"), "--gpu", "sm90"], options="size=20m", fill=300000, copy=[(world.path("env"), disk.on("env"))])
    of_disk(text)


def test_slim_environment_where_an_option_would_not_help(world):
    """TMPDIR and the store are on the same disk, but no file of the environment is in them."""
    text = disk.full([*disk.command("slim", cache=disk.on("store")), "--env", disk.on("env"), "--gpu", "sm90"], options="size=20m", fill=300000,
                     copy=[(world.path("env"), disk.on("env")), (world.path("roomy"), disk.on("tmp"))], env={"TMPDIR": disk.on("tmp")})
    of_disk(text)


def test_verify(world):
    command = [world.ptbuild, "verify", os.path.join(disk.site, WHEEL), "--profiles", world.profiles]
    of_disk(disk.full(command, options="size=1m", env={"TMPDIR": disk.dir}, second=5), "TMPDIR")


def test_diff(world):
    wheel = os.path.join(disk.site, WHEEL)
    other = world.path("other", WHEEL)
    os.makedirs(os.path.dirname(other), exist_ok=True)
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name) + b"more")
    of_disk(disk.full([world.ptbuild, "diff", wheel, other, "--profiles", world.profiles], options="size=64k", env={"TMPDIR": disk.dir}), "TMPDIR")


def test_slim_calls(world):
    where = [world.path("store"), world.path("out")]
    disk.each(disk.slim(), where, "write", errno.ENOSPC, (0.3, 0.6, 0.9))
    disk.each(disk.slim(), where, "write", errno.EFBIG, (0.5,))
    disk.each(disk.slim(), where, "sync,rename", errno.EDQUOT, (0.3, 0.7))
    disk.each(disk.slim(), where, "make", errno.EDQUOT, (0.5,))


def test_slim_close(world):
    """A network file system tells of a quota when a file is closed."""
    disk.each(disk.slim("--mirror", disk.site), [world.path("store", "partial")], "flush", errno.EDQUOT, ())
    disk.each(disk.make(), [world.path("store", "partial"), world.path("store", "tmp")], "flush", errno.EDQUOT, (0.3, 0.6, 0.8))


def test_slim_limit_of_a_file(world):
    disk.places += 1
    disk.clear()
    check(run(disk.slim(), disk.env, limit=1000), "File too large", "ulimit")
    assert run(disk.slim(), disk.env)["code"] == 0


def big(files):
    files["big"] = random.Random(3).randbytes(2 << 20)


def test_fetch(world):
    world.pin("setup-py-env", change=big, name="big")
    command = lambda **kw: [*disk.command("fetch", **kw), "--profile", "cpu-avx2", "--release", "2.9.1-big", "--sources-only", "--root", "/"]
    for size in ("32k", "1m"):
        disk.full(command(cache=disk.on("store")), options=f"size={size}")
    disk.each(command(), [world.path("store")], "write", errno.EDQUOT, (0.5,))
    disk.each(command(), [world.path("store")], "sync", errno.ENOSPC, (0.5,))


def test_world_make(world):
    for options in ("size=64k", "size=100m,nr_inodes=60", "size=100m,nr_inodes=25"):
        disk.full(disk.make(cache=disk.on("store")), options=options)
    disk.each(disk.make(), [world.path("store")], "write", errno.EDQUOT, (0.2, 0.5, 0.8))


def test_world_lock(world):
    """apt-get says of a disk without room that a signature is not good."""
    disk.full([*disk.command("world"), "lock", "toy", *disk.of_archive()], options="size=20k", env={"TMPDIR": disk.dir})


def wheels(world):
    folder = world.path("wheels")
    if not os.path.isdir(folder):
        os.makedirs(folder)
        noise = random.Random(4).randbytes(400000).hex()
        make_wheel(folder, "torch", "2.9.1+cpu.avx2", marked=True, code=f"noise = '{noise}'\n")
    return folder


def test_index(world):
    command = [world.ptbuild, "index", disk.on("wheels"), "--profiles", world.profiles]
    disk.full(command, options="size=8m", fill=0, copy=[(wheels(world), disk.on("wheels"))])
    disk.full(command, options="size=8m", fill=9000, copy=[(wheels(world), disk.on("wheels"))])


def test_install(world):
    folder, env = wheels(world), world.path("into")
    subprocess.run([world.ptbuild, "index", folder, "--quiet", "--profiles", world.profiles], check=True)
    venv(env)
    command = [world.ptbuild, "install", folder, "--profiles", world.profiles, "--python"]
    offline = {"PIP_FIND_LINKS": "", "PIP_NO_INDEX": "", "PIP_INDEX_URL": f"file://{folder}"}
    disk.full([*command, disk.on("into", "bin", "python")], options="size=30m", fill=100000, copy=[(env, disk.on("into"))], env=offline)


def test_build(world):
    command = lambda **kw: [*disk.command("build", **kw), "--profile", "cpu-avx2", "--release", "2.9.1-setup-py-env", "--root", "/"]
    disk.full(command(cache=disk.on("store")), options="size=64k")
    disk.full(command(out=disk.on("out")), options="size=8k")


def test_enough_places(world):
    assert disk.places >= 20, disk.places
    print(f"{disk.places} places")


if __name__ == "__main__":
    main([t for n, t in list(globals().items()) if n.startswith("test_")], prepare)
