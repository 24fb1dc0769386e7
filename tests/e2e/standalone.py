"""A Python in the layout of python-build-standalone: below python/, for any place, with headers and pip, and with the paths and compilers of the machine that made it in its
sysconfig. It is made of a Python of this machine; PTBUILD_TEST_STANDALONE names another than the system's."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

LEFT_OUT = {"__pycache__", "test", "tests", "site-packages", "dist-packages", "idlelib", "tkinter", "turtledemo", "pydoc_data", "lib2to3"}
ASK = """
import json, os, setuptools, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps({"version": "%d.%d" % sys.version_info[:2], "program": os.path.realpath(sys.executable), "lib": paths["stdlib"], "include": paths["include"],
                  "site": os.path.dirname(os.path.dirname(setuptools.__file__))}))
"""


def ask():
    python = os.environ.get("PTBUILD_TEST_STANDALONE", "/usr/bin/python3")
    out = subprocess.run([python, "-I", "-c", ASK], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def as_of_another_machine(text, lib):
    """What sysconfig has of the build: another prefix, and a compiler that no root has."""
    prefix = os.path.dirname(os.path.dirname(lib))
    text = re.sub(rf"(?<![\w/]){re.escape(prefix)}(?=/(bin|include|lib|share)\b|['\"])", "/install", text)
    return re.sub(r"('(?:CC|CXX|LDSHARED|LDCXXSHARED|BLDSHARED|LINKCC)': ')[^\s']+", r"\1clang-of-another-machine", text)


class Packer:
    def __init__(self):
        self.raw = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.raw, mode="w:gz", compresslevel=1)

    def put(self, name, data, mode=0o644):
        info = tarfile.TarInfo(f"python/{name}")
        info.size, info.mtime, info.mode = len(data), 1700000000, mode
        self.tar.addfile(info, io.BytesIO(data))

    def link(self, name, to):
        info = tarfile.TarInfo(f"python/{name}")
        info.type, info.linkname, info.mtime = tarfile.SYMTYPE, to, 1700000000
        self.tar.addfile(info)

    def packages(self, site, name):
        """pip, and what the old ones of these Pythons have besides."""
        for entry in sorted(os.listdir(site)):
            path = os.path.join(site, entry)
            if re.match(r"(pip|setuptools|pkg_resources|_distutils_hack|wheel)\b", entry) and os.path.isdir(path):
                self.tree(path, os.path.join(name, entry), site)

    def tree(self, top, name, lib):
        for folder, dirs, files in os.walk(top, followlinks=True):
            dirs[:] = sorted(d for d in dirs if d not in LEFT_OUT and not d.startswith("config-"))
            for file in sorted(files):
                path = os.path.join(folder, file)
                if not os.path.isfile(path) or file.endswith((".pyc", ".a")):
                    continue
                with open(path, "rb") as f:
                    data = f.read()
                if file.startswith("_sysconfigdata"):
                    data = as_of_another_machine(data.decode(), lib).encode()
                self.put(os.path.join(name, os.path.relpath(path, top)), data)

    def done(self):
        self.tar.close()
        return self.raw.getvalue()


def relocatable(program):
    """The program, which finds its library beside it, if it has one."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(program, folder)
        subprocess.run(["patchelf", "--set-rpath", "$ORIGIN/../lib", copy], check=True)
        with open(copy, "rb") as f:
            return f.read()


def python_archive():
    """Its version, "3.12", and the archive's bytes."""
    have, p = ask(), Packer()
    name = f"python{have['version']}"
    p.put(f"bin/{name}", relocatable(have["program"]), 0o755)
    p.link("bin/python3", name)
    p.tree(have["lib"], f"lib/{name}", have["lib"])
    for site in ("site-packages", "dist-packages"):  # Debian's looks in the second
        p.packages(have["site"], f"lib/{name}/{site}")
    p.tree(have["include"], f"include/{name}", have["lib"])
    p.put(f"include/{name}/standalone.h", b"#define STANDALONE 1\n")
    linked = subprocess.run(["ldd", have["program"]], capture_output=True, text=True, check=True).stdout
    for path in re.findall(r"=> (\S+/libpython\S+)", linked):
        with open(path, "rb") as f:
            p.put(f"lib/{os.path.basename(path)}", f.read(), 0o755)
    return have["version"], p.done()


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as out:
        out.write(python_archive()[1])
