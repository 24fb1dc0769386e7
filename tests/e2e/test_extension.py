"""An extension by one command against a stand-in for torch: built, packed, in the store; and all that is told before anything is compiled."""

import glob
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile

from toy import TOP, host_python, main, record
from wheelsite import Server, venv

RELEASE = "2.9.1-setup-py-env"
SETUP = """
import os
import torch
from setuptools import Extension, setup

lib = os.path.join(os.path.dirname(torch.__file__), "lib")
setup(
    name="Tiny-Ext",
    version="0.5",
    packages=["tiny_ext"],
    install_requires=["torch>=2"],
    ext_modules=[Extension("tiny_ext._C", ["tiny.c"], library_dirs=[lib], libraries=["torch_toy"], define_macros=[("BY", os.environ.get("TINY_BY", "1"))])],
)
"""
MODULE = """
#include <Python.h>
int toy_sum(int n);
static PyObject *sum(PyObject *self, PyObject *n) { (void)self; return PyLong_FromLong(BY * (long)toy_sum((int)PyLong_AsLong(n))); }
static PyMethodDef methods[] = {{"sum", sum, METH_O, 0}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_C", .m_size = -1, .m_methods = methods};
PyMODINIT_FUNC PyInit__C(void) { return PyModule_Create(&module); }
"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def folder(world, name="tiny", setup=SETUP):
    top = world.path(name)
    shutil.rmtree(top, ignore_errors=True)
    write(f"{top}/setup.py", setup)
    write(f"{top}/tiny.c", MODULE)
    write(f"{top}/tiny_ext/__init__.py", "from tiny_ext._C import sum  # noqa: F401\n")
    return top


def prepare(world):
    """A torch to build against. Its root has setuptools, and the stand-in imports nothing."""
    world.change("torch_extensions.yaml", r"^extension_requires: .*$", "extension_requires: [setuptools, wheel]")
    for name in ("check_common.py", "check_extension.py"):
        shutil.copy(os.path.join(TOP, "profiles", "checks", name), os.path.join(world.profiles, "checks"))
    r = world.build("setup-py-env")
    assert r.returncode == 0, r.stderr
    world.torch = record(r)["wheel"]


def extension(world, command, source, *args, torch=None):
    return world.run(command, "--extension", source, "--profile", "cpu-avx2", "--release", RELEASE, "--torch", torch or world.torch, "--json", *args)


def test_a_folder_becomes_a_wheel_and_then_a_store_hit(world):
    top = folder(world)
    r = extension(world, "build", top, "--set", "TINY_BY=3")
    assert r.returncode == 0, r.stderr
    item = record(r)
    wheel = item["wheel"]
    label = re.fullmatch(r"tiny_ext-0\.5\+(cpu\.avx2\.own[0-9a-f]{8}\.torch291)-cp.*", os.path.basename(wheel))
    assert label, wheel
    assert not item["store_hit"]
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        info = f"tiny_ext-0.5+{label[1]}.dist-info"
        metadata = z.read(f"{info}/METADATA").decode()
        version = os.path.basename(world.torch).split("-")[1]
        assert f"Requires-Dist: torch=={version}\n" in metadata and "torch>=2" not in metadata, metadata
        assert f"{info}/.metadata-rev" in names and any("sbom" in n for n in names), names
        site = world.path("site")
        for w in (world.torch, wheel):
            zipfile.ZipFile(w).extractall(site)
    out = subprocess.run(["/usr/bin/python3", "-c", "import tiny_ext; print(tiny_ext.sum(10))"], env={"PYTHONPATH": site}, capture_output=True, text=True)
    assert out.stdout.strip() == str(3 * 45 * 45), out
    checks = {c["check"] if "check" in c else c["name"]: c for c in item["record"]["used"]["checks"]}
    assert "import tiny_ext" in checks, checks
    # What lies beside the sources of an earlier build changes nothing.
    write(f"{top}/build/old.o", "x")
    again = extension(world, "build", top, "--set", "TINY_BY=3")
    assert again.returncode == 0 and record(again)["store_hit"], again.stderr
    offline = extension(world, "build", top, "--set", "TINY_BY=3", "--offline")
    assert offline.returncode == 0 and record(offline)["store_hit"], offline.stderr

# Three modules by a BuildExtension as torch's is: a build.ninja and a ninja for each, in one place. A unit waits until a second one is being compiled.
SEVERAL = """
import os
import subprocess
import sys
import types

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class BuildExtension(build_ext):
    use_ninja = True

    def build_extensions(self):
        def compile(sources, output_dir, macros, **kw):
            subprocess.check_output(["ninja", "--version"])
            place = os.path.abspath(output_dir)
            os.makedirs(place, exist_ok=True)
            objects = [f"{place}/{os.path.splitext(s)[0]}.o" for s in sources]
            flags = self.compiler.compiler_so[1:] + [f"-D{k}={v}" for k, v in macros] + [f"-I{d}" for d in self.compiler.include_dirs]
            with open(f"{place}/build.ninja", "w") as f:
                f.write("cflags = " + " ".join(flags) + "\\nrule compile\\n  command = sh %s/meet.sh $cflags -c $in -o $out\\n" % os.getcwd())
                f.writelines(f"build {o}: compile {os.path.abspath(s)}\\n" for s, o in zip(sources, objects))
            subprocess.run(["ninja", "-v", "-j", os.environ["MAX_JOBS"]], cwd=place, check=True)
            return objects

        self.compiler.compile = compile
        build_ext.build_extensions(self)


