#!/usr/bin/python3
"""What others answer and leave: listings of an index, a redis, the compiled objects of a store that is only read, and those of shards. Each case asserts that ptbuild met it, and what came of it:
an error of its kind, or the wheel with the bytes that it has without the attack.

    test_answers.py PTBUILD [TEST | --all]

As root, a listing meets root or nobody, and some lies of a redis are met; with --all both, and all lies, with the memory that they took.
"""

import functools
import glob
import http.server
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import toy  # noqa: E402
from test_cache import forget, unit  # noqa: E402

ALL = "--all" in sys.argv
ERA = "setup-py-env"
VALUE_MAX = 64 << 20
PYTHON = "cp" + toy.host_python().replace(".", "")
WHEEL = f"torch-2.9.1+cpu.avx-{PYTHON}-{PYTHON}-manylinux_2_17_x86_64.whl"
PIN = "torch==2.9.1+cpu.avx"


# the listing of an index


def row(name="cpu-avx", label="cpu.avx", install=(PIN,), wheels=(WHEEL,)):
    return {"name": name, "label": label, "install": install, "wheels": wheels}


def rows(*all):
    return json.dumps({"directories": all}).encode()


GOOD = rows(row())
# name: (the answer, exit code, words of the error)
LISTINGS = {
    "good": (GOOD, 0, PIN),
    **{f"pin_{i}": (rows(row(install=[pin])), 5, "not a project with its version") for i, pin in enumerate((
        "--index-url=http://127.0.0.1:1/", "-r==1", "./x.whl==1", "/x.whl==1", "torch==1@http://127.0.0.1:1/x", "torch @ http://127.0.0.1:1/x", 'torch==1;os_name=="x"', "torch==1\n--pre", "torch==*", "torch[x]==1", "torch == 1", "torch", "==1", "torch==", "torch===1", "torch==1,>0", "torch==-1", ""))},
    **{f"name_{i}": (rows(row(name=name)), 5, "not the name of a directory") for i, name in enumerate(("..", ".", "a/b", "//127.0.0.1:1/x", "%2e%2e", "a?b", "a#b", "a\\b", "", "-r", "\x1b[2J", "\u202e"))},
    "no_rows": (b"{}", 5, "not the listing of an index"),
    "rows_null": (b'{"directories": null}', 5, "not the listing of an index"),
    "row_number": (b'{"directories": [1]}', 5, "not the name of a directory"),
    "pins_are_numbers": (rows(row(install=[1])), 5, "no lists of what"),
    "wheels_are_text": (rows(row(wheels="x")), 5, "no lists of what"),
    "label_null": (rows(row(label=None)), 5, "with its label"),
    "label_long": (rows(row(label="cpu." + "avx." * 100000)), 0, PIN),
    "label_escapes": (rows(row(label="\x1b[2J\u202e")), 0, PIN),
    "wheel_no_name": (rows(row(wheels=["x"])), 5, "not a wheel name"),
    "wheel_escapes": (rows(row(wheels=["t\x1b[2J-1-py3-none-any.whl"])), 5, "not a wheel name"),
    "wheel_long": (rows(row(wheels=["t-1-py3-none-" + "a." * 300000 + "b.whl"])), 7, "is for this machine"),
    "many_rows": (rows(*[row(name=f"d{i}", wheels=["t-1-cp27-cp27-win32.whl"]) for i in range(20000)]), 7, "is for this machine"),
    "many_wheels": (rows(row(wheels=["t-1-cp27-cp27-win32.whl"] * 100000)), 7, "is for this machine"),
    "deep": (b"[" * 1000000, 5, "parsing depth"),
    "no_json": (b"<html>", 5, "invalid JSON"),
    "empty": (b"", 5, "invalid JSON"),
    "zero": (b'{"directories": [{"name": "a\\u0000b"}]}', 5, "invalid JSON"),
    "no_utf8": (b'{"directories": [{"name": "\xff"}]}', 5, "invalid JSON"),
    "twice": (GOOD[:-1] + b', "directories": []}', 5, "duplicate object key"),
    "behind": (GOOD + b"x", 5, "end of file expected"),
    "large": (b" " * (17 << 20) + GOOD, 4, "more than 16777216 bytes"),
    "endless": ("endless", 4, "more than 16777216 bytes"),
    "packed": ("packed", 5, "invalid JSON"),
    "file": ("file", 4, "rotocol"),
    "loop": ("loop", 4, "redirect"),
    "headers": ("headers", 4, "header"),
}


