"""Builds with a Python that is a part of its own over a base: it is the one that runs, compiles and tries; what it lacks comes from the release's locked list, or is refused at once."""

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
import zipfile

import faults_kinds
from standalone import python_archive
from test_worlds import Site, made
from toy import host_python, main
from wheelsite import Server, make_wheel

PART = """sources: made for a test
part: {part}
kind: python
python: "{python}"
prefix: usr/local
archives: [cpython==1.0]
"""
LOCK = "ptbuild lock 1\npart {part} {platform}\nasked {asked}\nfile cpython 1.0 - {sha256} {url}/python.tar.gz\n"
# The module is compiled, with a header that only that Python has.
SETUP = """\
import os, subprocess, sys, sysconfig
assert sys.base_prefix == "/usr/local", sys.base_prefix
{more}
python3 = subprocess.run(["python3", "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True, check=True)
assert python3.stdout.strip() == "/usr/local", python3.stdout
subprocess.run([os.environ["CC"], *os.environ.get("CFLAGS", "").split(), "-shared", "-fPIC", "-I" + sysconfig.get_paths()["include"], "module.c", "-o", "module.so",
                *os.environ["LDFLAGS"].split(), "-lyaml"], check=True)
"""
CHECK = """\
import json, sys
{more}
import torch
checks = {{"python": sys.base_prefix == "/usr/local", "compiled": torch.sum(10) == 45}}
for name, ok in checks.items():
    print(json.dumps({{"check": name, "ok": ok, "detail": sys.base_prefix}}))
print(json.dumps({{"done": True, "checks": 2, "failed": sum(not ok for ok in checks.values())}}))
"""

site = None
python = name = None


def add_part(world, server):
    """The Python as a part; returns the name of the world with it."""
    global python
    python, data = python_archive()
    part, platform = "python" + python.replace(".", "_"), f"{os.uname().machine}-linux"
    os.makedirs(world.path("served"))
    with open(world.path("served", "python.tar.gz"), "wb") as f:
        f.write(data)
    worlds = os.path.join(world.profiles, "worlds")
    with open(os.path.join(worlds, f"{part}.yaml"), "w") as f:
        f.write(PART.format(part=part, python=python))
    with open(os.path.join(worlds, f"{part}.{platform}.lock"), "w") as f:
        asked = hashlib.sha256(b"suite \narchive cpython==1.0\n").hexdigest()
        f.write(LOCK.format(part=part, platform=platform, asked=asked, sha256=hashlib.sha256(data).hexdigest(), url=server.url))
    return f"one+{part}"


def release(world, tag, more="", requires="", lines=""):
    """The quick stand-in, which that Python compiles; `more` is imported by its build and its check."""
    faults_kinds.pin_tiny(world, tag)
    path, files = world.path(f"{tag}.tar.gz"), {}
    with tarfile.open(path) as t:
        for m in t.getmembers():
            files[m.name] = t.extractfile(m).read()
    del files["tiny-1.0/module.so"]
    files["tiny-1.0/module.c"] = b"#include <standalone.h>\n" + files["tiny-1.0/module.c"]
    files["tiny-1.0/setup.py"] = SETUP.format(more=more).encode() + files["tiny-1.0/setup.py"]
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as t:
        for file, data in sorted(files.items()):
            info = tarfile.TarInfo(file)
            info.size, info.mtime, info.mode = len(data), 1700000000, 0o644
            t.addfile(info, io.BytesIO(data))
    with open(path, "wb") as f:
        f.write(raw.getvalue())
    with open(world.release(tag)) as f:
        text = f.read()
    text = re.sub(r"sha256: \w+", "sha256: " + hashlib.sha256(raw.getvalue()).hexdigest(), text)
    text = re.sub(r"^pythons: .*", f"pythons: {json.dumps(sorted({host_python(), python}))}", text, flags=re.M)
    text = text.replace("python_requires: []", f"python_requires: [{requires}]")
    if lines:
        with open(os.path.join(world.profiles, "requirements", f"{tag}.txt"), "w") as f:
            f.write(lines)
        text = text.replace("  settings:\n", f"  requirements: {tag}.txt\n  settings:\n")
    with open(world.release(tag), "w") as f:
        f.write(text)
    with open(os.path.join(world.profiles, "checks", "check_torch.py"), "w") as f:
        f.write(CHECK.format(more=more))


def run(command, tag, *more, cache=None):
    return site.run(command, f"pytorch-python{python.replace('.', '')}-cpu-avx2", "--release", f"2.9.1-{tag}", "--root", f"world:{name}", *([] if command == "plan" else ["--json"]), *more, cache=cache)


