"""Hostile builds of the stand-in package against the protections of the sandbox: the build as user 0, what it can still reach, and libraries of the host that it takes into its wheel. Each case
asserts that the attack ran and what came of it; with each protection taken away an attack gets through. As the caller; root also tries it as a user.

    test_sandbox.py PTBUILD [CASE...]
"""

import concurrent.futures
import ctypes
import errno
import glob
import json
import os
import re
import stat
import struct
import subprocess
import sys
import threading
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import toy  # noqa: E402

ERA = "setup-py-env"
# The kernel's Landlock; below 2 there is none that builds could live with, below 6 it knows no signals.
LANDLOCK = ctypes.CDLL(None).syscall(444, None, 0, 1)
BUILD_USER = 65525
PLAIN_USER = 54321  # no account has it
DONE = "through"

# What each attack must end with; the first of several is what it is with all protections.
INSIDE = {
    "core_pattern": ("EACCES", "EROFS", "EPERM"), "any_setting": ("EACCES",), "sysrq": ("EACCES", "EROFS", "ENOENT"), "setuid": ("EPERM",), "setuid_setgid": ("EPERM",),
    "created_setuid": ("EPERM",), "device": ("EACCES", "EPERM"), "owner": ("EPERM", "EINVAL"), "oom_score": ("EROFS",), "memory_in_dev": ("EROFS",), "score": ("500",),
    "keys": ("EACCES", "ENOENT"), "search_key": ("ENOSYS",), "add_key": ("ENOSYS",), "io_uring": ("ENOSYS",), "bpf": ("EPERM",), "perf": ("EPERM",), "userfaultfd": ("EPERM",),
    "vsock": ("EAFNOSUPPORT",), "alg": ("EAFNOSUPPORT",), "bluetooth": ("EAFNOSUPPORT",), "tipc": ("EAFNOSUPPORT",), "audit": ("EPROTONOSUPPORT",), "high_family": ("EAFNOSUPPORT",),
    "name_space": ("EPERM",), "clone3": ("ENOSYS",), "mount": ("EPERM",), "ptrace": ("EPERM",), "read_memory": ("EPERM",), "handle": ("EPERM",), "unknown_call": ("ENOSYS",),
    "chmod_at": ("ENOSYS",), "pipe": ("EACCES",) if LANDLOCK >= 2 else ("through",), "signal": ("EPERM",) if LANDLOCK >= 6 else ("through",),
}

FORKS = "import subprocess, time\nfor _ in range(60):\n    subprocess.Popen(['sleep', '300'])\n    time.sleep(0.01)\ntime.sleep(300)\n"
# A limit: its option and a small value, what the build does, and the words that end it.
LIMITS = {
    "processes": ("--max-processes", "50", FORKS, "processes and threads at once"),
    "memory": ("--max-memory", "400M", "import subprocess, time\nfor _ in range(3):\n    subprocess.Popen(['python3', '-c', 'x = bytearray(200 << 20); import time; time.sleep(300)'])\ntime.sleep(300)\n", "memory use reached"),
    "disk": ("--max-disk", "4M", "import os, time\nfor i in range(8):\n    open(f'fill{i}', 'wb').write(os.urandom(1 << 20))\ntime.sleep(300)\n", "its files reached"),
    "log": ("--max-log", "300K", "while True:\n    print('x' * 100)\n", "of output"),
    "silence": ("--max-silence", "2", "import time\ntime.sleep(300)\n", "wrote nothing for 2 s"),
    "time": ("--max-time", "3s", "import time\nwhile True:\n    print('still here', flush=True)\n    time.sleep(0.2)\n", "more than 3 s"),
}

# Each run of one build tree takes the next of the libraries.
LINK = """
if "--cmake-only" not in sys.argv:
    soname, tags, rpath = {cases}[len([n for n in os.listdir(".") if n.startswith("evil-")])]
    open("evil-" + os.urandom(4).hex(), "w").close()
    os.makedirs("build", exist_ok=True)
    open("evil.c", "w").write("int evil(void) {{ return 1; }}")
    open("use.c", "w").write("int evil(void); int use(void) {{ return evil(); }}")
    subprocess.check_call(["gcc", "-shared", "-fPIC", "-o", "build/" + soname, "-Wl,-soname," + soname, "evil.c"])
    Extension = lambda name, sources, _e=Extension, **kw: _e(name, [*sources, "use.c"], extra_objects=["build/" + soname], extra_link_args=["-Wl," + tags, "-Wl,-rpath," + rpath], **kw)
"""
# How the wheel's library finds the host's: soname, kind of search path, and the path (below the world).
LIBRARIES = {
    "rpath": ("libevil.so", "--disable-new-dtags", "{dir}/evil"),
    "runpath": ("libevil.so", "--enable-new-dtags", "{dir}/evil"),
    "link": ("libevil.so", "--disable-new-dtags", "{dir}/link"),
    "dots": ("libevil.so", "--disable-new-dtags", "/usr/lib/../..{dir}/evil"),
    "name_of_a_package": ("libjansson.so.4", "--disable-new-dtags", "{dir}/evil"),
}