class Index(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def head(self, code, *lines):
        self.send_response(code)
        for name, value in lines:
            self.send_header(name, value)
        self.end_headers()

    def do_GET(self):
        body = LISTINGS[self.path.split("/")[1]][0]
        self.server.asked.add(self.path.split("/")[1])
        try:
            if body == "endless":
                self.head(200)
                while True:
                    self.wfile.write(b" " * 65536)
            elif body == "packed":  # who unpacks this has 64 MiB
                import gzip

                data = gzip.compress(bytes(64 << 20))
                self.head(200, ("Content-Encoding", "gzip"), ("Content-Length", str(len(data))))
                self.wfile.write(data)
            elif body == "file":
                self.head(302, ("Location", "file:///etc/passwd"))
            elif body == "loop":
                self.head(302, ("Location", self.path))
            elif body == "headers":
                self.head(200, *[(f"X-{i}", "y" * 1000) for i in range(1000)])
            else:
                self.head(200, ("Content-Length", str(len(body))))
                self.wfile.write(body)
        except OSError:
            pass


@functools.cache
def seen_by_nobody(program):
    return os.getuid() == 0 and subprocess.run([program, "--version"], user="nobody", capture_output=True).returncode == 0


def users(world):
    """Root and, where it reaches the program, nobody."""
    yield "own", {}
    if seen_by_nobody(world.ptbuild):
        yield "nobody", {"user": "nobody"}


def listing(world, name):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    server.daemon_threads, server.asked = True, set()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        both = list(users(world))
        for who, kw in both if ALL else both[list(LISTINGS).index(name) % len(both) :][:1]:
            top = world.path(f"index-{who}")
            if not os.path.isdir(top):
                os.mkdir(top)
                if kw:
                    os.chown(top, pwd.getpwnam(who).pw_uid, -1)
            url = f"http://127.0.0.1:{server.server_address[1]}/{name}"
            command = [world.ptbuild, "install", url, "--print", "--python", "/usr/bin/python3", "--cache", os.path.join(top, "store"), "--profiles", world.profiles]
            r = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600, cwd=top, env={**os.environ, "HOME": top}, **kw)
            _, code, words = LISTINGS[name]
            said = r.stdout + r.stderr
            assert name in server.asked and r.returncode == code and words in said and len(said) < 5000, (who, r.returncode, said[:1000])
            assert not any(c in said for c in "\x1b\u202e") and "Sanitizer" not in said, said
            assert code == 0 or said.count("ptbuild: error: ") == 1, said
            assert os.listdir(top) in ([], ["store"]), os.listdir(top)
    finally:
        server.shutdown()


# a redis that lies


