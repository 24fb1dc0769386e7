"""A directory of stand-in wheels that pin each other, an index of it, and a web server for it on a port of its own."""

import base64
import glob
import hashlib
import http.server
import importlib.util
import os
import subprocess
import sys
import threading
import zipfile

NAMES = {"torch": "2.6.0", "torchvision": "0.21.0", "torchaudio": "2.6.0"}


def make_wheel(folder, name, version, requires=(), build="", python="py3-none-any", code="", marked=False, accepts=">=3.8"):
    """A small wheel whose only module knows its version, and has the code; `marked` as ptbuild packs them; `accepts`: Requires-Python."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": f"__version__ = {version!r}\n{code}".encode(),
        f"{info}/METADATA": ("Metadata-Version: 2.1\nName: %s\nVersion: %s\nRequires-Python: %s\n" % (name, version, accepts) + "".join(f"Requires-Dist: {r}\n" for r in requires)).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {python}\n".encode(),
    }
    if marked:
        files[f"{info}/.metadata-rev"] = f"rev=1 tool=ptbuild 0.1.0 input={'0' * 64}\n".encode()
    record = "".join("%s,sha256=%s,%d\n" % (n, base64.urlsafe_b64encode(hashlib.sha256(d).digest()).decode().rstrip("="), len(d)) for n, d in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    path = os.path.join(folder, f"{name}-{version}{'-' + build if build else ''}-{python}.whl")
    with zipfile.ZipFile(path, "w") as z:
        for n, d in files.items():
            z.writestr(zipfile.ZipInfo(n, (2024, 1, 1, 0, 0, 0)), d)
    return path


def make_three(folder, label):
    """torch, torchvision and torchaudio of one profile, the others pinned to that torch."""
    torch = f"torch=={NAMES['torch']}+{label}"
    for name, version in NAMES.items():
        make_wheel(folder, name, f"{version}+{label}", [] if name == "torch" else [torch])


def make_mixed(folder):
    """What the quick start leaves: a torch that was taken, and two wheels for AVX2 that pin it."""
    make_wheel(folder, "torch", "2.6.0+debian")
    for name in ("torchvision", "torchaudio"):
        make_wheel(folder, name, f"{NAMES[name]}+cpu.avx2", ["torch==2.6.0+debian", "numpy"])


def make_others(folder):
    """An index as everybody's: newer versions of the three, and what they need."""
    for name in NAMES:
        make_wheel(folder, name, "9.9.9")
    make_wheel(folder, "numpy", "2.0")
    for path in os.listdir(folder):
        project = os.path.join(folder, path.split("-")[0])
        os.makedirs(project, exist_ok=True)
        os.rename(os.path.join(folder, path), os.path.join(project, path))


class Server:
    """Serves a directory and remembers what was asked for."""

    def __init__(self, folder):
        asked = self.asked = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args):
                super().__init__(*args, directory=folder)

            def do_GET(self):
                asked.append(self.path)
                super().do_GET()

            def log_message(self, *args):
                pass

        self.httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"
        threading.Thread(target=self.httpd.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.httpd.shutdown()
        self.httpd.server_close()


def index(ptbuild, folder, *args):
    subprocess.run([ptbuild, "index", folder, "--quiet", *args], check=True, stdout=subprocess.DEVNULL)


def clean_env(**more):
    """What an installer sees: no settings of the machine's."""
    return {"PATH": os.environ["PATH"], "HOME": "/proc/none", "LC_ALL": "C.UTF-8", "PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **more}


def venv(path):
    """An environment with the pip of the Python that makes it, as a link: ensurepip would run its own out of a wheel, without compiled files, for seconds."""
    pip = importlib.util.find_spec("pip")
    subprocess.run([sys.executable, "-m", "venv", path, *(["--without-pip"] if pip else [])], check=True)
    if pip:
        folder = os.path.dirname(pip.origin)
        site = os.path.join(path, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
        for found in (folder, *glob.glob(f"{glob.escape(folder)}-*-info")):
            os.symlink(found, os.path.join(site, os.path.basename(found)))
        with open(os.path.join(path, "bin", "pip"), "w") as f:
            f.write('#!/bin/sh\nexec "$(dirname "$0")/python" -m pip "$@"\n')
        os.chmod(os.path.join(path, "bin", "pip"), 0o755)
    return os.path.join(path, "bin", "python")


def versions(python, *names, cwd="/"):
    """What the environment has, asked by import."""
    script = "import importlib, sys\nfor n in sys.argv[1:]: print(importlib.import_module(n).__version__)"
    out = subprocess.run([python, "-I", "-c", script, *names], check=True, capture_output=True, text=True, cwd=cwd, env=clean_env())
    return out.stdout.split()
