"""The faults themselves: each a function that is handed a round (faults.Round), breaks something, and says what must hold afterwards."""

import ctypes
import errno
import glob
import hashlib
import http.server
import io
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import tarfile
import threading
import urllib.parse
import time

from toy import HERE, RELEASE, host_python

RPATH = "/ptbuild/rpath/" + "0123456789abcdef" * 32
STEPS = ("fetch", "unpack", "patch", "python", "build", "relocate", "pack", "verify")
# The share of rounds in which real compilers run; the others have had theirs.
COMPILED = {"kill": 0.1, "child": 0.2, "memory": 0.2, "both": 0.1, "enospc": 0.05, "clock": 0.1, "damage": 0.05}
# Of a fixed number of rounds: those that wait for a silent server have fewer.
WEIGHT = {"server": 0.5}

CHECK = '''\
import json, sys
import torch
want = json.loads(sys.argv[1])
checks = {"version": torch.__version__ == want["version"], "sum": torch.sum(10) == 45 or torch.sum(10) == 45 * 45}
for name, ok in checks.items():
    print(json.dumps({"check": name, "ok": bool(ok), "detail": ""}))
print(json.dumps({"done": True, "checks": len(checks), "failed": 0}))
'''


def pin_tiny(world, name="tiny", salt=b"", seconds=0):
    """The stand-in that needs no compiler: its module is made here, once. Another salt makes another variant; it takes that many seconds more."""
    base = os.path.join(HERE, "toys", "tiny")
    files = {n: open(os.path.join(base, n), "rb").read() for n in os.listdir(base) if os.path.isfile(os.path.join(base, n))}
    module = world.path("module.so")
    include = subprocess.run(["/usr/bin/python3", "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"], capture_output=True, text=True, check=True)
    rpath = f"-Wl,--disable-new-dtags,-rpath,{RPATH}"
    if not os.path.exists(module):
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", f"-I{include.stdout.strip()}", os.path.join(base, "module.c"), "-o", module, rpath, "-lyaml"], check=True)
    files["module.so"] = open(module, "rb").read()
    files["setup.py"] = files["setup.py"].replace(b'b"%d" % n', b'b"%d' + salt + b'" % n') + b"\nimport time\n\ntime.sleep(%d)\n" % seconds
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for file in sorted(files):
            info = tarfile.TarInfo(f"tiny-1.0/{file}")
            info.size, info.mtime, info.mode = len(files[file]), 1700000000, 0o644
            tar.addfile(info, io.BytesIO(files[file]))
    path = world.path(f"{name}.tar.gz")
    with open(path, "wb") as f:
        f.write(raw.getvalue())
    world.tiny_archive = path
    text = RELEASE.format(name=name, era="setuptools", python=host_python(), sha256=hashlib.sha256(raw.getvalue()).hexdigest(), url=f"file://{path}", requires="", extra="")
    with open(world.release(name), "w") as f:
        f.write(text)
    with open(os.path.join(world.profiles, "checks", "check_torch.py"), "w") as f:
        f.write(CHECK)


def end_round(r):
    if os.path.ismount(r.cache):
        subprocess.run(["umount", "--lazy", r.cache], check=False)


# SIGKILL


def kill_once(r):
    """At a random moment of a random step; before the first and after the last there are moments too."""
    step = r.rng.choice(("begin", *STEPS, *STEPS, "end"))
    seconds = r.bench.seconds[r.era]
    share = r.rng.random()
    p = r.popen(r.build_command())
    if step == "begin":
        time.sleep(share * 0.15)
    else:
        wanted = "verify" if step == "end" else step
        for line in p.stderr:
            if line.rstrip().endswith(f": {wanted}"):
                break
        length = seconds.get(wanted, 0.05)
        time.sleep(length + share * 0.1 if step == "end" else share * length)
    p.kill()
    text = p.stderr.read()
    p.wait()
    r.said.append(f"killed in {step} at {share:.2f} (exit {p.returncode}) {text[-300:]}")
    r.no_process()
    r.no_wrong_wheel()


def kill(r):
    r.begin(r.rng.choice(r.bench.STARTS[:3]))
    for _ in range(r.rng.randint(1, 3)):
        kill_once(r)
        if r.rng.random() < 0.3:
            r.verify()
    r.after()


