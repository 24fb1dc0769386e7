"""ptbuild test: a package's own tests, from its pinned source, against its wheel; the stand-in's tests pass, fail, hang, crash and are flaky."""

import base64
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree as ET
import zipfile

from toy import host_python, main

RELEASE = "2.9.1-tested"
GOOD = b'''
import os, pickle, socket, sys, unittest

class Module:
    pass

class Good(unittest.TestCase):
    def test_installed(self):
        import torch
        self.assertTrue(torch.__file__.startswith(sys.prefix + "/"), torch.__file__)
    def test_no_network(self):
        with self.assertRaises(OSError):
            socket.create_connection(("192.0.2.1", 80), timeout=2)
    def test_loopback(self):
        server = socket.create_server(("127.0.0.1", 0))
        socket.create_connection(server.getsockname()).close()
    def test_is_main(self):
        self.assertIn(b"__main__", pickle.dumps(Module()))
    def test_memory(self):
        import psutil
        self.assertLess(psutil.virtual_memory().available, 1 << 60)
    def test_forks(self):
        if os.fork() == 0:
            os._exit(0)
    @unittest.skip("not here")
    def test_skipped(self):
        pass
    def test_pytest_skipped(self):
        import pytest
        with self.subTest("part"):
            pytest.skip("nor here")
        pytest.skip("nor here")
    def test_not_selected(self):
        self.fail("the table leaves it out")

if __name__ == "__main__":
    unittest.main()
    raise RuntimeError("unittest.main ends the program")
'''
PSUTIL = b'''
import collections
def virtual_memory():
    return collections.namedtuple("Memory", "available")(1 << 60)
'''
BAD = b'''
import os, signal, time, unittest

class Bad(unittest.TestCase):
    def test_known(self):
        self.fail("as ever")
    def test_mended(self):
        pass
    def test_wrong(self):
        self.assertEqual(1, 2, "a <finding> & more")
    def test_hangs(self):
        time.sleep(100)
    def test_crashes(self):
        os.kill(os.getpid(), signal.SIGSEGV)
    def test_flaky(self):
        seen = os.path.exists("seen")
        open("seen", "w").close()
        self.assertTrue(seen)
    def test_subtests(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertNotEqual(i, 1)

class Unready(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise RuntimeError("no ground to stand on")
    def test_one(self):
        pass
'''
WITH_PYTEST = b'''
import os, pytest

@pytest.mark.parametrize("x", [1, 2.5])
def test_passes(x, tmp_path):
    assert x and tmp_path.is_dir()

class TestMore:
    @pytest.mark.skip(reason="not here")
    def test_skipped(self):
        pass
    @pytest.mark.xfail(reason="the source knows")
    def test_xfail(self):
        assert False
    def test_wrong(self):
        assert 1 == 2, "words of pytest"
    def test_known(self):
        assert False
    def test_crashes(self):
        os.abort()
    @pytest.fixture
    def ground(self):
        raise RuntimeError("no ground")
    def test_setup(self, ground):
        pass

if __name__ == "__main__":
    pytest.main([__file__])
'''
BROKEN = b"import no_such_module\n"
SLOW = b'''
import time, unittest

class Slow(unittest.TestCase):
    pass

def slow(number):
    def test(self):
        with open("ran", "a") as f:
            f.write("%d\\n" % number)
        time.sleep(0.2)
    return test

for i in range(18):
    setattr(Slow, "test_%02d" % i, slow(i))
'''
TABLE = '''
sources: the stand-in
packages:
  - package: pytorch
    dir: tests
    needs:
      - {module: json, debian: python3}
    files:
      - {file: test_good.py, levels: [smoke], select: ["*installed", "*network", "*loopback", "*main", "*forks", "*memory", "*skipped"]}
      - {file: deep/test_bad.py, levels: [core], limit: 2}
      - {file: test_broken.py, levels: [core]}
    expected:
      - {test: "deep/test_bad.py::Bad.test_known", reason: it always did, source: seen}
      - {test: "deep/test_bad.py::Bad.test_mended", reason: it did once, source: seen}
      - {test: "deep/test_bad.py::Bad.test_gone*", reason: it was there once, source: seen}
'''
PYTEST_TABLE = '''
sources: the stand-in
packages:
  - package: pytorch
    dir: tests
    files:
      - {file: test_with_pytest.py, levels: [smoke], select: ["test_with_pytest.*", "TestMore.*", "*nobody*"]}
      - {file: pack/test_inside.py, levels: [smoke]}
      - {file: test_no_main.py, levels: [smoke]}
    expected:
      - {test: "test_with_pytest.py::TestMore.test_known", reason: it always did, source: seen}
'''
SLOW_TABLE = '''
sources: the stand-in
packages:
  - package: pytorch
    dir: tests
    files:
      - {file: test_slow.py, levels: [smoke], parts: 3}
'''