def aid(world, marker=""):
    """A distribution that the build and the check import, on an index that is a directory."""
    wheels = world.path("wheels")
    os.makedirs(wheels, exist_ok=True)
    path = make_wheel(wheels, "aid", "1.5")
    os.environ.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=wheels)
    with open(path, "rb") as f:
        return f"aid==1.5{marker} --hash=sha256:{hashlib.sha256(f.read()).hexdigest()}\n"


def prepare(world):
    global site, name
    site = Site(world)
    server = Server(world.path("served"))
    server.__enter__()
    name = add_part(world, server)


def test_it_is_the_python_of_the_build(world):
    release(world, "plain")
    planned = run("plan", "plain", "--all")
    assert planned.returncode == 0, planned.stderr
    assert "PATH=/usr/local/bin:/usr/bin:/bin" in planned.stdout, planned.stdout
    done = run("build", "plain")
    assert done.returncode == 0, done.stderr[-3000:]
    (item,) = json.loads(done.stdout)
    tag = "cp" + python.replace(".", "")
    assert f"-{tag}-{tag}-" in item["wheel"] and item["record"]["inputs"]["world"]["name"] == name, item["wheel"]
    with zipfile.ZipFile(item["wheel"]) as z:
        assert z.read("torch/_C.so").startswith(b"\x7fELF")
    # Its modules are compiled, once for all starts: the archive has none of it compiled. They are of the world, and of no part's tree.
    made = json.loads(site.run("world", "show", name, "--json").stdout)["dir"]
    top = os.path.join(made, f"usr/local/lib/python{python}")
    for module in ("os.py", "json/decoder.py"):
        folder, file = os.path.split(os.path.join(top, module))
        with open(os.path.join(folder, "__pycache__", f"{file[:-3]}.cpython-{python.replace('.', '')}.pyc"), "rb") as f:
            assert f.read(8)[4:] == b"\1\0\0\0", f"{module}: not compiled for good (PEP 552)"
    checked = site.run("world", "verify", name)
    assert checked.returncode == 0, checked.stderr


def test_what_it_lacks_comes_from_the_locked_list(world):
    world.change("needs.yaml", r"^needs:\n", "needs:\n  - {module: aid, debian: python3-aid, why: the stand-in imports it}\n")
    try:
        release(world, "listed", "import aid", '"aid>=1,<2"', aid(world))
        done = run("build", "listed")
        assert done.returncode == 0, done.stderr[-3000:]
        (item,) = json.loads(done.stdout)
        assert "aid 1.5 (environment)" in done.stdout, item["record"]
        doctor = run("doctor", "listed", "--offline")
        lines = {c["name"]: c for c in json.loads(doctor.stdout)["checks"]}
        assert lines["aid"]["level"] == "ok" and "installs it for itself" in lines["aid"]["text"], lines["aid"]
        assert doctor.returncode == 0, doctor.stderr
    finally:
        world.change("needs.yaml", r"^  - \{module: aid.*\n", "")


def test_a_list_without_it_is_refused_before_the_world_is_made(world):
    release(world, "short", "import aid", '"aid>=1,<2"', aid(world, ' ; python_version < "3"'))
    release(world, "old", "import aid", '"aid>=2"', aid(world))
    release(world, "none", "import aid", '"aid>=1"')
    for tag, lacks in (("short", "has no aid>=1,<2 for it"), ("old", "has no aid>=2 for it"), ("none", "has no locked list of what it needs (aid>=1)")):
        # A plan is for any root: it tells that this one is none.
        planned = run("plan", tag, cache=world.path("other"))
        words = " ".join(planned.stdout.split())
        assert planned.returncode == 0 and "none: release 2.9.1-" + tag in words and lacks in words, planned.stdout
        for command in ("doctor", "build"):
            done = run(command, tag, cache=world.path("other"))
            assert done.returncode == 7, (command, tag, done.returncode, done.stderr)
            assert lacks in done.stderr and f"cannot be built for Python {python}" in done.stderr and host_python() in done.stderr, done.stderr
            assert not made(done.stderr, name) and "to download" not in done.stderr, done.stderr


def test_keys_are_closed(world):
    site.keys.close()


if __name__ == "__main__":
    if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 3 << 30:
        tempfile.tempdir = "/dev/shm"
    main([t for n, t in list(globals().items()) if n.startswith("test_")], prepare)