# one of its processes, and its memory


def descendants(pid):
    """All processes below this one, with their resident pages: what it started, and what that did."""
    found, todo = [], [pid]
    while todo:
        for path in glob.glob(f"/proc/{todo.pop()}/task/*/children"):
            try:
                with open(path) as f:
                    below = [int(n) for n in f.read().split()]
                for n in below:
                    with open(f"/proc/{n}/statm") as f, open(f"/proc/{n}/comm") as name:
                        found.append((int(f.read().split()[1]), n, name.read().strip()))
                todo += below
            except OSError:
                pass
    return found


# At its end the sanitizer looks for leaks by a process of its own, and waits for ever for one that was killed.
NO_TRACER = {"ASAN_OPTIONS": "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", "")}


def struck(r, choose, itself=False):
    """The result of a build of which one process is killed at a random instant: the one that `choose` picks."""
    wait = r.rng.random() * sum(r.bench.seconds[r.era].values())
    p = r.popen(r.build_command(), NO_TRACER)
    own = [(0, p.pid, "ptbuild itself")] if itself else []

    def strike():
        time.sleep(wait)
        while p.poll() is None:
            found = [*own, *descendants(p.pid)]
            if found:
                _, victim, name = choose(found)
                r.said.append(f"killed {name} after {wait:.2f} s")
                try:
                    os.kill(victim, signal.SIGKILL)
                    return
                except ProcessLookupError:
                    pass
            time.sleep(0.005)

    thread = threading.Thread(target=strike)
    thread.start()
    text = p.communicate(timeout=900)[1]
    thread.join()
    r.said.append(f"exit {p.returncode}: {text.strip()[-700:]}")
    return p.returncode, text


def ended(r, code, text, killed=False):
    """It got through, says why not, or was itself what was killed."""
    r.no_process()
    r.no_wrong_wheel()
    if code != 0 and not (killed and code == -signal.SIGKILL):
        assert 3 <= code <= 8 and text.count("ptbuild: error: ") == 1, f"exit {code}: {text[-600:]}"


def child(r):
    """SIGKILL for any of its processes: a compiler, the sandbox, the keeper, a trial of the wheel."""
    r.begin(r.rng.choice(r.bench.STARTS[:3]))
    share = r.rng.random()
    for _ in range(r.rng.randint(1, 2)):
        ended(r, *struck(r, lambda found: found[int(share * len(found))]))
    r.after()


GROUPS = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"


def group_of(r, limit):
    """A cgroup with so little memory, where this user may make one."""
    for top, names in zip(GROUPS, (("memory.limit_in_bytes",), ("memory.max", "memory.swap.max"))):
        dir = os.path.join(top, f"ptbuild-{os.path.basename(r.top)}-{os.getpid()}")
        try:
            if not os.path.exists(os.path.join(top, "cgroup.procs")):
                continue
            os.mkdir(dir)
            for name, value in zip(names, (limit, 0)):
                with open(os.path.join(dir, name), "w") as f:
                    f.write(str(value))
            return dir
        except OSError:
            if os.path.isdir(dir):
                os.rmdir(dir)
    return None


def memory(r):
    """The kernel kills for memory: in a cgroup that has too little, or, as it would, the largest process."""
    r.begin(r.rng.choice(r.bench.STARTS[:3]))
    limit = int(2 ** r.rng.uniform(21, 27))
    dir = group_of(r, limit)
    if dir is None:
        ended(r, *struck(r, max), killed=True)
    else:
        r.said.append(f"{limit} bytes of memory")

        def enter():
            with open(os.path.join(dir, "cgroup.procs"), "w") as f:
                f.write("0")

        result = r.run(r.build_command(), NO_TRACER, preexec_fn=enter)
        ended(r, result.code, result.text, killed=True)
        os.rmdir(dir)
    r.after()


def both(r):
    """Two at once on one store, of which one may be killed, or lose one of its processes: the other gets through."""
    r.begin(r.rng.choice(r.bench.STARTS[:3]))
    others, share = [], r.rng.random()
    thread = threading.Thread(target=lambda: others.append(r.run(r.build_command("--out", os.path.join(r.top, "other")))))
    thread.start()
    try:
        if r.rng.random() < 0.3:
            need_fine(r.run(r.build_command()))
        else:
            struck(r, lambda found: found[int(share * len(found))], itself=share < 0.5)
    finally:
        thread.join()
    assert others, "the other one hangs"
    need_fine(others[0])
    r.after()


