"""The stand-in's wheel, made as setuptools makes it, whose import alone takes longer than all the rest. An archive without this file is built by setuptools."""

import base64
import glob
import hashlib
import os
import shlex
import subprocess
import sys
import sysconfig
import zipfile


class Extension:
    def __init__(self, name, sources, include_dirs, library_dirs, libraries, extra_objects=(), extra_link_args=()):
        self.name, self.sources = name, sources
        self.compile = [f"-I{d}" for d in (*include_dirs, sysconfig.get_paths()["include"])]
        self.link = [*extra_objects, *(f"-L{d}" for d in library_dirs), *(f"-l{n}" for n in libraries), *extra_link_args]

    def build(self):
        def words(name):
            return shlex.split(sysconfig.get_config_var(name) or "")

        own = {name: shlex.split(os.environ.get(name, "")) for name in ("CPPFLAGS", "CFLAGS", "LDFLAGS")}
        cc = shlex.split(os.environ.get("CC", "")) or words("CC")
        shared = cc + words("LDSHARED")[len(words("CC")) :]
        to = self.name.replace(".", "/") + sysconfig.get_config_var("EXT_SUFFIX")
        objects = [f"build/{os.path.basename(source)}.o" for source in self.sources]
        for source, made in zip(self.sources, objects):
            subprocess.check_call([*cc, *words("CFLAGS"), *words("CCSHARED"), *own["CFLAGS"], *own["CPPFLAGS"], *self.compile, "-c", source, "-o", made])
        subprocess.check_call([*shared, *own["LDFLAGS"], *own["CFLAGS"], *own["CPPFLAGS"], *objects, *self.link, "-o", to])
        return to


def setup(name, version, packages, package_data, install_requires, ext_modules):
    out = sys.argv[sys.argv.index("--dist-dir") + 1]
    made = [extension.build() for extension in ext_modules]
    files = [f for p in packages for pattern in ("*.py", *package_data[p]) for f in sorted(glob.glob(f"{p}/{pattern}"))] + made
    python = "cp%d%d" % sys.version_info[:2]
    tag = f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    info = f"{name}-{version}.dist-info"
    requires = "".join(f"Requires-Dist: {r}\n" for r in install_requires)
    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: bdist_wheel\nRoot-Is-Purelib: false\nTag: {tag}\n",
        "top_level.txt": "".join(f"{p}\n" for p in packages),
    }
    os.makedirs(out, exist_ok=True)
    with zipfile.ZipFile(f"{out}/{name}-{version}-{tag}.whl", "w") as z:
        record = ""

        def add(path, data, mode):
            nonlocal record
            entry = zipfile.ZipInfo(path, (2023, 11, 14, 22, 13, 20))
            entry.external_attr = (mode | 0o100000) << 16
            z.writestr(entry, data)
            record += f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"

        for path in files:
            with open(path, "rb") as f:
                add(path, f.read(), os.stat(path).st_mode & 0o777)
        for path, text in texts.items():
            add(f"{info}/{path}", text.encode(), 0o644)
        add(f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644)
