#!/usr/bin/env python3
"""A container image of a world: the fake torch, built in it without a sandbox by a user who may do nothing else, has the files of one from the sandbox with the same world, but for the bill of materials, which lists the packages of a world that ptbuild itself shows.

usage: test_world_image.py PTBUILD [STORE [WORLD]]      needs root, runc and, unless the store has the world (debian13_lean), the network
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from runc_container import TOP, Container, docker_profile

sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
import toy  # noqa: E402

PTBUILD = os.path.abspath(sys.argv[1])
USER = 1000
# The libraries that a ptbuild of this machine brings with it; those of the C library are the container's.
SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|resolv)|ld-linux.*)\.so|^linux-vdso")


def unpack(image, directory):
    with tarfile.open(image) as tar:

        def blob(entry):
            return tar.extractfile("blobs/" + entry["digest"].replace(":", "/"))

        manifest = json.load(blob(json.load(tar.extractfile("index.json"))["manifests"][0]))
        for layer in manifest["layers"]:
            with tarfile.open(fileobj=blob(layer)) as part:
                part.extractall(directory)
        return json.load(blob(manifest["config"]))["config"]


def copy_libraries(directory):
    out = subprocess.run(["ldd", PTBUILD], capture_output=True, text=True, check=True).stdout
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", out, re.M):
        if not SYSTEM.match(name):
            shutil.copy(path, os.path.join(directory, name))


def give(directory):
    subprocess.run(["chown", "-R", f"{USER}:{USER}", directory], check=True)


def wheels(directory):
    return sorted(name for name in os.listdir(directory) if name.endswith(".whl"))


def files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def build(world, *options):
    return ["build", "--profile", "cpu-avx2", "--release", "2.9.1-setup-py-env", "--jobs", "2", "--profiles", world.profiles, "--offline", *options]


def use_zlib(files):
    """Worlds have no libyaml."""
    for path, old, new in (("CMakeLists.txt", b"YAML_LIBRARY yaml", b"YAML_LIBRARY z"), ("csrc/toy.cpp", b"yaml.h", b"zlib.h"), ("csrc/toy.cpp", b"yaml_get_version_string", b"zlibVersion")):
        assert files[path].count(old) == 1, path
        files[path] = files[path].replace(old, new)


def write_image(store, name, work):
    made = subprocess.run([PTBUILD, "world", "image", name, "--json", "--cache", store, "--out", os.path.join(work, "image.tar")], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    image = json.loads(made.stdout)
    print(f"{image['image']}: {image['bytes'] >> 20} MiB, {len(image['layers'])} layer(s)", flush=True)
    config = unpack(os.path.join(work, "image.tar"), os.path.join(work, "root"))
    assert config["User"] == f"{USER}:{USER}", config
    os.unlink(os.path.join(work, "image.tar"))


def compare(store, name, work):
    libraries, shared = os.path.join(work, "lib"), os.path.join(work, "shared")
    os.mkdir(libraries)
    os.mkdir(shared)
    copy_libraries(libraries)
    shown = subprocess.run([PTBUILD, "world", "show", name, "--json", "--cache", store], capture_output=True, text=True, check=True)
    python = next(part["table"].get("python") or "" for part in json.loads(shown.stdout)["parts"]) or "3.13"
    toy.host_python = lambda: python
    world = toy.World(PTBUILD)
    world.pin("setup-py-env", use_zlib)
    try:
        sandboxed = os.path.join(work, "sandboxed")
        done = subprocess.run([PTBUILD, *build(world, "--root", "world:" + name, "--cache", store, "--out", sandboxed)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        os.chmod(world.dir, 0o755)
        give(shared)
        with Container(user=USER, capabilities=[], seccomp=docker_profile(), root=os.path.join(work, "root"), shared=[shared], shown=[libraries, world.dir]) as container:
            done = container.run(PTBUILD, *build(world, "--sandbox", "none", "--cache", os.path.join(shared, "store"), "--out", os.path.join(shared, "dist")), env=["LD_LIBRARY_PATH=" + libraries], cwd="/tmp")
        assert done.returncode == 0, (done.returncode, done.stdout[-2000:], done.stderr[-3000:])
        ours, theirs = wheels(os.path.join(shared, "dist")), wheels(sandboxed)
        assert ours == theirs and len(ours) == 1, (ours, theirs)
        (wheel,) = ours
        mine, other = files(os.path.join(shared, "dist", wheel)), files(os.path.join(sandboxed, wheel))
        assert list(mine) == list(other), (list(mine), list(other))
        differ = [path for path in mine if mine[path] != other[path]]
        assert [os.path.basename(path) for path in sorted(differ)] == ["RECORD", "torch.cdx.json"], differ
        assert any(path.endswith(".so") for path in mine), list(mine)
    finally:
        world.close()
    print(f"test_world_image: {wheel}: {len(mine)} files, all but the bill of materials have the same bytes")


def main():
    if os.geteuid() != 0 or not shutil.which("runc"):
        sys.exit("NOT RUN: test_world_image needs root and runc")
    with tempfile.TemporaryDirectory(prefix="ptbuild-image-") as work:
        os.chmod(work, 0o755)
        store = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else os.path.join(work, "store")
        name = sys.argv[3] if len(sys.argv) > 3 else "debian13_lean"
        write_image(store, name, work)
        compare(store, name, work)


if __name__ == "__main__":
    main()