class Hostile(toy.World):
    """A world whose builds may run as another user than this script."""

    def __init__(self, ptbuild, user):
        super().__init__(ptbuild)
        self.user = user
        os.makedirs(self.path("evil"))
        os.symlink("evil", self.path("link"))
        for soname in ("libevil.so", "libjansson.so.4"):
            subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", self.path("evil", soname), f"-Wl,-soname,{soname}"], input=b"int evil(void) { return 666; }", check=True)
        self.pin_hostile("inside", "import hostile\nif '--cmake-only' in sys.argv:\n    hostile.run()\n")
        for name, (_, _, code, _) in LIMITS.items():
            self.pin_hostile("limit-" + name, code)
        self.pin_hostile("library", LINK.format(cases=[(soname, tags, path.format(dir=self.dir)) for soname, tags, path in LIBRARIES.values()]))
        os.chmod(self.dir, 0o755)
        if user != os.geteuid():
            subprocess.run(["chown", "-R", f"{user}:{user}", self.dir], check=True)

    def pin_hostile(self, name, code):
        def change(files):
            files["hostile.py"] = open(os.path.join(HERE, "hostile.py"), "rb").read()
            old = files["setup.py"].decode()
            assert "HERE = " in old
            files["setup.py"] = toy.replaced(old, "\nHERE = ", "\nsys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\n" + code + "\nHERE = ").encode()

        self.pin(ERA, change, name)

    def build(self, name, *args, **kw):
        other = {} if self.user == os.geteuid() else {"user": self.user, "group": self.user, "extra_groups": []}
        command = self.command("build", "--profile", "cpu-avx2", "--release", f"2.9.1-{name}", "--json", *args)
        return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=self.dir, env={**os.environ, "HOME": self.dir}, preexec_fn=add_secret, **other, **kw)


def add_secret():
    """A session keyring with a key in it, which ptbuild inherits. Called as the user."""
    libc = ctypes.CDLL(None)
    libc.syscall(250, 1, None)
    libc.syscall(248, b"user", b"ptbuild-secret", b"hunter2", 7, -3)


def lay_pipes(world, done):
    """A pipe with a reader in what ptbuild shows a build read-only, for each build that asks for one."""
    readers = {}
    while not done.wait(0.05):
        for asked in glob.glob(os.path.join(world.dir, "*/build/*/src/want-pipe")):
            path = os.path.join(os.path.dirname(os.path.dirname(asked)), "cfg/pipe")
            if path in readers:
                continue
            try:
                os.mkfifo(path)
                os.chmod(path, 0o666)
                readers[path] = os.open(path, os.O_RDWR | os.O_NONBLOCK)
            except OSError as ex:  # another build's, or gone again
                assert ex.errno in (errno.EEXIST, errno.ENOENT), ex
    for fd in readers.values():
        os.close(fd)


def inside(world, *options):
    """The build that attacks, and what came of each attack."""
    result = world.build("inside", *options)
    trees = re.findall(r"building \S+ \(tree (.*)\)", result.stderr)
    assert result.returncode == 6 and len(trees) == 1, (result.returncode, result.stderr[-2000:])
    log = open(os.path.join(trees[0], "log/build.log")).read()
    got = dict(line[len("ATTACK "):].split(": ", 1) for line in log.splitlines() if line.startswith("ATTACK "))
    return got, os.path.join(trees[0], "src"), result


def check(count, name, held, what):
    count[0] += 1
    print(f"[{'       OK ' if held else '  FAILED  '}] {name}: {what}", flush=True)
    if not held:
        count[1].append(name)


