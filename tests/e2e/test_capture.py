"""A wheel of the torch that is installed in a root, on a root that is just enough: Python with pip, and a stand-in that lies there as Debian's torch does."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

from toy import TOP, main, record
from wheelsite import venv

PYTHON = os.path.realpath("/usr/bin/python3")
NAME = os.path.basename(PYTHON)  # python3.13
TAG = NAME.replace("python", "cp").replace(".", "")
LIBRARIES = "usr/lib/" + subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
EXTENSION = "_C" + subprocess.run([PYTHON, "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"], capture_output=True, text=True, check=True).stdout.strip()
SITE = "usr/lib/python3/dist-packages"
WHEEL = re.compile(rf"torch-2\.6\.0\+debian-{TAG}-{TAG}-manylinux_2_\d+_\w+\.whl")

INIT = '''"""What was installed."""
from torch._C import answer  # noqa: F401

__version__ = "2.6.0+debian"
'''
MODULE = """
#include <Python.h>
int outer(void);
static PyObject *answer(PyObject *self, PyObject *args) { (void)self; (void)args; return PyLong_FromLong(outer()); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, 0}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_C", .m_size = -1, .m_methods = methods};
PyMODINIT_FUNC PyInit__C(void) { return PyModule_Create(&module); }
"""
CHECK = """
import json, sys, torch
want = json.loads(sys.argv[1])
for name, ok in {"installed": torch.__file__.startswith(sys.prefix + "/"), "version": torch.__version__ == want["version"], "answer": torch.answer() == 42, "dot": False}.items():
    print(json.dumps({"check": name, "ok": ok, "detail": ""}))