# a full disk


def tree_bytes(top):
    return sum(os.lstat(os.path.join(d, n)).st_blocks * 512 + 4096 for d, dirs, names in os.walk(top) for n in [*dirs, *names])


def enospc(r):
    if r.rng.random() < 0.5:
        shim(r, "write,sync,rename,make,copy", errno.ENOSPC, r.rng.choice((0, 0, 1)), "No space left on device")
        return
    start = r.rng.choice(r.bench.STARTS[:3])
    have = tree_bytes(r.bench.start(r.era, start))
    whole = tree_bytes(r.bench.start(r.era, "full"))
    size = have + int(r.rng.random() * (whole + 3_000_000 - have))
    os.makedirs(r.cache)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size // 4096 * 4 + 4}k", "none", r.cache], check=True)
    r.said.append(f"a disk of {size} bytes, {start} takes {have}")
    try:
        shutil.copytree(r.bench.start(r.era, start), r.cache, symlinks=True, dirs_exist_ok=True)
    except shutil.Error:
        pass  # too small even for that: what is there is a store all the same
    os.makedirs(r.out)
    if not os.path.exists(os.path.join(r.cache, "format")):
        with open(os.path.join(r.cache, "format"), "w"):
            pass
    result = r.run(r.build_command())
    r.no_process()
    r.no_wrong_wheel()
    r.fine_or_says(result, (8,), "No space left on device", "too little space left")
    # Not by mount(8): it repeats the options that are shown, and the owner's number means another user in a user name space.
    libc, ms_remount = ctypes.CDLL(None, use_errno=True), 32
    if libc.mount(b"none", r.cache.encode(), b"tmpfs", ms_remount, b"size=1g") != 0:
        raise OSError(ctypes.get_errno(), "the small disk does not become larger")
    r.after()


# calls that fail, by a preloaded library


def shim(r, calls, number, count, *words):
    """The n-th of these calls fails, or all from there on. How many there are is counted in a run of the same kind."""
    start = r.rng.choice(r.bench.STARTS)
    key = (r.era, start, calls)
    known = r.bench.__dict__.setdefault("counts", {})
    r.begin(start)
    if key not in known:
        count_file = os.path.join(r.top, "count")
        r.shimmed(r.build_command(), calls=calls, count=count_file)
        known[key] = int(open(count_file).read())
        shutil.rmtree(r.cache)
        shutil.rmtree(r.out)
        r.begin(start)
    at = r.rng.randint(1, max(1, known[key]))
    result = r.shimmed(r.build_command(), calls=calls, at=at, errno=number, **{"for": count})
    r.no_process()
    r.no_wrong_wheel()
    if number:
        r.fine_or_says(result, (8,), *words)
    else:
        need_fine(result)
    r.after()


def need_fine(result):
    assert result.code == 0, f"exit {result.code}: {result.text[-600:]}"


def eio(r):
    names = ["read", "write", "sync", "rename", "make", "open", "copy", "map", "close", "look"]
    calls = ",".join(r.rng.sample(names, r.rng.randint(1, 4)))
    shim(r, calls, errno.EIO, r.rng.choice((1, 1, 2, 0)), "Input/output error")


def short(r):
    """Reads and writes that move less than was asked for: no error, and no difference."""
    shim(r, r.rng.choice(("read,write", "read", "write")), 0, r.rng.choice((0, 0, 5)))


# the clock


def shift_times(r, seconds):
    for folder, dirs, names in os.walk(r.cache):
        for name in [*dirs, *names]:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            when = max(1, st.st_mtime + seconds)
            os.utime(path, (when, when), follow_symlinks=False)