sys.modules["torch.utils.cpp_extension"] = types.ModuleType("torch.utils.cpp_extension")
sys.modules["torch.utils.cpp_extension"].BuildExtension = BuildExtension


def module(name, *sources):
    return Extension(f"several.{name}", list(sources), define_macros=[("NAME", name)])


setup(
    name="several",
    version="1",
    packages=["several"],
    ext_modules=[module("a", "a.c", "shared.c"), module("b", "b.c"), module("c", "c.c", "shared.c")],
    cmdclass={"build_ext": BuildExtension},
)
"""
MEET = """
for last; do :; done
: >"met-${last##*/}"
for i in $(seq 600); do
  [ "$(ls met-* | wc -l)" -lt 2 ] || exec gcc -fPIC "$@"
  sleep .1
done
exit 1
"""
NAMED = """
#include <Python.h>
#define QUOTED(x) #x
#define TEXT(x) QUOTED(x)
#define JOINED(x) PyInit_##x
#define INIT(x) JOINED(x)
"""
OF_MODULE = """
const char *shared(void);
static PyObject *name(PyObject *self, PyObject *n) { (void)self; (void)n; return PyUnicode_FromString(shared()); }
static PyMethodDef methods[] = {{"name", name, METH_NOARGS, 0}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = TEXT(NAME), .m_size = -1, .m_methods = methods};
PyMODINIT_FUNC INIT(NAME)(void) { return PyModule_Create(&module); }
"""
SHARED = "const char *shared(void); const char *shared(void) { return TEXT(NAME); }"


def test_units_of_several_modules_are_compiled_at_once(world):
    top = folder(world, "several", SEVERAL)
    write(f"{top}/meet.sh", MEET)
    write(f"{top}/several/__init__.py", "from several import a, b, c\n\nnames = [m.name() for m in (a, b, c)]\n")
    for name, text in {"a": OF_MODULE, "b": OF_MODULE + SHARED, "c": OF_MODULE, "shared": SHARED}.items():
        write(f"{top}/{name}.c", NAMED + text)
    r = extension(world, "build", top, "--jobs", "2")
    assert r.returncode == 0, r.stderr
    item = record(r)
    logs = [open(path).read() for path in glob.glob(f"{world.path('cache')}/objects/wheel/*/build.log")]
    log = next(text for text in logs if "shared.o" in text)
    assert "[4/4]" not in log and "[3/3]" in log and len(re.findall(r"\[\d/\d\].* -c \S*/shared.c", log)) == 2, log
    site = world.path("several-site")
    zipfile.ZipFile(item["wheel"]).extractall(site)
    out = subprocess.run(["/usr/bin/python3", "-c", "import several; print(several.names)"], env={"PYTHONPATH": site}, capture_output=True, text=True)
    assert out.stdout.strip() == "['a', 'b', 'c']", out
    write(f"{top}/b.c", "#error no\n")
    r = extension(world, "build", top, "--jobs", "2")
    assert r.returncode != 0 and re.search(r"in unit '\S*/b.o'.*#error no", r.stderr), r.stderr


def plan(world, source, *args, **kw):
    r = extension(world, "plan", source, *args, **kw)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)


def test_a_plan_shows_it_and_its_keys_follow_the_source(world):
    top = folder(world)
    first = plan(world, top)
    digits = host_python().replace(".", "")
    assert first["variant"] == f"tiny_ext-python{digits}-cpu-avx2" and first["local_label"] == "cpu.avx2.torch291", first
    assert first["env"]["FORCE_CUDA"] == "0" and first["sources"][0]["urls"] == [f"folder:{top}"], first
    write(f"{top}/tiny.c", MODULE + "int more;\n")
    assert plan(world, top)["compile_key"] != first["compile_key"]
    sdist = world.path("tiny_ext-0.6.tar.gz")
    with tarfile.open(sdist, "w:gz") as tar:
        for name, text in {"PKG-INFO": "Metadata-Version: 2.1\nName: tiny-ext\nVersion: 0.6\n", "setup.py": SETUP}.items():
            entry = tarfile.TarInfo(f"tiny_ext-0.6/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    source = plan(world, sdist)["sources"][0]
    assert source["sha256"] == hashlib.sha256(open(sdist, "rb").read()).hexdigest(), source
    other = folder(world, "with, commas", SETUP.replace("Tiny-Ext", "other"))
    several = plan(world, top, "--extension", other, "--package", "pytorch")
    assert [p["package"] for p in several] == ["pytorch", "tiny_ext", "other"], several
    assert several[1]["compile_key"] == plan(world, top)["compile_key"], several
    twice = extension(world, "plan", top, "--extension", sdist)
    assert twice.returncode == 2 and "are both 'tiny_ext'" in twice.stderr, twice.stderr


def a_set(world, name, *args, profile="cpu-avx2", **rows):
    write(world.path(name), "".join(f"{key}: {value}\n" for key, value in {"profile": profile, **rows}.items()))
    return world.run("bundle", world.path(name), "--out", world.path("set's out"), *args)


def test_a_set_is_wheels_an_index_and_what_goes_with_it(world):
    """The torch of the test, the folder that was built, and an index from which pip takes both."""
    top = folder(world)
    rows = {"torch": world.torch, "extensions": f"[{os.path.basename(top)}]"}
    dry = a_set(world, "all.yaml", "--dry-run", "--json", **rows)
    assert dry.returncode == 0 and not os.path.exists(world.path("set's out")), dry.stderr
    planned = [(w["name"], w["made"], w["from"]) for w in json.loads(dry.stdout)["wheels"]]
    assert planned == [("torch", "copied", world.torch), ("tiny_ext", "built", top)], planned
    assert "\nwhat of these the store has already is taken from it\n" in a_set(world, "all.yaml", "--dry-run", **rows).stdout
    r = a_set(world, "all.yaml", "--json", **rows)
    assert r.returncode == 0, r.stderr
    doc = json.loads(r.stdout)
    out = world.path("set's out")
    wheels = {w["name"]: w for w in doc["wheels"]}
    assert [w["version"] for w in json.loads(dry.stdout)["wheels"]] == [w["version"] for w in doc["wheels"]], (dry.stdout, doc)
    assert [w["made"] for w in doc["wheels"]] == ["copied", "built"] and doc["out"] == out, doc
    with open(f"{out}/constraints.txt") as f:
        lines = [line for line in f.read().splitlines() if not line.startswith("#")]
    digests = {name: hashlib.sha256(open(w["wheel"], "rb").read()).hexdigest() for name, w in wheels.items()}
    assert lines == [f"{n}=={w['version']} # sha256:{digests[n]}" for n, w in wheels.items()], lines
    with open(f"{out}/sbom.cdx.json") as f:
        bill = json.load(f)
    kinds = {p["value"] for c in bill["components"] for p in c.get("properties", []) if p["name"] == "ptbuild:kind"}
    assert "source" in kinds, kinds
    assert bill["dependencies"][-1]["dependsOn"] == [c["bom-ref"] for c in bill["components"][:2]], bill["dependencies"][-1]
    with open(f"{out}/Dockerfile") as f:
        stage = f.read()
    assert "FROM ${BASE} AS all\n" in stage and f"torch=={wheels['torch']['version']}" in stage, stage
    # The line that it prints, and the stage's, into environments of their own.
    env = world.path("set-env")
    venv(env)
    for words in (shlex.split(doc["pip"]), [w.replace("/bundle/", f"{out}/") for w in shlex.split(re.search(r"python3 -m (pip .*)", stage)[1])]):
        done = subprocess.run([f"{env}/bin/python", "-m", words[0], "--isolated", words[1], *(w.replace("--extra-", "--") for w in words[2:]), "--force-reinstall", "--no-deps"], capture_output=True, text=True)
        assert done.returncode == 0 and "tiny_ext-0.5" in done.stdout, (words, done.stdout + done.stderr)
    assert subprocess.run([f"{env}/bin/python", "-c", "import tiny_ext; print(tiny_ext.sum(10))"], capture_output=True, text=True).stdout.strip() == str(45 * 45)
    # Another wheel there would be in its index.
    shutil.copy(world.torch, f"{out}/torch-9-py3-none-any.whl")
    again = a_set(world, "all.yaml", **rows)
    assert again.returncode == 7 and "torch-9-py3-none-any.whl' does not belong to the bundle" in again.stderr, again.stderr
    os.remove(f"{out}/torch-9-py3-none-any.whl")
    again = a_set(world, "all.yaml", **rows)
    assert again.returncode == 0 and "from the store" in again.stdout and "store has" not in again.stdout, again.stdout + again.stderr


def test_rows_of_a_set_that_do_not_go_together(world):
    folder(world)
    folder(world, "other", SETUP)
    folder(world, "gpu", SETUP + "\n# CUDAExtension('x', ['x.cu'])\n")
    needs = folder(world, "needs", SETUP)
    write(f"{needs}/pyproject.toml", "[project]\nname = 'needs'\nversion = '1'\ndependencies = ['torch>=2.12']\nrequires-python = '>=3.6'\n")
    older = folder(world, "older")
    write(f"{older}/pyproject.toml", "[project]\nname = 'older'\nversion = '1'\nrequires-python = '<3.6'\n")
    python = host_python()
    other = "3.10" if python != "3.10" else "3.11"
    cases = [
        ({"extensions": "[tiny, needs]"}, 7, ["2:1 (torch", "3:20 (extensions: needs)"], "requires torch>=2.12"),
        ({"extensions": "[tiny, other]"}, 3, ["3:14 (extensions: tiny)", "3:20 (extensions: other)"], "are both 'tiny_ext'"),
        ({"extensions": "[gpu]"}, 7, ["3:14 (extensions: gpu)"], "has GPU code alone"),
        ({"extensions": "[tiny]", "python": f"'{other}'"}, 3, [f"4:1 (python: {other})"], f"unknown Python '{other}'"),
        ({"extensions": "[older]"}, 7, ["3:14 (extensions: older)"], "requires Python <3.6"),
        ({"extensions": "[tiny]", "companions": "[torchvision]"}, 3, ["2:1 (torch", "4:14 (companions: torchvision)"], "has no torchvision"),
        ({"extensions": "[tiny]", "companions": "[torchtext]"}, 3, ["4:14: "], "has no companion 'torchtext'"),
        ({"extensions": "[torch-sparse==0.6.18]"}, 7, ["3:14 (extensions: torch-sparse==0.6.18)"], "imports torch_scatter"),
        ({"extensions": "[tiny]", "cuda": "'13.0'"}, 3, ["4:1 (cuda: 13.0)", "1:1 (profile: cpu-avx2)"], "has no CUDA"),
        ({"extensions": "[nowhere]"}, 3, ["3:14 (extensions: nowhere)"], "no folder or sdist 'nowhere'"),
    ]
    for rows, status, places, text in cases:
        r = a_set(world, "bad.yaml", "--dry-run", **{"torch": world.torch, **rows})
        told = [f"bad.yaml:{place}" in r.stderr for place in places]
        assert r.returncode == status and all(told) and text in r.stderr, (rows, r.returncode, told, r.stderr)


def test_official_companions_on_the_stable_abi_go_with_later_torches(world):
    """By the shipped tables: torchvision from 0.29.1 on takes every torch from 2.14.0 on, whichever release it is of."""
    for torch, vision, text in (("2.14.1", "0.29.2", "torchvision-0.29.2-py3-none"), ("2.15.0", "0.29.1", "torchvision-0.29.1-cp313"), ("2.13.0", "0.29.2", "torch 2.13.0 is paired with torchvision 0.28.0, not 0.29.2"), ("2.14.1", "0.28.0", "not 0.28.0")):
        write(world.path("abi.yaml"), f"profile: sm90-avx2\npython: '3.13'\ntorch: official=={torch}\ncompanions: [torchvision=={vision}, torchaudio]\n")
        r = subprocess.run([world.ptbuild, "bundle", world.path("abi.yaml"), "--dry-run", "--offline", "--cache", world.path("abi"), "--profiles", os.path.join(TOP, "profiles")], capture_output=True, text=True, timeout=300)
        assert text in r.stdout + r.stderr and r.returncode == (7 if "paired with" in r.stderr else 0), (torch, vision, r.returncode, r.stdout + r.stderr)


def torch_like(world, name, members):
    path = world.path(name)
    with zipfile.ZipFile(path, "w") as z:
        for member, text in members.items():
            z.writestr(member, text)
    return path


def test_what_does_not_fit_is_told_before_anything_is_compiled(world):
    top, digits, machine = folder(world), host_python().replace(".", ""), os.uname().machine
    tag = f"cp{digits}-cp{digits}"
    usual = f"torch-2.9.1-{tag}-manylinux_2_17_{machine}.whl"
    other = "aarch64" if machine == "x86_64" else "x86_64"
    broken = world.path("broken", usual)
    write(broken, "PK no zip")
    needs = folder(world, "needs", SETUP.replace("setup(\n", "setup(\n    python_requires='x',\n"))
    write(f"{needs}/pyproject.toml", "[project]\nname = 'tiny'\nversion = '1'\ndependencies = ['torch>=2.12']\n")
    older = folder(world, "older")
    write(f"{older}/pyproject.toml", "[project]\nname = 'tiny'\nversion = '1'\nrequires-python = '<3.6'\n")
    gpu = folder(world, "gpu", SETUP + "\n# CUDAExtension('x', ['x.cu'])\n")
    kernels = folder(world, "kernels")
    write(f"{kernels}/csrc/a.cu", "")
    wants = folder(world, "wants")
    write(f"{wants}/pyproject.toml", "[build-system]\nrequires = ['setuptools', 'no-such-thing-anywhere>=3']\n[project]\nname = 'tiny'\nversion = '1'\n")
    silent = folder(world, "silent", SETUP.replace('version="0.5"', "version=find()"))
    cases = [
        (top, "torch-2.9.1-cp27-cp27-linux_x86_64.whl", {}, 7, "is for cp27, but the build is for Python"),
        (top, f"torch-2.9.1-{tag}-manylinux_2_17_{other}.whl", {}, 7, "is for another platform"),
        (kernels, usual, {"torch/version.py": "cuda = '12.8'\n"}, 7, "has GPU code, as csrc/a.cu"),
        (top, usual, {"torch/share/cmake/Torch/TorchConfig.cmake": "-D_GLIBCXX_USE_CXX11_ABI=0"}, 7, "uses the old libstdc++ ABI"),
        (top, f"torchvision-2.9.1-{tag}-linux_{machine}.whl", {}, 2, "is a wheel of torchvision, not of torch"),
        (top, broken, None, 5, usual),
        (needs, world.torch, None, 7, "requires torch>=2.12, not torch 2.9.1"),
        (older, world.torch, None, 7, "requires Python <3.6"),
        (gpu, world.torch, None, 7, "has GPU code alone, and profile 'cpu-avx2' has no CUDA"),
        (silent, world.torch, None, 2, "does not say its version without being run"),
        (world.path("tiny", "tiny_ext"), world.torch, None, 2, "has neither setup.py nor pyproject.toml"),
        ("torch-scatter==1.0", world.torch, None, 3, "extension 'torch-scatter==1.0' is not pinned"),
        (top, "official==1.2.3", None, 3, "the official wheels of release '1.2.3' are not pinned"),
        (wants, world.torch, None, 4, "no-such-thing-anywhere>=3), and --offline forbids asking the index"),
    ]
    for source, torch, members, status, text in cases:
        named = torch_like(world, torch, members) if members is not None else torch
        command = "build" if source == wants else "plan"
        r = extension(world, command, source, *(["--offline"] if source == wants else []), torch=named)
        assert r.returncode == status and text in r.stderr, (source, torch, text, r.returncode, r.stderr)
        assert "building" not in r.stderr, r.stderr


def test_cpu_code_is_built_against_a_torch_for_cuda(world):
    """Most users have such a torch. The wheel is labelled as the code for the CPU that it is, and requires that torch."""
    top, torch = folder(world, "plain"), world.path("for-cuda", os.path.basename(world.torch))
    os.makedirs(os.path.dirname(torch), exist_ok=True)
    with zipfile.ZipFile(world.torch) as old, zipfile.ZipFile(torch, "w") as new:
        for member in old.infolist():
            if member.filename != "torch/version.py":
                new.writestr(member, old.read(member))
        new.writestr("torch/version.py", "cuda = '12.8'\n")
    r = extension(world, "plan", top, torch=torch)
    assert r.returncode == 0, r.stderr
    plan = json.loads(r.stdout)
    assert plan["cuda"] is None and plan["local_label"].startswith("cpu.avx2"), plan
    assert any("code for the CPU alone" in n and "CUDA 12.8" in n for n in plan["notes"]), plan["notes"]
    r = extension(world, "build", top, torch=torch)
    assert r.returncode == 0, r.stderr
    item = record(r)
    assert "+cpu.avx2" in item["wheel"], item["wheel"]
    with zipfile.ZipFile(item["wheel"]) as z:
        metadata = next(z.read(n).decode() for n in z.namelist() if n.endswith(".dist-info/METADATA"))
    assert f"Requires-Dist: torch=={os.path.basename(torch).split('-')[1]}\n" in metadata, metadata


def test_an_official_torch_is_fetched_last(world):
    """It is asked for with the other places, and downloaded when nothing else stands against the build; another build of the same extension needs it no more."""
    name = os.path.basename(world.torch)
    top, cuda = folder(world, "last"), folder(world, "last-gpu", SETUP + "\n# CUDAExtension('x', ['x.cu'])\n")
    with open(world.torch, "rb") as f:
        data = f.read()
    digest = hashlib.sha256(data).hexdigest()
    write(os.path.join(world.profiles, "official", "2.9.1"), f"ptbuild official 1\n{name} {digest} {len(data)} -\n")
    write(world.path("index", "simple", "torch", "index.html"), json.dumps({"meta": {"api-version": "1.1"}, "files": [{"filename": name, "url": f"/{name}", "size": len(data), "hashes": {"sha256": digest}}]}))
    shutil.copy(world.torch, world.path("index", name))
    with Server(world.path("index")) as server:
        env = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}

        def official(command, source, *args, port=server.url, cache="last-cache"):
            words = ["--extension", source, "--profile", "cpu-avx2", "--release", RELEASE, "--torch", "official", "--json", *args]
            return world.run(command, *words, cache=world.path(cache), env={**env, "PIP_INDEX_URL": f"{port}/simple"})

        for command in ("doctor", "build"):
            r = official(command, top, port="http://127.0.0.1:1")
            assert r.returncode == 4 and f"'{name}' cannot be downloaded" in r.stderr + r.stdout, (command, r.returncode, r.stdout, r.stderr)
            assert "building" not in r.stderr, r.stderr
        r = official("build", cuda)
        assert r.returncode == 7 and "has GPU code alone" in r.stderr, r.stderr
        assert not any(a.endswith(".whl") for a in server.asked), server.asked
        r = official("build", top, "--check")
        assert r.returncode == 0 and not record(r)["store_hit"], r.stderr
        assert len([a for a in server.asked if a.endswith(".whl")]) == 1, server.asked
    r = official("build", top, port="http://127.0.0.1:1")
    assert r.returncode == 0 and record(r)["store_hit"], r.stderr
    shutil.rmtree(world.path("last-cache", "objects", "source", digest))
    r = official("build", top, port="http://127.0.0.1:1")
    assert r.returncode == 0 and record(r)["store_hit"], r.stderr


main([test_cpu_code_is_built_against_a_torch_for_cuda, test_an_official_torch_is_fetched_last, test_a_set_is_wheels_an_index_and_what_goes_with_it, test_official_companions_on_the_stable_abi_go_with_later_torches, test_rows_of_a_set_that_do_not_go_together, test_a_folder_becomes_a_wheel_and_then_a_store_hit, test_units_of_several_modules_are_compiled_at_once, test_a_plan_shows_it_and_its_keys_follow_the_source, test_what_does_not_fit_is_told_before_anything_is_compiled], prepare)
