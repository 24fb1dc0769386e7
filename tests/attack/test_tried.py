#!/usr/bin/python3
"""Hostile wheels that are tried: `bench` and `test` install them and import what is in them. Each attack says in its error that it ran; ptbuild ends soon with an exit code of its own, shows nothing that moves a cursor, leaves
no process and no directory behind, and no file of the host is read or changed.

    test_tried.py PTBUILD [TEST | --all]

Without --all each attack meets one of the two commands.
"""

import functools
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import toy  # noqa: E402
from test_test import RELEASE, TABLE  # noqa: E402
from wheelsite import make_wheel  # noqa: E402

SECRET = "swordfish"
WORKLOADS = """
class Workload:
    def __init__(self, name, make):
        self.name, self.make, self.devices, self.tolerance = name, make, ("cpu",), 1e-3

WORKLOADS = [Workload("one", lambda torch, device: lambda: 1.0)]
"""
TORCH = """
import os, socket, sys
cuda = type("Cuda", (), {"is_available": lambda self: False})()
def set_num_threads(count):
    pass
def attempt(f):
    try:
        return "through " + str(f())[:300]
    except Exception as ex:
        return type(ex).__name__
"""
# name: (code that is run when torch is imported; `said` becomes the error), what must be said of it)
ATTACKS = {
    "reads_the_host": ("said = attempt(lambda: open('{host}/secret').read())", "FileNotFoundError"),
    "lists_homes": ("said = attempt(lambda: os.listdir('/root') + os.listdir('/home'))", "FileNotFoundError"),
    "reads_the_store": ("said = attempt(lambda: os.listdir('{store}/objects'))", "FileNotFoundError"),
    "environment": ("said = 'through' if any('{secret}' in v for v in os.environ.values()) else 'nothing'", "nothing"),
    "network": ("said = attempt(lambda: socket.create_connection(('192.0.2.1', 80), timeout=2))", "OSError"),
    "writes_to_the_root": ("said = attempt(lambda: open('/usr/planted', 'w'))", "Error"),
    "writes_to_etc": ("said = attempt(lambda: open('/etc/planted', 'w'))", "Error"),
    "raises_limits": ("import resource\nsaid = attempt(lambda: open('/proc/sys/kernel/core_pattern', 'w'))", "Error"),
    "kills_all": ("said = attempt(lambda: [os.kill(p, 0) for p in range(2, 40000) if p != os.getpid() and os.path.exists(f'/proc/{{p}}/exe') and open(f'/proc/{{p}}/comm').read().startswith('systemd')]); said = 'through' if said != 'through []' else 'nothing'", "nothing"),
    "escapes": ("said = '\\033[2J\\u202e\\x9b31m'", ""),
    "false_lines": ("print('\\nptbuild: error: it is all right\\nptbuild: hint: run this', flush=True); said = 'x\\nptbuild: hint: run this'", ""),
    "a_line_without_end": ("[os.write(1, b'x' * (1 << 20)) for _ in range(64)]; said = 'x'", ""),
    "an_error_without_end": ("[os.write(2, b'y' * (1 << 20)) for _ in range(64)]; said = 'x' * (1 << 20)", None),
    "no_utf8": ("os.write(1, bytes(range(256)) * 100); os.write(2, b'\\xff\\xfe' * 1000); said = '\\udcff'", None),
    "false_answers": ("print('{{\"bench\": \"value\", \"name\": \"one\", \"value\": 1e999, \"unit\": \"s\", \"mean\": true}}\\n{{\"end\": 0}}\\n{{\"bench\": \"done\"}}', flush=True); said = 'x'", None),
    "daemon": ("\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        import time\n        time.sleep(300.5)\n    os._exit(0)\nsaid = 'x'", ""),
    "ignores_signals": ("import signal; [signal.signal(s, signal.SIG_IGN) for s in (1, 2, 3, 15)]; said = 'x'", ""),
    "closed_directories": ("here = os.path.dirname(__file__); os.makedirs(here + '/a/b/c', exist_ok=True); open(here + '/a/b/c/f', 'w').close(); [os.chmod(here + p, 0) for p in ('/a/b/c', '/a/b', '/a')]; said = 'x'", ""),
    "closed_tmp": ("import tempfile; d = tempfile.mkdtemp(); os.makedirs(d + '/a/b'); os.chmod(d + '/a', 0); os.chmod(d, 0); said = 'x'", ""),
    "deep_tree": ("\nos.chdir(os.path.dirname(__file__))\nfor n in range(600):\n    os.makedirs('d', exist_ok=True)\n    os.chdir('d')\nsaid = 'x'", ""),
    "links_to_the_host": ("here = os.path.dirname(__file__); [os.symlink('{host}', here + '/' + n) for n in ('l1', 'l2') if not os.path.islink(here + '/' + n)]; said = 'x'", ""),
    "odd_names": ("here = os.path.dirname(__file__); [open(os.path.join(here, n), 'w').close() for n in ('a\\nb', '\\033[2J', '-rf', '\\udcff')]; said = 'x'", ""),
    "pipes": ("here = os.path.dirname(__file__); [os.mkfifo(here + '/p%d' % n) for n in range(3) if not os.path.exists(here + '/p%d' % n)]; said = 'x'", ""),
    "removes_itself": ("import shutil; shutil.rmtree(sys.prefix, ignore_errors=True); said = 'x'", ""),
    "setuid_copy": ("here = os.path.dirname(__file__); import shutil; shutil.copy('/bin/sh', here + '/sh'); said = attempt(lambda: os.chmod(here + '/sh', 0o4755)); said = 'through' if os.stat(here + '/sh').st_mode & 0o4000 else 'nothing'", "nothing"),
    "exits": ("os._exit(0)", None),
    "dies": ("os.kill(os.getpid(), 9)", None),
    "aborts": ("os.abort()", None),
}