def attack_inside(world, who, count):
    got, src, result = inside(world)
    for name, want in INSIDE.items():
        check(count, f"{who}/{name}", got.get(name) in want, got.get(name, "did not run"))
    # What is left outside: the attacks made these files.
    planted = [os.path.join(src, f"planted-{mode}") for mode in ("4755", "6755", "2755")]
    modes = [os.lstat(p) for p in planted]
    check(count, f"{who}/setgid", got["setgid"] in (DONE, "cleared") and not modes[2].st_mode & 0o6000, oct(modes[2].st_mode))
    check(count, f"{who}/nothing_setuid_stays", not any(os.lstat(os.path.join(d, n)).st_mode & 0o6000 for d, _, ns in os.walk(src) for n in ns if not stat.S_ISLNK(os.lstat(os.path.join(d, n)).st_mode)), len(modes))
    owner = BUILD_USER if world.user == 0 else world.user
    check(count, f"{who}/files_are_no_other_users", {s.st_uid for s in modes} == {owner}, {s.st_uid for s in modes})
    if world.user == 0:
        check(count, f"{who}/it_says_so", f"builds run as user {BUILD_USER}, not as root" in result.stderr, "")


def attack_limits(world, who, count):
    def one(name):
        option, value, _, words = LIMITS[name]
        result = world.build("limit-" + name, option, value)
        return name, result.returncode == 6 and words in result.stderr and option in result.stderr, result.stderr[-300:].strip()

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for name, held, said in pool.map(one, LIMITS):
            check(count, f"{who}/limit_{name}", held, said)


def attack_libraries(world, who, count):
    for name, (soname, _, _) in LIBRARIES.items():
        result = world.build("library")
        held = result.returncode == 7 and f"/evil/{soname}' belongs to no package" in result.stderr and "--without-protection packages" in result.stderr
        check(count, f"{who}/library_{name}", held, result.stderr[-300:].strip())
    result = world.build("library", "--without-protection", "packages", "--out", world.path("evil-dist"))
    with zipfile.ZipFile(glob.glob(world.path("evil-dist", "*.whl"))[0]) as wheel:
        vendored = [name for name in wheel.namelist() if "/libevil" in name]
    check(count, f"{who}/without_packages", len(vendored) == 1 and "belongs to no package of" not in result.stderr, vendored or result.stderr[-500:])


def attack_without(world, who, count):
    """Each protection alone taken away: an attack gets through, so no protection is decoration."""
    through = {
        "seccomp": lambda got, src: got["io_uring"] == DONE and got["setuid"] == DONE and got["handle"] != "EPERM",
        "proc": lambda got, src: got["oom_score"] == DONE and got["memory_in_dev"] == DONE,
        "limits": lambda got, src: got["score"] == DONE,
        "landlock": lambda got, src: got["pipe"] == DONE and got["signal"] == DONE,
        "setuid": lambda got, src: os.lstat(os.path.join(src, "planted-2755")).st_mode & 0o2000,
    }
    if LANDLOCK < 2:
        through.pop("landlock")
        print(f"this kernel's Landlock is {LANDLOCK}: nothing to take away", flush=True)
    # Root's keys are another user's to a build, whatever its keyring.
    if world.user != 0:
        through["keyring"] = lambda got, src: got["keys"] == DONE and got["search_key"] == "ENOSYS"
    if world.user != os.geteuid():
        through = {"keyring": through["keyring"]}
    if world.user == 0:
        through["user"] = lambda got, src: os.lstat(os.path.join(src, "planted-2755")).st_uid == 0

    def one(protection):
        # Without a user of their own builds take the compiler cache back, under the feet of the others.
        own = ["--cache", world.path("other")] if protection == "user" else []
        got, src, result = inside(world, "--without-protection", protection, *own)
        return protection, through[protection](got, src) and f"bubblewrap without {protection}, because of --without-protection" in result.stderr, got

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for protection, held, got in pool.map(one, through):
            check(count, f"{who}/without_{protection}", held, "it matters" if held else got)


def no_filters():
    """A kernel without seccomp, as far as what runs next can tell: a filter that refuses filters."""
    install([(0x20, 0, 0, 0), (0x15, 3, 0, 317), (0x15, 0, 3, 157), (0x20, 0, 0, 16), (0x15, 0, 1, 22), (0x06, 0, 0, 0x50000 | errno.EINVAL), (0x06, 0, 0, 0x7FFF0000)])


def answer(call, error):
    """A kernel that answers a system call so."""
    rows = [(0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, 0x50000 | error), (0x06, 0, 0, 0x7FFF0000)]
    install(rows)