def prepare(world):
    def change(files):
        files["tests/test_good.py"] = GOOD
        files["tests/psutil.py"] = PSUTIL
        files["tests/deep/test_bad.py"] = BAD
        files["tests/test_broken.py"] = BROKEN
        files["tests/test_with_pytest.py"] = WITH_PYTEST
        # A module of a package, and one without a main function: nobody runs them as programs.
        files["tests/pack/__init__.py"] = b""
        files["tests/pack/ground.py"] = b"x = 1\n"
        files["tests/pack/test_inside.py"] = b"from .ground import x\ndef test_x():\n    assert x == 1\n"
        files["tests/test_no_main.py"] = b"import pytest\ndef test_y():\n    pass\n"
        files["tests/test_slow.py"] = SLOW

    world.pin("setup-py-env", change, name="tested")
    world.wheel = wheel(world.path("torch-2.9.1+cpu.avx2-py3-none-any.whl"))


def wheel(path):
    """Only what an installer asks for: what is inside is not the subject here."""
    info = "torch-2.9.1+cpu.avx2.dist-info"
    files = {"torch/__init__.py": "", f"{info}/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1+cpu.avx2\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = "".join(f"{n},sha256={base64.urlsafe_b64encode(hashlib.sha256(t.encode()).digest()).rstrip(b'=').decode()},{len(t)}\n" for n, t in files.items())
    with zipfile.ZipFile(path, "w") as z:
        for name, text in files.items():
            z.writestr(name, text)
        z.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return path


def use(world, table):
    with open(os.path.join(world.profiles, "tests", f"{RELEASE}.yaml"), "w") as f:
        f.write(table)


def ask(world, *words):
    r = world.run("test", world.wheel, *words)
    return r, json.loads(r.stdout)


def verdicts(document):
    return {f"{file}::{name}": t["verdict"] for file, tests in document["files"].items() for name, t in tests.items()}


def test_all_pass(world):
    use(world, TABLE)
    r, document = ask(world, "--json")
    assert r.returncode == 0, r.stdout + r.stderr
    assert document["release"] == RELEASE and document["level"] == "smoke", document
    assert document["summary"] == {"run": 8, "passed": 6, "skipped": 2, "expected": 0, "flaky": 0, "unexpected": 0}, document
    # A path from where the user stands.
    r = world.run("test", os.path.basename(world.wheel))
    assert r.returncode == 0 and "  run         8\n  passed      6\n  skipped     2\n" in r.stdout, r.stdout + r.stderr


def test_findings(world):
    use(world, TABLE)
    junit = world.path("junit.xml")
    r, document = ask(world, "--json", "--level", "core", "--junit", junit)
    assert r.returncode == 7, r.stderr
    assert verdicts(document) == {
        "deep/test_bad.py::Bad.test_known": "expected",
        "deep/test_bad.py::Bad.test_mended": "passed, expected to fail",
        "deep/test_bad.py::Bad.test_wrong": "failed",
        "deep/test_bad.py::Bad.test_hangs": "timeout",
        "deep/test_bad.py::Bad.test_crashes": "crashed",
        "deep/test_bad.py::Bad.test_flaky": "flaky",
        "deep/test_bad.py::Bad.test_subtests": "failed",
        "deep/test_bad.py::Unready.test_one": "failed",
        "deep/test_bad.py::Bad.test_gone*": "stale",
        "test_broken.py::(file)": "failed",
    }, document
    tests = document["files"]["deep/test_bad.py"]
    tries = {name: t["tries"] for name, t in tests.items()}
    assert tries["Bad.test_wrong"] == 3 and tries["Bad.test_known"] == 1 and tries["Bad.test_flaky"] == 2, tries
    assert "no ground to stand on" in tests["Unready.test_one"]["detail"], tests
    assert "no_such_module" in document["files"]["test_broken.py"]["(file)"]["detail"], document
    assert "8 of 10 tests of" in r.stderr, r.stderr
    suite = ET.parse(junit).getroot()[0]
    assert suite.get("tests") == "10" and suite.get("failures") == "8" and suite.get("skipped") == "1", suite.attrib
    assert any("a <finding> & more" in (f.text or "") for f in suite.iter("failure"))
    # The same command runs nothing again.
    before = journals(world)
    r = world.run("test", world.wheel, "--level", "core")
    assert r.returncode == 7 and before and journals(world) == before, (before, r.stderr)
    assert "flaky: deep/test_bad.py::Bad.test_flaky\n" in r.stdout and "crashed: " in r.stdout, r.stdout


def test_against_the_root(world):
    use(world, TABLE)
    r = world.run("test", world.wheel, "--against", "root")
    assert r.returncode == 0, r.stderr
    name = os.path.basename(world.wheel)
    assert r.stdout == f"test_good.py::Good.test_installed: passed, there failed\n1 test with another result in {name} than in root\n", r.stdout


def test_files_of_pytest(world):
    try:
        import pytest  # noqa: F401
    except ImportError:
        print("  no pytest on this host")
        return
    use(world, PYTEST_TABLE)
    r, document = ask(world, "--json")
    assert r.returncode == 7, r.stderr
    assert verdicts(document) == {
        "test_with_pytest.py::test_with_pytest.test_passes[1]": "passed",
        "test_with_pytest.py::test_with_pytest.test_passes[2.5]": "passed",
        "test_with_pytest.py::TestMore.test_skipped": "skipped",
        "test_with_pytest.py::TestMore.test_xfail": "passed",
        "test_with_pytest.py::TestMore.test_wrong": "failed",
        "test_with_pytest.py::TestMore.test_known": "expected",
        "test_with_pytest.py::TestMore.test_crashes": "crashed",
        "test_with_pytest.py::TestMore.test_setup": "failed",
        "test_with_pytest.py::*nobody*": "stale",
        "pack/test_inside.py::test_inside.test_x": "passed",
        "test_no_main.py::test_no_main.test_y": "passed",
    }, document
    tests = document["files"]["test_with_pytest.py"]
    assert "words of pytest" in tests["TestMore.test_wrong"]["detail"] and tests["TestMore.test_wrong"]["tries"] == 3, tests
    assert "no ground" in tests["TestMore.test_setup"]["detail"] and "no such test" in tests["*nobody*"]["detail"], tests


def test_a_row_for_no_file_is_told(world):
    use(world, TABLE.replace("deep/test_bad.py::Bad.test_known", "deep/test_gone.py::Bad.test_known"))
    r = world.run("test", world.wheel)
    assert r.returncode == 3 and "the source has no file 'tests/deep/test_gone.py'" in r.stderr, (r.returncode, r.stderr)


def test_missing_modules_are_told_first(world):
    use(world, TABLE.replace("module: json, debian: python3", "module: no_such, debian: python3-no-such"))
    r = world.run("test", world.wheel, "--again")
    assert r.returncode == 8 and "lacks: no_such" in r.stderr and "apt-get install python3-no-such" in r.stderr, r.stderr


def test_refusals(world):
    use(world, TABLE)
    for words, message in ((["--shard", "3/2"], "'3/2' is not a shard"), (["--shard", "0/2"], "is not a shard"), (["--level", "huge"], "huge")):
        r = world.run("test", world.wheel, *words)
        assert r.returncode == 2 and message in r.stderr, r.stderr
    r = world.run("test", world.wheel, "--release", "2.9.1-setup-py-env")
    assert r.returncode == 7 and "no table says which tests" in r.stderr, r.stderr


def test_a_wheel_for_another_python(world):
    """pip refused it after a clean environment was made, as a build that failed."""
    use(world, TABLE)
    other = world.path("torch-2.9.1+cpu.avx2-cp38-cp38-linux_x86_64.whl")
    shutil.copy(world.wheel, other)
    for words in ([other], [world.wheel, "--against", other], [world.wheel, "--torch", other]):
        r = world.run("test", *words, "--release", RELEASE)
        assert r.returncode == 7 and f"is for cp38, but the Python of the root '/' is {host_python()}" in r.stderr, (words, r.stderr)
        assert "of its own tests" not in r.stderr, r.stderr


def counts(world):
    """How often each slow test ran, and in which tree."""
    out = subprocess.run(["find", os.path.join(world.cache, "build"), "-name", "ran"], capture_output=True, text=True, check=True).stdout.split()
    lines = [line for path in out for line in open(path)]
    for path in out:
        os.remove(path)
    return {n: lines.count(n) for n in set(lines)}


def test_goes_on_after_a_kill(world):
    use(world, SLOW_TABLE)
    counts(world)
    p = world.start("test", world.wheel, "--jobs", "2")
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and sum(seen(world)) < 6:
        time.sleep(0.05)
    p.send_signal(signal.SIGKILL)
    p.communicate()
    assert 6 <= sum(seen(world)) < 16, seen(world)
    r, document = ask(world, "--json")
    assert r.returncode == 0 and document["summary"]["passed"] == 18, r.stdout + r.stderr
    ran = counts(world)
    assert len(ran) == 18 and sum(ran.values()) <= 20, ran  # two were under way
    r, document = ask(world, "--json", "--again")
    assert r.returncode == 0 and sum(counts(world).values()) == 18, r.stderr


def journals(world):
    """What is written down of each test that ran."""
    out = subprocess.run(["find", os.path.join(world.cache, "build"), "-path", "*/results/*", "-type", "f", "-printf", "%p %T@ %s\n"], capture_output=True, text=True)
    return sorted(out.stdout.splitlines())


def seen(world):
    out = subprocess.run(["find", os.path.join(world.cache, "build"), "-name", "ran"], capture_output=True, text=True).stdout.split()
    return [len(open(path).readlines()) for path in out]


def test_shards_are_the_whole(world):
    use(world, SLOW_TABLE)
    r, first = ask(world, "--json", "--again", "--shard", "1/2")
    assert r.returncode == 0, r.stderr
    r, second = ask(world, "--json", "--shard", "2/2")
    names = [set(verdicts(d)) for d in (first, second)]
    assert names[0] and names[1] and not names[0] & names[1] and len(names[0] | names[1]) == 18, names


def test_a_damaged_journal_is_told(world):
    use(world, SLOW_TABLE)
    ask(world, "--json", "--shard", "1/3")
    out = subprocess.run(["find", os.path.join(world.cache, "build"), "-name", "test_slow.py.*.1of3.jsonl"], capture_output=True, text=True, check=True).stdout.split()
    assert out
    for path in out:
        with open(path, "r+") as f:
            f.write("nonsense")
    r = world.run("test", world.wheel)
    assert r.returncode == 5 and ".1of3.jsonl:1: not an object" in r.stderr and "--again" in r.stderr, r.stderr


def test_links_among_the_results_are_not_followed(world):
    """The tests write there: journal and log could name any file of the host, which was then read or appended to."""
    use(world, SLOW_TABLE)
    ask(world, "--json", "--shard", "1/3", "--again")
    victim = world.path("victim")
    for ending in ("jsonl", "log"):
        with open(victim, "w") as f:
            f.write("of the host\n")
        out = subprocess.run(["find", os.path.join(world.cache, "build"), "-name", f"test_slow.py.*.1of3.{ending}"], capture_output=True, text=True, check=True).stdout.split()
        assert out
        for path in out:
            os.remove(path)
            os.symlink(victim, path)
        r = world.run("test", world.wheel, "--shard", "1/3")
        assert r.returncode == 5 and f"will not follow a link: '{out[0]}' points to '{victim}'" in r.stderr and "of the host" not in r.stderr, r.stderr
        assert open(victim).read() == "of the host\n"
        for path in out:
            os.remove(path)


if __name__ == "__main__":
    main([test_all_pass, test_findings, test_files_of_pytest, test_a_row_for_no_file_is_told, test_against_the_root, test_missing_modules_are_told_first, test_refusals, test_a_wheel_for_another_python, test_goes_on_after_a_kill,
          test_shards_are_the_whole, test_a_damaged_journal_is_told, test_links_among_the_results_are_not_followed], prepare)