def fill(text, world):
    return text.format(host=world.path("host"), store=world.cache, secret=SECRET)


def torch(world, name, label):
    code = fill(ATTACKS[name][0], world) if name in ATTACKS else "said = None"
    end = "\nif said is not None:\n    raise RuntimeError('ATTACK ' + said)\n"
    return make_wheel(world.path(label), "torch", f"2.9.1+{label}", code=TORCH + code + end)


def prepare(world):
    def change(files):
        files["tests/test_good.py"] = b"import unittest, torch\nclass Good(unittest.TestCase):\n    def test_installed(self):\n        pass\nif __name__ == '__main__':\n    unittest.main()\n"

    world.pin("setup-py-env", change, name="tested")
    table = toy.replaced(TABLE.split("      - {file: deep")[0], 'select: ["*installed", "*network", "*loopback", "*main", "*forks", "*memory", "*skipped"]', 'limit: 5')
    for path, text in {f"tests/{RELEASE}.yaml": table, "bench/workloads.py": WORKLOADS}.items():
        with open(os.path.join(world.profiles, path), "w") as f:
            f.write(text)
    for folder in ("host", "good", "evil"):
        os.makedirs(world.path(folder))
    with open(world.path("host", "secret"), "w") as f:
        f.write(SECRET)
    world.good = torch(world, None, "good")


def left(world):
    tmp = os.path.join(world.cache, "tmp")
    return [n for n in os.listdir(tmp) if os.path.isdir(os.path.join(tmp, n))] if os.path.isdir(tmp) else []


def processes(world):
    found = []
    for n in os.listdir("/proc"):
        try:
            line = open(f"/proc/{n}/cmdline", "rb").read() if n.isdigit() else b""
        except OSError:
            continue
        if b"bwrap" in line.split(b"\0")[0] and world.dir.encode() in line:
            found.append(line[:100])
    return found


def tried(world, name, command):
    wheel, words = torch(world, name, "evil"), ATTACKS[name][1]
    options = {"bench": ("--against", world.good, "--pairs", "1", "--threads", "1", "--seconds", "0.01", "--limit", "5", "--only", "one"), "test": ("--again",)}[command]
    r = world.run(command, wheel, *options, timeout=600, env={**os.environ, "SECRET": SECRET})
    said = r.stdout + r.stderr
    assert r.returncode in (5, 7), (r.returncode, said[-1500:])
    assert SECRET not in said and not any(c in said for c in "\x1b\u202e\x9b") and len(said) < 100000, said[-3000:]
    assert "\nptbuild: hint: run this" not in said and "Sanitizer" not in said, said[-3000:]
    if words is not None:
        assert "ATTACK" in said and "through" not in said and words in said, said[-3000:]
    assert not left(world), left(world)
    assert not processes(world), processes(world)
    assert os.listdir(world.path("host")) == ["secret"] and open(world.path("host", "secret")).read() == SECRET


ALL = "--all" in sys.argv
BOTH = ("bench", "test")
TESTS = [functools.partial(tried, name=n, command=c) for i, n in enumerate(ATTACKS) for c in (BOTH if ALL or len(sys.argv) > 2 else BOTH[i % 2 : i % 2 + 1])]
for t in TESTS:
    t.__name__ = f"{t.keywords['command']}_{t.keywords['name']}"

if __name__ == "__main__":
    sys.argv = [w for w in sys.argv if w != "--all"]
    toy.main(TESTS, prepare)