def install(rows):
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program):
        raise OSError(ctypes.get_errno(), "no filter")


def doctor(world, *options, before=(), **kw):
    command = [*before, *world.command("doctor", "--profile", "cpu-avx2", "--release", "2.9.1-inside", "--json", *options)]
    other = {} if world.user == os.geteuid() else {"user": world.user, "group": world.user, "extra_groups": []}
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=world.dir, env={**os.environ, "HOME": world.dir}, **other, **kw)
    return result, {row["name"]: row for row in json.loads(result.stdout)["checks"]}


def attack_doctor(world, who, count):
    """What the machine lacks is said, refused, and gone without only when that is asked for."""
    protections = ("name-spaces", "user", "seccomp", "keyring", "proc", "setuid", "limits", "landlock", "packages", "processes")
    result, rows = doctor(world)
    gone = () if LANDLOCK >= 2 else ("landlock",)
    check(count, f"{who}/doctor_names_all", all(rows.get("protection " + w, {}).get("level") == ("warning" if w in gone else "ok") for w in protections), sorted(r for r in rows if r.startswith("protection ")))
    result, rows = doctor(world, preexec_fn=lambda: answer(444, errno.EOPNOTSUPP))
    said = "has no Landlock" in rows["protection landlock"]["text"]
    check(count, f"{who}/doctor_says_there_is_no_landlock", result.returncode == 0 and rows["sandbox"]["level"] == "ok" and rows["protection landlock"]["level"] == "warning" and said, rows["protection landlock"])
    if LANDLOCK >= 2:
        result, rows = doctor(world, preexec_fn=lambda: answer(446, errno.E2BIG))
        check(count, f"{who}/doctor_needs_the_landlock_there_is", result.returncode == 7 and "Landlock" in rows["sandbox"]["text"] and "--without-protection landlock" in rows["sandbox"]["fix"], rows["sandbox"])
    result, rows = doctor(world, "--without-protection", "proc")
    check(count, f"{who}/doctor_names_what_is_gone", rows["protection proc"]["level"] == "warning", rows["protection proc"])
    result, rows = doctor(world, preexec_fn=no_filters)
    check(count, f"{who}/doctor_needs_seccomp", result.returncode == 7 and rows["sandbox"]["level"] == "failure" and "--without-protection seccomp" in rows["sandbox"]["fix"], rows["sandbox"])
    result, rows = doctor(world, "--without-protection", "seccomp", preexec_fn=no_filters)
    check(count, f"{who}/doctor_goes_on_when_told", rows["sandbox"]["level"] == "ok" and rows["protection seccomp"]["level"] == "warning", rows["protection seccomp"])
    if world.user == 0:
        result, rows = doctor(world, before=["unshare", "--user", "--map-root-user"])
        check(count, f"{who}/doctor_needs_another_user", result.returncode == 7 and "root user" in rows["sandbox"]["text"] and "--without-protection user" in rows["sandbox"]["fix"], rows["sandbox"])


def main():
    start = time.monotonic()
    count = [0, []]
    asked = sys.argv[2:]
    users = {"root": 0, "user": PLAIN_USER} if os.geteuid() == 0 else {"user": os.geteuid()}
    worlds = {who: Hostile(sys.argv[1], user) for who, user in users.items()}
    attacks = [attack_inside, attack_limits, attack_without, attack_doctor, attack_libraries]
    # Who runs it makes no difference to what a wheel takes along.
    jobs = [(a, who) for a in attacks for who in users if (not asked or a.__name__ in asked) and (a != attack_libraries or who == list(users)[0])]
    ended = threading.Event()
    layers = [threading.Thread(target=lay_pipes, args=(world, ended)) for world in worlds.values()]
    for layer in layers:
        layer.start()
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(a, worlds[who], who, count) for a, who in jobs]:
                done.result()
    finally:
        ended.set()
        for layer in layers:
            layer.join()
        for world in worlds.values():
            world.close()
    print(f"[  PASSED  ] {count[0] - len(count[1])} test(s).")
    print(f"{count[0]} attacks, {len(count[1])} got through or did not run, {time.monotonic() - start:.0f} s")
    if count[1]:
        print(f"[  FAILED  ] {len(count[1])} test(s), listed below:\n" + "\n".join(f"[  FAILED  ] {n}" for n in count[1]))
    sys.exit(1 if count[1] else 0)


if __name__ == "__main__":
    main()
