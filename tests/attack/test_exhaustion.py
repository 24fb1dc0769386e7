#!/usr/bin/python3
"""Memory and time outside of the sandbox: what a build, a server or a file may make ptbuild capture. Each case asserts that the attack ran, and how long and how much ptbuild took.

    test_exhaustion.py PTBUILD [TEST]
"""

import http.server
import os
import re
import resource
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import toy  # noqa: E402

ERA = "setup-py-env"
HANG_S = 600  # also on a busy machine; what is waited for comes later or never
# What a build does, in its configuration or at its end.
FLOOD = """
import socket
held = []
for n in range(128):
    s = socket.socket(socket.AF_UNIX)
    s.connect("/ptbuild/remote/s")
    held.append(s)
    try:
        s.settimeout(2)
        s.sendall(b"*3\\r\\n$3\\r\\nSET\\r\\n$40\\r\\nccache:0123456789abcdefghijklmnopqrstuv0\\r\\n$16777216\\r\\n" + bytes(15 << 20))
    except OSError:
        pass
print("ATTACK flood", flush=True)
os._exit(3)
"""
LINE = """
for n in range(320):
    sys.stdout.buffer.write(b"x" * (1 << 20))
sys.stdout.flush()
print("\\nATTACK line", flush=True)
os._exit(3)
"""
DEEP = """
for top in ("/ptbuild/out", "/ptbuild/src"):
    os.chdir(top)
    for n in range(700):
        os.mkdir("d")
        os.chdir("d")
print("ATTACK deep", flush=True)
os._exit(3)
"""
FILES = """
os.mkdir("many")
for n in range(30000):
    os.close(os.open("many/%d" % n, os.O_CREAT))
for name in ("a\\nb", "\\x1b[2J", "x" * 255, "-rf", "\\udcff"):
    os.mkdir("many/d" + name[:250])
    os.chmod("many/d" + name[:250], 0)
print("ATTACK files", flush=True)
os._exit(3)
"""
DAEMON = """
import signal, time
if os.fork() == 0:
    os.setsid()
    for s in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(s, signal.SIG_IGN)
    if os.fork() == 0:
        time.sleep(3000.25)
    os._exit(0)
print("ATTACK daemon", flush=True)
os._exit(3)
"""
STOPPED = """
import signal
print("ATTACK stopped", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""
WHEELS = """
import atexit
def leave():
    open("/ptbuild/out/torch-2.9.1\\nptbuild: hint: run this\\n-cp3-cp3-linux_x86_64.whl", "w").close()
    print("ATTACK wheels", flush=True)
atexit.register(leave)
"""
BUILDS = {"flood": FLOOD, "line": LINE, "deep": DEEP, "files": FILES, "daemon": DAEMON, "stopped": STOPPED}


def pin(world, name, code, when="'--cmake-only' in sys.argv"):
    def change(files):
        text = files["setup.py"].decode()
        files["setup.py"] = toy.replaced(text, "\nHERE = ", f"\nif {when}:\n" + "".join("    " + line + "\n" for line in code.strip().splitlines()) + "\nHERE = ").encode()

    world.pin(ERA, change, name)


def prepare(world):
    for name, code in BUILDS.items():
        pin(world, name, code)
    pin(world, "wheels", WHEELS, "'--cmake-only' not in sys.argv")
    pin(world, "good", "pass")


def measured(command, **kw):
    """The result, its seconds, and MiB that ptbuild or one of its programs took at most."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kw) as child:
        out = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, out.decode("utf-8", "surrogateescape"), time.monotonic() - start, used.ru_maxrss >> 10


def hostile(world, name, *options):
    code, text, seconds, mib = measured(world.command("build", "--profile", "cpu-avx2", "--release", f"2.9.1-{name}", "--json", *options), cwd=world.dir)
    tree = re.search(r"building \S+ \(tree (.*)\)", text)[1]
    with open(os.path.join(tree, "log/build.log"), "rb") as f:
        f.seek(max(0, os.path.getsize(f.name) - 4096))
        assert f"ATTACK {name}\n".encode() in f.read(), text[-2000:]
    return code, text, seconds, mib, tree


def test_half_said_commands(world):
    """128 clients of the relay with 15 MiB each."""
    code, text, seconds, mib, _ = hostile(world, "flood")
    assert code == 6 and mib < 700 and seconds < HANG_S, (code, mib, seconds)


def test_a_line_without_end(world):
    """320 MiB of output in one line."""
    code, text, seconds, mib, _ = hostile(world, "line")
    assert code == 6 and mib < 200 and len(text) < 100000, (code, mib, len(text))