def clock(r):
    """The time of day jumps while it runs, and what is there was written in the future or long ago."""
    r.begin(r.rng.choice(r.bench.STARTS))
    if r.rng.random() < 0.6:
        kill_once(r)
    if r.rng.random() < 0.7:
        by = r.rng.choice((-1, 1)) * r.rng.choice((3600, 86400 * 400, 86400 * 3650))
        r.said.append(f"times moved by {by}")
        shift_times(r, by)
    need_fine(r.shimmed(r.build_command(), clock=r.rng.randint(1, 2**31)))
    if r.rng.random() < 0.3:
        need_fine(r.shimmed(r.command("cache", "gc", "--keep-days", "1"), clock=r.rng.randint(1, 2**31)))
    r.after()


# umask


def umask(r):
    """Whatever it is: the owner can use what was made, strangers cannot write it, and the wheel is the same."""
    mask = r.rng.choice((0o777, 0o000, 0o077, 0o700, 0o277, 0o002, r.rng.randint(0, 0o777)))
    r.said.append(f"umask {mask:o}")
    r.begin(r.rng.choice(r.bench.STARTS[:3]))
    shutil.rmtree(r.out)
    need_fine(r.run(r.build_command(), preexec_fn=lambda: os.umask(mask)))
    for top in (r.out, os.path.join(r.cache, "objects"), os.path.join(r.cache, "locks")):
        for folder, dirs, names in os.walk(top):
            for name in [*dirs, *names]:
                mode = os.lstat(os.path.join(folder, name)).st_mode
                assert not mode & 0o002, f"everybody may write {folder}/{name}: {mode:o}"
                assert mode & 0o400, f"its owner may not read {folder}/{name}: {mode:o}"
    r.after()


# damage at rest


def harm(r, path):
    """A file with some bytes changed, cut off, added, or all of it gone."""
    size = os.path.getsize(path)
    how = r.rng.choice(("flip", "flip", "flip", "cut", "grow", "remove", "zero"))
    at = r.rng.randrange(size) if size else 0
    if how == "flip" and size:
        with open(path, "r+b") as f:
            f.seek(at)
            old = f.read(1)
            f.seek(at)
            f.write(r.rng.choice([b for b in (b"\x00", b"x", b"\xff", b"}") if b != old]))
    elif how == "cut" and size:
        os.truncate(path, at)
    elif how == "zero" and size:
        with open(path, "r+b") as f:
            f.write(bytes(min(size, 4096)))
    elif how == "remove":
        os.remove(path)
    else:
        how = "grow"
        with open(path, "ab") as f:
            f.write(b"more")
    r.said.append(f"{how} at {at} of {size}: {os.path.relpath(path, r.cache)}")


def files_below(top):
    return sorted(os.path.join(d, n) for d, _, names in os.walk(top) for n in names)


def damage_below(r):
    """The same in a store that is only read: what is wrong there is passed over, and nothing of it is touched."""
    lower = os.path.join(r.top, "lower")
    shutil.copytree(r.bench.start(r.era, "full"), lower, symlinks=True)
    objects = os.path.join(lower, "objects")
    for path in r.rng.sample(files_below(objects), r.rng.randint(0, 3)):
        harm(r, path)
    before = picture(lower)
    r.begin("empty")
    need_fine(r.run(r.build_command("--lower-store", lower)))
    r.no_wrong_wheel()
    need_fine(r.run(r.build_command("--lower-store", lower)))
    assert picture(lower) == before, "the lower store was written"
    r.after()


def picture(top):
    return sorted((os.path.join(d, n), os.lstat(os.path.join(d, n)).st_mtime_ns, os.lstat(os.path.join(d, n)).st_ctime_ns) for d, dirs, names in os.walk(top) for n in [*dirs, *names])


def damage(r):
    """Objects, and everything else but build trees, which have no digests: the next run never uses what is wrong, and verify names exactly what was damaged."""
    if r.rng.random() < 0.25:
        damage_below(r)
        return
    r.begin(r.rng.choice(("source", "full", "full")))
    objects = os.path.join(r.cache, "objects")
    harmed = set()
    for path in r.rng.sample(files_below(objects), r.rng.randint(1, 2)):
        if os.path.exists(path):
            harm(r, path)
            harmed.add("/".join(os.path.relpath(path, objects).split(os.sep)[:2]))
    if r.rng.random() < 0.3:
        extra = [p for n in ("locks", "stamps", "partial", "compiled") for p in files_below(os.path.join(r.cache, n))]
        if extra:
            harm(r, r.rng.choice(extra))
    short = {h[: h.index("/") + 13] for h in harmed}
    if r.rng.random() < 0.5:
        named = names_in(r.verify(codes=(5,)))
        assert named == short, f"verify names {named}, harmed were {harmed}"
    else:  # used first: what the build did not look at is found afterwards
        r.plain_build()
        r.no_wrong_wheel()
        named = names_in(r.verify(codes=(0, 5)))
        assert named <= short, f"verify names {named}, harmed were {harmed}"
    r.after(verify_first=True)


