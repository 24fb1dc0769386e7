"""What the build of an extension needs and no list has: resolved once by pip, locked beside the wheel's record, offline afterwards."""

import hashlib
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from toy import TOP, host_python, main, record  # noqa: E402
from wheelsite import make_wheel  # noqa: E402

RELEASE = "2.9.1-setup-py-env"
SETUP = """
import madeup
from setuptools import Extension, setup

setup(name="tiny", %spackages=["tiny"], ext_modules=[Extension("tiny._C", ["tiny.c"], define_macros=[("VERSION", madeup.__version__.replace(".", ""))])])
"""
MODULE = """
#include <Python.h>
static PyObject *version(PyObject *self, PyObject *n) { (void)self; (void)n; return PyLong_FromLong(VERSION); }
static PyMethodDef methods[] = {{"version", version, METH_NOARGS, 0}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_C", .m_size = -1, .m_methods = methods};
PyMODINIT_FUNC PyInit__C(void) { return PyModule_Create(&module); }
"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def folder(world, name, requires, setup=SETUP % 'version="1.0", '):
    top = world.path(name)
    write(f"{top}/setup.py", setup)
    write(f"{top}/tiny.c", MODULE)
    write(f"{top}/tiny/__init__.py", "from tiny._C import version  # noqa: F401\n")
    write(f"{top}/pyproject.toml", f"[build-system]\nrequires = {requires!r}\nbuild-backend = 'setuptools.build_meta'\n")
    return top


def prepare(world):
    """A torch, the root's setuptools, and an index of its own with what the list of extensions has, and more."""
    world.links = world.path("links")
    os.mkdir(world.links)
    listed = make_wheel(world.links, "listed", "1.0")
    make_wheel(world.links, "listed", "2.0")
    make_wheel(world.links, "below", "3.0", python=f"cp{host_python().replace('.', '')}-none-any")
    for version in ("1.0", "1.1", "2.0"):
        make_wheel(world.links, "madeup", version, [f'below>=3; python_version == "{host_python()}"', 'never; extra == "x"', 'never; python_version < "3"'])
    with open(listed, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    write(os.path.join(world.profiles, "requirements", "extension.txt"), f"listed==1.0 --hash=sha256:{digest}\n")
    world.change("torch_extensions.yaml", r"^extension_requires: .*$", "extension_requires: [listed]")
    for name in ("check_common.py", "check_extension.py"):
        shutil.copy(os.path.join(TOP, "profiles", "checks", name), os.path.join(world.profiles, "checks"))
    world.env = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": world.links, "PIP_CONFIG_FILE": "/dev/null"}
    r = world.build("setup-py-env")
    assert r.returncode == 0, r.stderr
    world.torch = record(r)["wheel"]


def extension(world, command, source, *args, **kw):
    return world.run(command, "--extension", source, "--profile", "cpu-avx2", "--release", RELEASE, "--torch", world.torch, "--json", *args, env=kw.pop("env", world.env), **kw)


def lock_of(world):
    with open(os.path.join(world.out, f"tiny-python{host_python().replace('.', '')}-cpu-avx2", "requirements.txt")) as f:
        return f.read()


def pins(text):
    return [line.split(" ")[0] for line in text.splitlines() if not line.startswith("#")]


def test_requirements_are_locked_once(world):
    top = folder(world, "tiny", ["setuptools", "madeup>=1.0,<2"][1:])
    r = extension(world, "build", top)
    assert r.returncode == 0, r.stderr
    assert "asking the Python index for what its build needs: listed, madeup>=1.0,<2" in r.stderr, r.stderr
    lock, first = lock_of(world), record(r)
    # What the list pins stays as it is, the newest of the rest that fits, and what that requires.
    assert pins(lock) == ["below==3.0", "listed==1.0", "madeup==1.1"], lock
    assert all(re.search(r" --hash=sha256:[0-9a-f]{64}$", line) for line in lock.splitlines()[1:]), lock
    assert any(p.startswith("madeup 1.1") for p in first["record"]["inputs"]["python"]), first["record"]["inputs"]
    r = extension(world, "plan", top)
    assert json.loads(r.stdout)["build_needs"] == "the lock of an earlier build pins 3 packages: below==3.0, listed==1.0, madeup==1.1", r.stdout
    # Offline the second time, with an index that has moved on, and from nothing that was compiled.
    make_wheel(world.links, "madeup", "1.2", ["below"])
    shutil.rmtree(os.path.join(world.cache, "objects", "wheel"))
    r = extension(world, "build", top, "--offline", env={**world.env, "PIP_FIND_LINKS": "/nowhere"})
    assert r.returncode == 0, r.stderr
    again = record(r)
    assert not again["store_hit"] and again["record"]["sha256"] == first["record"]["sha256"] and lock_of(world) == lock, again
    # Another machine with the lock makes the same bytes; without it, what is the newest there.
    mine = world.path("mine.txt")
    write(mine, lock)
    r = extension(world, "build", top, "--requirements", mine, cache=world.path("other"))
    assert r.returncode == 0 and record(r)["record"]["sha256"] == first["record"]["sha256"], r.stderr
    r = extension(world, "build", top, cache=world.path("third"))
    assert r.returncode == 0 and "madeup==1.2" in pins(lock_of(world)), r.stderr
    assert record(r)["record"]["sha256"] != first["record"]["sha256"]
    os.remove(os.path.join(world.links, "madeup-1.2-py3-none-any.whl"))


def test_a_version_of_the_list_gives_way(world):
    """A requirement that excludes what the list pins."""
    top = folder(world, "newer", ["listed>=2", "madeup<2"])
    r = extension(world, "build", top)
    assert r.returncode == 0 and pins(lock_of(world)) == ["below==3.0", "listed==2.0", "madeup==1.1"], (r.stderr, lock_of(world))


BACK_END = """
from setuptools.build_meta import *  # noqa: F401,F403

def get_requires_for_build_wheel(config_settings=None):
    print("not an answer")
    return ["madeup>=1.0,<2", 'never; python_version < "3"']
"""


def test_a_back_end_asks_for_more(world):
    """Its answer is known once its code ran; from then on it is in the lock, and nothing has to be asked."""
    top = folder(world, "asking", [])
    write(f"{top}/own.py", BACK_END)
    write(f"{top}/pyproject.toml", "[build-system]\nrequires = []\nbuild-backend = 'own'\nbackend-path = ['.']\n")
    r = extension(world, "build", top)
    assert r.returncode == 0 and "its back end asks for madeup>=1.0,<2\n" in r.stderr, r.stderr
    assert pins(lock_of(world)) == ["below==3.0", "listed==1.0", "madeup==1.1"], lock_of(world)
    first, lock = record(r), lock_of(world)
    shutil.rmtree(os.path.join(world.cache, "objects", "wheel"))
    r = extension(world, "build", top, "--offline", env={**world.env, "PIP_FIND_LINKS": "/nowhere"})
    assert r.returncode == 0 and "back end" not in r.stderr, r.stderr
    assert not record(r)["store_hit"] and record(r)["record"]["sha256"] == first["record"]["sha256"]
    # A lock of the user's is not added to.
    short, whole = world.path("asked-short.txt"), world.path("asked-whole.txt")
    write(short, "".join(line + "\n" for line in lock.splitlines() if "madeup" not in line))
    write(whole, lock)
    r = extension(world, "build", top, "--requirements", short, cache=world.path("asked"))
    assert r.returncode == 7 and "needs madeup>=1.0,<2, too, and '" in r.stderr, (r.returncode, r.stderr)
    r = extension(world, "build", top, "--requirements", whole, cache=world.path("asked"))
    assert r.returncode == 0 and record(r)["record"]["sha256"] == first["record"]["sha256"], r.stderr


def test_markers_and_extras_count(world):
    """A requirement with a marker or extras is one as well, and another Python's is none."""
    make_wheel(world.links, "optional", "1.0", ['madeup==1.0; extra == "x"\nProvides-Extra: x'])
    r = extension(world, "build", folder(world, "extras", ["optional[X]"]))
    assert r.returncode == 0 and pins(lock_of(world)) == ["below==3.0", "listed==1.0", "madeup==1.0", "optional==1.0"], r.stderr
    top = folder(world, "marked", ['never; python_version < "3"', f'madeup <2; python_version == "{host_python()}"'])
    r = extension(world, "build", top)
    assert r.returncode == 0 and "madeup==1.1" in pins(lock_of(world)), r.stderr
    for text in ("madeup @ file:///madeup.whl ; python_version > '3'", "madeup[x\n--index-url http://localhost/]"):
        r = extension(world, "plan", folder(world, "elsewhere", [text]))
        assert r.returncode in (5, 7) and "build" in r.stderr, (text, r.returncode, r.stderr)


def test_a_version_is_given(world):
    top = folder(world, "versionless", ["madeup<2"], SETUP % "version=__import__('os').environ['SETUPTOOLS_SCM_PRETEND_VERSION'], ")
    r = extension(world, "build", top)
    assert r.returncode == 2 and "does not say its version" in r.stderr and "--version" in r.stderr, r.stderr
    r = extension(world, "build", top, "--version", "4.5")
    assert r.returncode == 0 and os.path.basename(record(r)["wheel"]).startswith("tiny-4.5+cpu.avx2"), r.stderr


def test_what_cannot_be_resolved(world):
    none = folder(world, "none", ["madeup>=9"])
    for words, status, text in (((none,), 7, "pip finds no wheels for Python"), ((none, "--offline"), 4, "--offline forbids asking the index")):
        r = extension(world, "build", *words, cache=world.path("fresh"))
        assert r.returncode == status and text in r.stderr and "building" not in r.stderr, (words, r.returncode, r.stderr)
    top = folder(world, "tiny", ["madeup>=1.0,<2"])
    lock = world.path("short.txt")
    write(lock, f"listed==1.0 --hash=sha256:{'1' * 64}\n")
    r = extension(world, "build", top, "--requirements", lock, cache=world.path("fresh"))
    assert r.returncode == 7 and "has 'madeup>=1.0,<2', which the build needs" in r.stderr, (r.returncode, r.stderr)
    write(lock, "listed>=1\n")
    r = extension(world, "build", top, "--requirements", lock, cache=world.path("fresh"))
    assert r.returncode == 3 and "short.txt:1:" in r.stderr, (r.returncode, r.stderr)
    r = world.run("plan", "--profile", "cpu-avx2", "--requirements", lock)
    assert r.returncode == 2 and "--requirements without --extension" in r.stderr, r.stderr


def test_a_plan_needs_no_index(world):
    top = folder(world, "tiny", ["madeup>=1.0,<2"])
    r = extension(world, "plan", top, "--offline", cache=world.path("planned"))
    assert r.returncode == 0 and json.loads(r.stdout)["package"] == "tiny", r.stderr
    needs = json.loads(r.stdout)["build_needs"]
    assert "madeup>=1.0,<2" in needs and needs.endswith("/requirements.txt'"), needs
    lock = world.path("pinned.txt")
    write(lock, f"madeup==1.1 --hash=sha256:{'1' * 64}\nlisted==1.0 --hash=sha256:{'2' * 64}\n")
    r = extension(world, "plan", top, "--requirements", lock)
    assert json.loads(r.stdout)["build_needs"] == f"'{lock}' pins 2 packages: madeup==1.1, listed==1.0", r.stdout
    r = extension(world, "doctor", top, "--requirements", lock)
    assert any("pins 2 packages: madeup==1.1" in check["text"] for check in json.loads(r.stdout)["checks"]), r.stdout


main([test_requirements_are_locked_once, test_a_version_of_the_list_gives_way, test_a_back_end_asks_for_more, test_markers_and_extras_count, test_a_version_is_given, test_what_cannot_be_resolved, test_a_plan_needs_no_index], prepare)