def test_a_deep_tree(world):
    """It can be counted, built again and removed."""
    code, text, seconds, mib, tree = hostile(world, "deep")
    assert code == 6, text
    for command in (("cache", "info"), ("cache", "gc", "--keep-days", "0")):
        code, text, _, _ = measured(world.command(*command), cwd=world.dir)
        assert code == 0, text
    past = time.time() - 100000
    for path in (tree, os.path.join(tree, "log")):
        os.utime(path, (past, past))
    code, text, _, _ = measured(world.command("cache", "gc", "--max-size", "1"), cwd=world.dir)
    assert code == 0 and not os.path.exists(tree), text


def test_many_files_with_odd_names(world):
    code, text, seconds, mib, tree = hostile(world, "files")
    assert code == 6 and mib < 200 and seconds < HANG_S and "\033" not in text, (code, mib, seconds)
    code, text, _, _ = measured(world.command("cache", "info"), cwd=world.dir)
    assert code == 0, text


def test_a_process_that_stays(world):
    code, text, seconds, _, _ = hostile(world, "daemon")
    assert code == 6 and seconds < HANG_S, (code, seconds, text[-500:])
    lines = [open(f"/proc/{n}/cmdline", "rb").read() for n in os.listdir("/proc") if n.isdigit() and os.path.exists(f"/proc/{n}/cmdline")]
    assert not [line for line in lines if b"--cmake-only" in line and world.dir.encode() in line], lines


def test_a_process_that_stops_itself(world):
    code, text, seconds, _, _ = hostile(world, "stopped", "--max-silence", "2")
    assert code == 6 and "--max-silence" in text and seconds < HANG_S, (code, text[-500:])


def test_a_name_makes_no_line(world):
    code, text, _, _, _ = hostile(world, "wheels")
    assert code == 6 and "more than one wheel" in text and "\nptbuild: hint: run this" not in text, text[-1000:]


def yaml(world, text, words):
    path = world.path("evil.yaml")
    with open(path, "w") as f:
        f.write(text)
    before = os.times()
    code, said, _, mib = measured([world.ptbuild, "plan", "--profile", path], cwd=world.dir)
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    assert code == 3 and words in said and processor < 10 and mib < 100, (code, said[-300:], processor, mib)


def test_yaml_nested_deep(world):
    yaml(world, "isa: " + "[" * 100000 + "]" * 100000 + "\n", "nested")


def test_yaml_nested_by_indents(world):
    yaml(world, "".join(" " * n + "a:\n" for n in range(1000)), "nested")


def test_yaml_aliases_of_aliases(world):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 12)]
    yaml(world, "\n".join(lines) + "\n", "more than 100000 values")


def test_yaml_second_document(world):
    yaml(world, "gpu: cpu\nisa: avx2\n---\ngpu: cpu\nisa: avx512\n", "more than one document")


class Slow(http.server.BaseHTTPRequestHandler):
    """A byte now and then, without an end; `asked` says that somebody came."""

    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        try:
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            for _ in range(3000):
                self.wfile.write(b"{")
                self.wfile.flush()
                time.sleep(0.5)
        except OSError:
            pass

    def log_message(self, *_):
        pass


def served(kind):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"


def test_a_store_that_dribbles(world):
    server, url = served(Slow)
    Slow.asked.clear()
    code, text, seconds, _ = measured(world.command("build", "--profile", "cpu-avx2", "--release", "2.9.1-good", "--json", "--store-url", url, cache=world.path("dribble")), cwd=world.dir)
    server.shutdown()
    assert code == 0 and Slow.asked and "not asked again" in text and seconds < HANG_S, (code, seconds, text[-1000:])


def test_a_compiler_cache_that_dribbles(world):
    """A redis that says "$1" and then a nought each half second."""
    listener = socket.create_server(("127.0.0.1", 0))
    came = []

    def serve(s):
        try:
            s.recv(4096)
            s.sendall(b"$1")
            for _ in range(3000):
                s.sendall(b"0")
                time.sleep(0.5)
        except OSError:
            pass

    def accept():
        while True:
            try:
                s, _ = listener.accept()
            except OSError:
                return
            came.append(s)
            threading.Thread(target=serve, args=(s,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    url = f"redis://127.0.0.1:{listener.getsockname()[1]}"
    code, text, seconds, _ = measured(world.command("build", "--profile", "cpu-avx2", "--release", "2.9.1-good", "--json", "--ccache-remote", url, cache=world.path("redis")), cwd=world.dir)
    listener.close()
    assert code == 0 and came and "goes on without it" in text and seconds < HANG_S, (code, seconds, text[-1000:])


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    toy.main([t for name, t in sorted(globals().items(), key=lambda i: getattr(getattr(i[1], "__code__", None), "co_firstlineno", 0)) if name.startswith("test_") and callable(t)], prepare)