class Redis:
    """Enough of one for a compiler cache. `lie` makes the answer to a GET of what is there, and of what is not."""

    def __init__(self, kept=None, lie=None):
        self.kept, self.lie, self.lied = kept if kept is not None else {}, lie, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.listener.getsockname()[1]}"

    def accept(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        try:
            with s, s.makefile("rb") as f:
                while line := f.readline():
                    words = []
                    for _ in range(int(line[1:])):
                        size = int(f.readline()[1:])
                        words.append(f.read(size + 2)[:-2])
                    for part in self.answer(words):
                        s.sendall(part)
        except (OSError, ValueError):
            pass

    def answer(self, words):
        verb, key = words[0], words[1] if len(words) > 1 else b""
        if verb == b"SET":
            self.kept.setdefault(key, words[2])
            yield b"+OK\r\n"
        elif verb == b"GET" and self.lie:
            self.lied += 1
            yield from self.lie(self.kept.get(key), self.lied)
        elif verb == b"GET":
            yield b"$-1\r\n" if key not in self.kept else bulk(self.kept[key])
        else:
            yield b":0\r\n"


def bulk(data):
    return b"$%d\r\n%s\r\n" % (len(data), data)


def always(*parts):
    return lambda value, n: parts


def endless(value, n):
    yield b"$%d\r\n" % (1 << 40)
    for _ in range(4096):
        yield bytes(1 << 20)


def other_values(value, n):
    """No error of redis: bytes that are no entry, or no longer one."""
    value = value or b"\xcc\xac\x01\x00" + bytes(100)
    lies = (b"", b"\xcc", b"\xcc\xac\x01\x00", value[:-1], value[: len(value) // 2], value + b"x", value[:40] + bytes([value[40] ^ 1]) + value[41:], bytes(1 << 20), b"\xcc\xac\x01\x01" + value[4:], b"\xff" * 300, value[:5] + b"\xff" * 8 + value[13:])
    yield bulk(lies[n % len(lies)])


# name: (the lie, whether the server is given up)
LIES = {
    "other_values": (other_values, False),
    "nothing_is_there": (always(b"$-1\r\n"), False),
    "an_array": (always(b"*2\r\n$1\r\nx\r\n$1\r\ny\r\n"), True),
    "an_array_of_a_milliard": (always(b"*1000000000\r\n"), True),
    "arrays_in_arrays": (always(b"*1\r\n" * 100000), True),
    "a_number": (always(b":1\r\n"), True),
    "an_error_with_escapes": (always(b"-ERR \x1b[2J\r\n"), True),
    "two_answers": (always(b"$1\r\nx\r\n$1\r\ny\r\n"), True),
    "a_negative_size": (always(b"$-77\r\n"), True),
    "a_size_that_is_none": (always(b"$0x10\r\n" + bytes(18)), True),
    "no_end_of_line": (always(b"$" + b"1" * 100000), True),
    "too_large": (lambda value, n: iter((b"$%d\r\n" % (VALUE_MAX * 8),) + (bytes(1 << 20),) * (VALUE_MAX * 8 >> 20)), True),
    "endless": (endless, True),
    "web_page": (always(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"), True),
}


def build(world, *args, cache=None):
    shutil.rmtree(world.out, ignore_errors=True)
    result = world.build(ERA, *args, cache=cache, timeout=6000)
    assert result.returncode == 0, result.stderr[-2000:]
    item = toy.record(result)["record"]
    assert item["sha256"] == world.first["sha256"], item
    assert "\x1b" not in result.stderr and "Sanitizer" not in result.stderr, result.stderr[-2000:]
    return item["build"], result.stderr


def prepare(world):
    world.pin(ERA, unit)
    os.chmod(world.dir, 0o755)
    redis = Redis()
    result = world.build(ERA, "--ccache-remote", redis.url)
    assert result.returncode == 0, result.stderr
    world.first, world.kept = toy.record(result)["record"], redis.kept
    assert len(world.kept) >= 6


def lying(world, name):
    lie, given_up = LIES[name]
    redis, store = Redis(dict(world.kept), lie), world.path("redis-" + name)
    made, said = build(world, "--ccache-remote", redis.url, cache=store)
    redis.listener.close()
    assert redis.lied and made["compiler_cache_hits"] == 0, (redis.lied, made)
    assert ("goes on without it" in said) == given_up, said[-1500:]
    shutil.rmtree(store)


def turned(kept, few=False):
    """Each name gets the value of another one: whole entries, of other units; `few`: of one unit alone."""
    names = sorted(kept, key=lambda n: (kept[n], n))
    return {n: kept[names[0]] for n in names} if few else dict(zip(names, [kept[n] for n in names[1:] + names[:1]]))


def test_a_redis_with_entries_of_others(world):
    """Who can write there decides over objects (SECURITY.md): the wheel, or an error of the build; nothing of a wheel that was not verified is kept, and without it all is as before."""
    for few in (False, True):
        redis, store = Redis(turned(world.kept, few)), world.path(f"turned-{few}")
        shutil.rmtree(world.out, ignore_errors=True)
        result = world.build(ERA, "--ccache-remote", redis.url, cache=store, timeout=6000)
        redis.listener.close()
        assert result.returncode in (0, 6) and "Sanitizer" not in result.stderr, result.stderr[-2000:]
        if result.returncode:
            assert not entries(os.path.join(store, "compiled")) and redis.kept == turned(world.kept, few), result.stderr[-2000:]
            shutil.rmtree(os.path.join(store, "build"))
            build(world, cache=store)
        shutil.rmtree(store)


def test_a_shard_with_entries_of_others(world):
    """The entries of a worker are of other units than their names say: as for the server, and the next shards that are good make it good."""
    store = world.path("turned-shards")
    for again in (False, True):
        for i in (1, 2):
            shutil.rmtree(world.out, ignore_errors=True)
            result = world.build(ERA, "--shard", f"{i}/2", cache=store)
            assert result.returncode == 0, result.stderr
        if again:
            build(world, "--shard", "last", cache=store)
            continue
        (place,) = glob.glob(os.path.join(store, "compiled/shards-*"))
        all = {p: open(p, "rb").read() for p in entries(place)}
        for path, data in turned(all, few=True).items():
            with open(path, "wb") as f:
                f.write(data)
        result = world.build(ERA, "--shard", "last", cache=store)
        assert result.returncode in (0, 6) and "Sanitizer" not in result.stderr, result.stderr[-2000:]
        assert result.returncode or toy.record(result)["record"]["sha256"] == world.first["sha256"], "all units are one, and a wheel of them was made"
        for name in ("build", "compiled", "objects/wheel"):
            shutil.rmtree(os.path.join(store, name), ignore_errors=True)


def test_the_memory_of_it_all(world):
    """Of the builds above, with answers of 512 MiB and more."""
    import resource

    most, instrumented = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, b"__asan_init" in open(sys.argv[1], "rb").read()
    assert most < (3000 if instrumented else 600) << 10, most


# compiled objects in places that others write


def plant(paths, secret):
    """What is no entry, under the name of one: each path gets another kind."""
    def link(p):
        os.symlink(secret, p)

    def sparse(p):
        with open(p, "wb") as f:
            f.write(b"\xcc\xac\x01\x00")
            f.truncate(1 << 40)

    def text(data):
        def write(p):
            with open(p, "wb") as f:
                f.write(data)

        return write

    def bound(p):
        with socket.socket(socket.AF_UNIX) as s:
            here = os.open(os.path.dirname(p), os.O_RDONLY)
            s.bind(f"/proc/self/fd/{here}/{os.path.basename(p)}")
            os.close(here)

    kinds = [link, os.mkfifo, sparse, text(b""), os.mkdir, bound, text(b"\xcc\xac\x01\x00" + b"x" * 99), lambda p: os.symlink("/dev/zero", p), lambda p: os.link(secret, p), text(b"#!/bin/sh\n")]
    for i, path in enumerate(paths):
        os.unlink(path)
        kinds[i % len(kinds)](path)
    return len(paths)


def entries(top):
    return sorted(p for p in glob.glob(f"{top}/**", recursive=True) if os.path.isfile(p) and not os.path.islink(p))


def secret_of(world):
    path = world.path("secret")
    with open(path, "w") as f:
        f.write("swordfish")
    os.utime(path, (1, 1))
    return path


def test_planted_in_a_store_that_is_only_read(world):
    secret, lower = secret_of(world), world.path("lower")
    shutil.copytree(world.cache, lower)
    for name in ("objects", "build"):
        shutil.rmtree(os.path.join(lower, name))
    assert plant(entries(os.path.join(lower, "compiled")), secret) >= 6
    made, _ = build(world, "--lower-store", lower, cache=world.path("above"))
    assert made["compiler_cache_hits"] == 0, made
    assert open(secret).read() == "swordfish" and os.stat(secret).st_mtime == 1


def test_planted_in_the_own_store(world):
    """By whoever could; it is not the build's."""
    secret = secret_of(world)
    forget(world)
    plant(entries(os.path.join(world.cache, "compiled")), secret)
    made, _ = build(world)
    assert made["compiler_cache_hits"] == 0, made
    assert open(secret).read() == "swordfish"
    for command in (("cache", "info"), ("cache", "gc", "--keep-days", "0"), ("cache", "verify")):
        result = world.run(*command, timeout=600)
        assert result.returncode == 0, (command, result.stderr)
    assert open(secret).read() == "swordfish" and os.path.exists(secret)


def test_the_place_itself_is_a_link(world):
    """`compiled` leads to another directory: nothing is written or removed there."""
    store, away = world.path("linked"), world.path("away")
    os.makedirs(away)
    shutil.copytree(os.path.join(world.cache, "stamps"), os.path.join(store, "stamps"))
    shutil.copy(os.path.join(world.cache, "format"), store)
    os.symlink(away, os.path.join(store, "compiled"))
    result = world.build(ERA, cache=store, timeout=6000)
    assert not os.listdir(away), (result.returncode, os.listdir(away))


def test_planted_by_a_shard(world):
    secret, store = secret_of(world), world.path("shards")
    for i in (1, 2):
        shutil.rmtree(world.out, ignore_errors=True)
        result = world.build(ERA, "--shard", f"{i}/2", cache=store)
        assert result.returncode == 0, result.stderr
    (place,) = glob.glob(os.path.join(store, "compiled/shards-*"))
    assert plant(entries(place), secret) >= 6
    os.makedirs(os.path.join(place, "pytorch/zz"), exist_ok=True)
    os.symlink("/", os.path.join(place, "root"))
    build(world, "--shard", "last", cache=store)
    assert open(secret).read() == "swordfish" and os.path.isdir("/usr/bin")


TESTS = [
    *[functools.partial(listing, name=n) for n in LISTINGS],
    *[functools.partial(lying, name=n) for n in (LIES if ALL else list(LIES)[1::4])],
    *([test_the_memory_of_it_all] if ALL else []),
    test_a_redis_with_entries_of_others,
    test_a_shard_with_entries_of_others,
    test_planted_in_a_store_that_is_only_read,
    test_the_place_itself_is_a_link,
    test_planted_by_a_shard,
    test_planted_in_the_own_store,
]


def named(test):
    if isinstance(test, functools.partial):
        test.__name__ = f"{test.func.__name__}_{test.keywords['name']}"
    return test


if __name__ == "__main__":
    sys.argv = [w for w in sys.argv if w != "--all"]
    toy.main([named(t) for t in TESTS], prepare)