print(json.dumps({"done": True}))
sys.exit(1)
"""
METADATA = "Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0+debian\nRequires-Dist: sympy==1.13.1\nRequires-Dist: filelock\n"
STATUS = "Package: {}\nStatus: install ok installed\nArchitecture: amd64\nVersion: {}\n\n"


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def compile_c(source, out, *flags):
    os.makedirs(os.path.dirname(out), exist_ok=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-o", out, "-", "-x", "none", *flags], input=source, text=True, check=True)


def needed(path):
    """The libraries of this machine that a program or module is linked with."""
    out = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", out)


def copy(path, root):
    to = root + path
    if not os.path.exists(to):
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(os.path.realpath(path), to)


CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"  # pip 25 reads it when it is imported


def make_python(root):
    """Python, what it is linked with, and pip."""
    for link in ("bin", "lib", "lib64"):
        os.makedirs(f"{root}/usr/{link}", exist_ok=True)
        os.symlink(f"usr/{link}", f"{root}/{link}")
    shutil.copytree(f"/usr/lib/{NAME}", f"{root}/usr/lib/{NAME}", symlinks=True, ignore=shutil.ignore_patterns("test", "config-*", "sitecustomize*", "EXTERNALLY-MANAGED"))
    os.makedirs(f"{root}/{SITE}")
    for module in os.listdir("/" + SITE):
        if module == "pip" or module.startswith("pip-"):
            shutil.copytree(f"/{SITE}/{module}", f"{root}/{SITE}/{module}")
    copy(PYTHON, root)
    os.symlink(NAME, f"{root}/usr/bin/python3")
    modules = [f"/usr/lib/{NAME}/lib-dynload/{m}" for m in os.listdir(f"/usr/lib/{NAME}/lib-dynload")]
    programs = ("/usr/bin/true", "/bin/sh")
    for path in {*programs, CERTIFICATES, *(p for m in (PYTHON, *programs, *modules) for p in needed(m))}:
        copy(path, root)


def make_torch(root):
    """As Debian has it: links into the library directory, an .egg-info, headers and tests of packages of their own."""
    torch, lib = f"{root}/{SITE}/torch", f"{root}/{LIBRARIES}"
    write(f"{torch}/__init__.py", INIT)
    write(f"{torch}/version.py", "cuda = None\n")
    write(f"{torch}/bin/test_api", "a test\n")
    write(f"{torch}/bin/torch_shm_manager", "a program\n")
    write(f"{root}/usr/include/ATen/core/a.h", "/* a header */\n")
    write(f"{root}/usr/share/doc/python3-torch/copyright", "yours\n")
    write(f"{root}/{SITE}/torch-2.6.0+debian.egg-info/PKG-INFO", METADATA)
    compile_c("int other(void) { return 40; }", f"{lib}/libother.so.1", "-Wl,-soname,libother.so.1")
    compile_c("int other(void); int outer(void) { return other() + 2; }", f"{lib}/libtorch_cpu.so.2.6.0", "-Wl,-soname,libtorch_cpu.so.2.6", f"{lib}/libother.so.1")
    os.symlink("libtorch_cpu.so.2.6.0", f"{lib}/libtorch_cpu.so.2.6")
    include = subprocess.run([PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], capture_output=True, text=True, check=True).stdout.strip()
    compile_c(MODULE, f"{torch}/{EXTENSION}", f"-I{include}", f"{lib}/libtorch_cpu.so.2.6.0", "-Wl,-rpath-link," + lib)
    for folder in ("lib", "include"):
        os.mkdir(f"{torch}/{folder}")
    os.symlink("../../../../" + LIBRARIES[len("usr/lib/") :] + "/libtorch_cpu.so.2.6", f"{torch}/lib/libtorch_cpu.so")
    os.symlink("../../../../../include/ATen", f"{torch}/include/ATen")
    os.symlink("../../../../../include/c10", f"{torch}/include/c10")  # of a package that is not installed
    os.symlink("../../../libtorch-test", f"{torch}/test")
    files = [f"/{SITE}/torch/{n}" for n in ("", "__init__.py", "version.py", EXTENSION, "bin/test_api", "bin/torch_shm_manager", "lib/libtorch_cpu.so", "include/ATen", "include/c10", "test")]
    write(f"{root}/var/lib/dpkg/info/python3-torch.list", "\n".join([*files, f"/{SITE}/torch-2.6.0+debian.egg-info/PKG-INFO", "/usr/share/doc/python3-torch/copyright", ""]))
    write(f"{root}/var/lib/dpkg/info/libother1:amd64.list", f"/{LIBRARIES}/libother.so.1\n")
    write(f"{root}/var/lib/dpkg/status", STATUS.format("python3-torch", "2.6.0+dfsg-7") + STATUS.format("libother1", "3-1"))
    write(f"{root}/etc/ld.so.conf", f"/{LIBRARIES}\n")
    write(f"{root}/etc/os-release", 'ID=debian\nVERSION_ID="13"\n')


def prepare(world):
    write(os.path.join(world.profiles, "checks", "check_torch.py"), CHECK)
    world.root = world.path("root")
    make_python(world.root)
    make_torch(world.root)
    world.torch = f"{world.root}/{SITE}/torch"


def capture(world, *args, **kw):
    return world.run("capture", "--root", world.root, *args, **kw)


def refused(world, code, *parts, args=(), **kw):
    before = world.wheels()
    result = capture(world, *args, **kw)
    assert result.returncode == code, f"exit {result.returncode} instead of {code}: {result.stderr[-2000:]}"
    for part in (*parts, "hint:"):
        assert part in result.stderr, f"'{part}' is not in: {result.stderr[-2000:]}"
    assert world.wheels() == before
    tmp = os.path.join(world.cache, "tmp")
    assert not os.path.isdir(tmp) or os.listdir(tmp) == [], os.listdir(tmp)


class Changed:
    """A file of the root with other contents, or without it, for a moment."""

    def __init__(self, path, text=None):
        self.path, self.text = path, text

    def __enter__(self):
        os.rename(self.path, self.path + ".kept")
        if self.text is not None:
            write(self.path, self.text)

    def __exit__(self, *_):
        os.rename(self.path + ".kept", self.path)


def test_an_unknown_defect_is_an_error(world):
    """The check 'dot' fails; only a row of captured.yaml makes that known."""
    path = os.path.join(world.profiles, "captured.yaml")
    with open(path) as f:
        text = f.read()
    with Changed(path, text.replace("check: dot", "check: other")):
        refused(world, 7, "check 'dot' failed")


def test_a_set_says_the_version_before(world):
    """Of a root that is there its torch is asked; of a world that is not yet made, the tables know it."""
    write(world.path("bundle.yaml"), "profile: cpu-avx2\ntorch: root\ncompanions: [torchvision]\n")
    words = ("bundle", world.path("bundle.yaml"), "--dry-run", "--json", "--profiles", os.path.join(TOP, "profiles"))
    for root in (["--root", world.root], ["--root", "world:debian13"]):
        dry = world.run(*words, *root)
        assert dry.returncode == 0, dry.stderr
        assert [w["version"] for w in json.loads(dry.stdout)["wheels"] if w["name"] == "torch"] == ["2.6.0+debian"], dry.stdout
    with Changed(world.torch):
        none = world.run(*words, "--root", world.root)
    assert none.returncode == 7 and "(torch: root)" in none.stderr and "has no torch" in none.stderr, none.stderr


def test_it_is_a_wheel(world):
    item = record(capture(world, "--json"))
    r = item["record"]
    assert not item["store_hit"] and WHEEL.fullmatch(r["wheel"]), r["wheel"]
    assert r["captured"] == "python3-torch=2.6.0+dfsg-7" and r["isa"] is None and r["verified"]["errors"] == 0
    assert [v["needed"] for v in r["vendored"]] == ["libother.so.1"] and r["vendored"][0]["package"] == "libother1=3-1"
    assert r["known_defects"][0]["check"] == "dot" and [c["check"] for c in r["used"]["checks"] if not c["ok"]] == ["dot"]
    with zipfile.ZipFile(item["wheel"]) as z:
        names = set(z.namelist())
        info = "torch-2.6.0+debian.dist-info/"
        assert {"torch/lib/libtorch_cpu.so", "torch/include/ATen/core/a.h", "torch/bin/torch_shm_manager", info + "LICENSE", info + ".metadata-rev"} <= names, names
        assert not {n for n in names if "test" in n or "c10" in n or "egg-info" in n}, names
        metadata = z.read(info + "METADATA").decode()
        told = z.read(info + "captured-from").decode()
    assert "Requires-Dist: sympy>=1.13.1\n" in metadata and "Requires-Dist: filelock\n" in metadata and "==1.13.1" not in metadata, metadata
    assert "not compiled by ptbuild: captured from python3-torch=2.6.0+dfsg-7 of debian 13" in told and "check 'dot'" in told, told
    statement = json.load(open(item["wheel"] + ".intoto.json"))["predicate"]["buildDefinition"]
    assert statement["buildType"].startswith("urn:x-ptbuild:wheel-of-installed-package"), statement
    subprocess.run([world.ptbuild, "verify", "--profiles", world.profiles, item["wheel"]], check=True, capture_output=True)


def test_again_is_a_hit_and_warns(world):
    result = capture(world)
    assert result.returncode == 0, result.stderr
    assert "from the store; built in" in result.stdout and "warning   known to fail: check 'dot'" in result.stdout, result.stdout
    assert "the baseline of" in result.stdout and "pytorch: taking" not in result.stderr


def test_pip_installs_it(world):
    """Into a fresh environment, which then has no need of the root."""
    env, wheel = world.path("env"), os.path.join(world.out, world.wheels()[0])
    venv(env)
    subprocess.run([env + "/bin/pip", "install", "--quiet", "--no-index", "--no-deps", wheel], check=True, capture_output=True)
    out = subprocess.run([env + "/bin/python", "-c", "import torch; print(torch.answer(), torch.__version__, torch.__file__)"], capture_output=True, text=True, check=True).stdout.split()
    assert out[:2] == ["42", "2.6.0+debian"] and out[2].startswith(env), out
    listed = subprocess.run([env + "/bin/pip", "show", "--files", "torch"], capture_output=True, text=True, check=True).stdout
    assert "torch/lib/libtorch_cpu.so" in listed
    shutil.rmtree(env)


def test_a_change_in_the_root_is_another_wheel(world):
    first = record(capture(world, "--json"))["record"]
    info = f"{os.path.dirname(world.torch)}/torch-2.6.0+debian.egg-info/PKG-INFO"
    for path, text in ((f"{world.torch}/__init__.py", INIT + "more = 1\n"), (info, METADATA + "Requires-Dist: more\n")):
        with Changed(path, text):
            item = record(capture(world, "--json", "--out", world.path("other")))
            assert not item["store_hit"] and item["record"]["output_key"] != first["output_key"], path
    assert record(capture(world, "--json"))["store_hit"]


def test_a_root_without_torch(world):
    with Changed(f"{world.torch}"):
        refused(world, 7, "has no torch", "python3-torch")


def test_a_torch_that_is_not_whole(world):
    with Changed(f"{world.torch}/version.py"):
        refused(world, 5, "is not whole", "version.py", "python3-torch=2.6.0+dfsg-7 lists")
    with Changed(f"{world.root}/{LIBRARIES}/libtorch_cpu.so.2.6.0"):
        refused(world, 5, "is not whole", "torch/lib/libtorch_cpu.so")
    with Changed(f"{world.root}/{SITE}/torch-2.6.0+debian.egg-info"):
        refused(world, 7, "has no metadata next to it")
    with Changed(f"{world.root}/var/lib/dpkg/info/python3-torch.list"):
        refused(world, 7, "nothing says which files")
    with Changed(f"{world.root}/{LIBRARIES}/libother.so.1"):
        refused(world, 7, "needs 'libother.so.1'", cache=world.path("empty"))


def test_a_list_that_leads_out(world):
    """A name with '..' is written nowhere."""
    path = f"{world.root}/var/lib/dpkg/info/python3-torch.list"
    write(f"{world.root}/usr/lib/evil", "evil\n")
    with open(path) as f:
        text = f.read()
    with Changed(path, text + f"/{SITE}/../../evil\n"):
        refused(world, 5, "leads out of it", cache=world.path("empty"))
    os.remove(f"{world.root}/usr/lib/evil")


def test_links_in_a_circle(world):
    path = f"{world.root}/var/lib/dpkg/info/python3-torch.list"
    with open(path) as f:
        text = f.read()
    for link, target in (("include/one", "."), ("include/one", "../lib/two")):
        os.symlink(target, f"{world.torch}/{link}")
        os.symlink("../include", f"{world.torch}/lib/two")
        with Changed(path, text + f"/{SITE}/torch/{link}\n"):
            refused(world, 5, "is a link in a circle", cache=world.path("empty"))
        os.remove(f"{world.torch}/{link}")
        os.remove(f"{world.torch}/lib/two")


def test_a_torch_that_cannot_be_imported(world):
    with Changed(f"{world.torch}/__init__.py", "raise ImportError('it is broken')\n"):
        refused(world, 7, "it is broken")


def test_what_tries_the_wheel_is_not_there(world):
    """It is missed before anything is made."""
    pip = f"{world.root}/{SITE}/pip"
    os.rename(pip, pip + "-was")
    try:
        refused(world, 8, "cannot be captured here: pip: not in the Python of the root", "python3-pip", cache=world.path("empty"))
    finally:
        os.rename(pip + "-was", pip)


def test_a_torch_of_another_python(world):
    os.rename(f"{world.torch}/{EXTENSION}", f"{world.torch}/_C.cpython-27.so")
    try:
        refused(world, 7, "was not built for the root's Python", EXTENSION)
    finally:
        os.rename(f"{world.torch}/_C.cpython-27.so", f"{world.torch}/{EXTENSION}")


def test_a_torch_for_cuda(world):
    with Changed(f"{world.torch}/version.py", "cuda = '12.4'\n"):
        refused(world, 7, "for CUDA 12.4")


def test_other_packages(world):
    refused(world, 2, "unknown package 'torch'", "write pytorch", args=["torch"])
    refused(world, 2, "'torchvision' cannot be captured", "--torch root", args=["torchvision"])
    refused(world, 2, "--profile", args=["--profile", "cpu-avx2"])


def test_a_torch_that_pip_installed(world):
    """RECORD says what it has, and its .dist-info stays."""
    source = os.path.join(world.out, world.wheels()[0])
    site = f"{world.root}/{SITE}"
    os.rename(f"{site}/torch", f"{site}/was-torch")
    os.rename(f"{site}/torch-2.6.0+debian.egg-info", f"{site}/was-torch.egg")
    try:
        with zipfile.ZipFile(source) as z:
            z.extractall(site)
        write(f"{site}/torch-2.6.0+debian.dist-info/INSTALLER", "pip\n")
        path = os.path.join(world.profiles, "captured.yaml")
        with open(path) as f:
            text = f.read()
        with Changed(path, text.replace("package: python3-torch, version: \"2.6.0+dfsg-*\", check", "package: torch, version: \"2.6.0+debian*\", check")):
            item = record(capture(world, "--json", "--out", world.path("of-pip")))
        assert item["record"]["captured"] == "torch=2.6.0+debian by pip" and item["record"]["vendored"] == [], item["record"]["vendored"]
        with zipfile.ZipFile(item["wheel"]) as z, zipfile.ZipFile(source) as before:
            kept = {n for n in before.namelist() if n.startswith("torch/")}
            assert kept == {n for n in z.namelist() if n.startswith("torch/")}
            assert not [n for n in z.namelist() if n.endswith("INSTALLER")]
    finally:
        shutil.rmtree(f"{site}/torch", ignore_errors=True)
        shutil.rmtree(f"{site}/torch-2.6.0+debian.dist-info", ignore_errors=True)
        os.rename(f"{site}/was-torch", f"{site}/torch")
        os.rename(f"{site}/was-torch.egg", f"{site}/torch-2.6.0+debian.egg-info")


if __name__ == "__main__":
    sys.exit(
        main(
            [
                test_an_unknown_defect_is_an_error,
                test_a_set_says_the_version_before,
                test_it_is_a_wheel,
                test_again_is_a_hit_and_warns,
                test_pip_installs_it,
                test_a_change_in_the_root_is_another_wheel,
                test_a_root_without_torch,
                test_a_torch_that_is_not_whole,
                test_a_list_that_leads_out,
                test_links_in_a_circle,
                test_a_torch_that_cannot_be_imported,
                test_what_tries_the_wheel_is_not_there,
                test_a_torch_of_another_python,
                test_a_torch_for_cuda,
                test_other_packages,
                test_a_torch_that_pip_installed,
            ],
            prepare,
        )
    )