def names_in(result):
    return {f"{kind}/{key}" for kind, key in re.findall(r"^(\w+) ([0-9a-f]{12}): (?:invalid manifest |not a regular file: |)['/]", result.text, re.M)}


# a bad server


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        try:
            self.answer(self.server.fault, self.server.rng)
        except (OSError, ValueError):
            pass
        self.close_connection = True

    def body(self):
        path = os.path.join(self.server.top, urllib.parse.unquote(self.path).lstrip("/"))
        if ".." in path or not os.path.isfile(path):
            return None
        with open(path, "rb") as f:
            return f.read()

    def head(self, code, length, *more):
        self.send_response(code)
        self.send_header("Connection", "close")
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in more:
            self.send_header(name, value)
        self.end_headers()

    def answer(self, fault, rng):
        data = self.body()
        if data is None and fault not in ("500", "loop", "garbage", "hangup"):
            return self.head(404, 0)
        if fault == "wrong" and rng.random() < 0.5:
            at = rng.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        cut = rng.randrange(len(data)) if data else 0
        if fault in ("fine", "wrong"):
            self.head(200, len(data))
            self.wfile.write(data)
        elif fault == "404":
            self.head(404, 0)
        elif fault == "500":
            self.head(500, 0)
        elif fault == "loop":
            self.head(302, 0, ("Location", self.path))
        elif fault == "garbage":
            self.wfile.write(os.urandom(100) + b"\r\n\r\n")
        elif fault == "hangup":
            pass
        elif fault == "truncate":
            self.head(200, len(data))
            self.wfile.write(data[:cut])
        elif fault == "short":  # says less than there is
            self.head(200, cut)
            self.wfile.write(data[:cut])
        elif fault == "long":  # says more than there is
            self.head(200, len(data) + 1000)
            self.wfile.write(data)
        elif fault == "endless":
            self.head(200, None)
            while not self.server.stopping:
                self.wfile.write(data + bytes(65536))
        elif fault == "stall":
            self.head(200, len(data))
            self.wfile.write(data[:cut])
            while not self.server.stopping:
                time.sleep(0.05)


class Server:
    def __init__(self, top, fault, rng):
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.top, self.http.fault, self.http.rng, self.http.stopping = top, fault, rng, False
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.http.stopping = True
        self.http.shutdown()
        self.http.server_close()


MISBEHAVIOURS = ("fine", "wrong", "404", "loop", "short", "endless")
SLOW_ONES = ("500", "garbage", "hangup", "truncate", "long", "stall")  # tried again, with pauses


def server(r):
    """A server that misbehaves as the first place of the source (the second is the file itself), or as a remote store. Nothing wrong may come of it, and the build gets through."""
    fault = r.rng.choice(MISBEHAVIOURS * 4 + SLOW_ONES)
    remote = r.rng.random() < 0.6
    top = os.path.join(r.top, "served")
    if remote:
        shutil.copytree(r.bench.start(r.era, r.rng.choice(("source", "full", "full"))), top, symlinks=True)
    else:
        os.makedirs(top)
        shutil.copy(r.bench.world.tiny_archive, os.path.join(top, "toy-setuptools.tar.gz"))
    r.begin("empty")
    r.said.append(f"a {'store' if remote else 'mirror'} that is {fault}")
    with Server(top, fault, r.rng) as s:
        need_fine(r.run(r.build_command("--store-url" if remote else "--mirror", s.url)))
    r.after()


FAULTS = {"kill": kill, "child": child, "memory": memory, "both": both, "enospc": enospc, "eio": eio, "short": short, "clock": clock, "umask": umask, "damage": damage, "server": server}
