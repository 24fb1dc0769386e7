#!/usr/bin/python3
"""Packs what wheels need to run on a GPU machine that has nothing but the driver: Python and CUDA's libraries out of the root they were built in, the wheels, and the checks.

    bundle.py --root ROOT --out DIR [--part-size BYTES] [--level N] [--package NAME]... WHEEL...

DIR gets numbered parts of at most BYTES (60000000), their digests, and a script. On the GPU machine, as root, once all parts lie beside it:

    sh run WORK_DIR [options of test_wheels.py]

which unpacks them to WORK_DIR and runs the checks with that as the root directory (--json /tmp/x.json is then WORK_DIR/tmp/x.json).

ROOT is an unpacked Debian root, such as that of a world (ptbuild world make). Taken from it are the packages that the wheels' METADATA and their libraries' NEEDED entries ask for, those that --package
names, and what these depend on; the driver's libraries come from the GPU machine.
"""
import argparse
import email
import hashlib
import os
import re
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY_DIRS = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib")
DRIVER = re.compile(r"libcuda\.so|libnvidia-")
ALWAYS = ("python3", "python3-venv", "python3-pip", "libc-bin", "ca-certificates")
LEFT_OUT = re.compile(r"usr/share/(doc|man|info|locale|lintian|zoneinfo)/|usr/include/|.*\.a$|.*/__pycache__/|.*/tests?/|.*_static\.")


def fail(text):
    sys.exit(f"bundle: {text}")


class Root:
    """The packages of a Debian root, as dpkg has them written down."""

    def __init__(self, top):
        self.top = os.path.abspath(top)
        try:
            with open(os.path.join(self.top, "var/lib/dpkg/status"), encoding="utf-8") as f:
                paragraphs = [email.message_from_string(p) for p in f.read().split("\n\n") if p.strip()]
        except OSError as ex:
            fail(f"'{top}' is no Debian root: {ex}")
        self.packages = {p["Package"]: p for p in paragraphs if p["Status"] == "install ok installed"}
        self.provided = {}
        for name, p in self.packages.items():
            for virtual in re.findall(r"[a-z0-9][a-z0-9+.-]+", re.sub(r"\([^)]*\)", "", p["Provides"] or "")):
                self.provided.setdefault(virtual, name)

    def find(self, name):
        return name if name in self.packages else self.provided.get(name)

    def files(self, package):
        info = os.path.join(self.top, "var/lib/dpkg/info")
        for name in (f"{package}:{self.packages[package]['Architecture']}.list", f"{package}.list"):
            path = os.path.join(info, name)
            if os.path.exists(path):
                with open(path, encoding="utf-8") as f:
                    return [self.inside(line.strip().lstrip("/")) for line in f if line.strip("/.\n")]
        fail(f"the root has no list of the files of '{package}'")

    @staticmethod
    def inside(path):
        """Where a path of before the merge of /usr lies today."""
        return re.sub(r"^(bin|sbin|lib|lib64)/", r"usr/\1/", path)

    def owners(self):
        return {path: name for name in self.packages for path in self.files(name)}

    def alternatives(self):
        """The libraries that are links to what was chosen: each link, the alternative between, and the file."""
        for d in LIBRARY_DIRS:
            top = os.path.join(self.top, d)
            for entry in os.scandir(top) if os.path.isdir(top) else ():
                if entry.is_symlink() and os.readlink(entry.path).startswith("/etc/alternatives/"):
                    alternative = os.readlink(entry.path).lstrip("/")
                    yield os.path.relpath(entry.path, self.top), alternative, os.readlink(os.path.join(self.top, alternative)).lstrip("/")

    def closure(self, names):
        done, todo = set(), list(names)
        while todo:
            name = self.find(todo.pop())
            if not name or name in done:
                continue
            done.add(name)
            wanted = f"{self.packages[name]['Depends'] or ''}, {self.packages[name]['Pre-Depends'] or ''}"
            for alternatives in wanted.split(","):
                choices = [re.sub(r"[\s(:\[].*", "", c.strip()) for c in alternatives.split("|") if c.strip()]
                found = next((self.find(c) for c in choices if self.find(c)), None)
                if found:
                    todo.append(found)
        return done


def needed(path):
    out = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", out)


def of_wheel(path):
    """What a wheel's libraries want from outside of it, and the distributions it requires."""
    wants, has = set(), set()
    with zipfile.ZipFile(path) as z, tempfile.TemporaryDirectory() as temp:
        for name in z.namelist():
            if re.search(r"\.so(\.[0-9.]+)?$", name):
                has.add(os.path.basename(name))
                wants.update(needed(z.extract(name, temp)))
        metadata = email.message_from_bytes(z.read(next(n for n in z.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))))
    requires = [re.match(r"[A-Za-z0-9._-]+", r).group(0) for r in metadata.get_all("Requires-Dist") or [] if "extra ==" not in r]
    return wants - has, has, {re.sub(r"[-_.]+", "-", r).lower() for r in requires}


def wanted_packages(root, wheels, more):
    wants, has, requires = set(), set(), set()
    for wheel in wheels:
        w, h, r = of_wheel(wheel)
        wants |= w
        has |= h
        requires |= r
    names = set(ALWAYS) | set(more)
    for distribution in requires:
        if distribution.startswith("nvidia-") or distribution in ("torch", "torchvision", "torchaudio"):
            continue
        package = root.find(f"python3-{distribution}") or root.find("python3-pil" if distribution == "pillow" else "")
        if not package:
            fail(f"a wheel requires '{distribution}', and the root has no package of it")
        names.add(package)
    owners, loose = root.owners(), set()
    for library in sorted(wants - has):
        if DRIVER.match(library):
            continue
        path = next((p for d in LIBRARY_DIRS for p in [f"{d}/{library}"] if os.path.lexists(os.path.join(root.top, p))), None)
        target = path and os.path.relpath(os.path.realpath(os.path.join(root.top, path)), root.top)
        if not path or target.startswith("../") or not os.path.exists(os.path.join(root.top, target)):
            fail(f"a wheel needs '{library}', and the root does not have it")
        if target in owners:
            names.add(owners[target])
        else:
            loose |= unowned(root, target)
    for name in names:
        if not root.find(name):
            fail(f"the root has no package '{name}'")
    packages = root.closure(names)
    # Of the packages that have a library (libblas.so.3) a dependency names any, and the root has chosen one.
    provided = {os.path.basename(p) for name in packages for p in root.files(name)}
    chosen = {owners[target] for link, _, target in root.alternatives() if os.path.basename(link) in provided and target in owners}
    return root.closure(packages | chosen), loose


def unowned(root, target):
    """A library that a world has from a wheel, and what lies with it in a directory of its own; with the links to them, by which they are loaded."""
    top = os.path.dirname(target)
    files = {target} if top in LIBRARY_DIRS else {f"{top}/{n}" for n in os.listdir(os.path.join(root.top, top))}
    links = set()
    for d in LIBRARY_DIRS:
        for entry in os.scandir(os.path.join(root.top, d)) if os.path.isdir(os.path.join(root.top, d)) else ():
            if entry.is_symlink() and os.path.relpath(os.path.realpath(entry.path), root.top) in files:
                links.add(f"{d}/{entry.name}")
    return files | links


def all_files(root, packages, loose):
    """Files and links of the packages, the loose ones, and the links that alternatives made beside them, which no list names."""
    paths = loose | {p for name in packages for p in root.files(name) if not LEFT_OUT.match(p)}
    for link, alternative, target in root.alternatives():
        if target in paths:
            paths |= {link, alternative}
    paths |= {p for p in ("bin", "sbin", "lib", "lib64", "etc/ld.so.conf", "etc/passwd", "etc/group", "etc/ssl/certs/ca-certificates.crt") if os.path.lexists(os.path.join(root.top, p))}
    for path in sorted(paths):
        mode = os.lstat(os.path.join(root.top, path)).st_mode if os.path.lexists(os.path.join(root.top, path)) else 0
        if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            yield path


class Parts:
    """A file that is cut into numbered ones."""

    def __init__(self, out, size):
        self.out, self.size, self.names, self.file, self.left = out, size, [], None, 0

    def write(self, data):
        view = memoryview(data)
        while view:
            if not self.left:
                self.close()
                self.names.append(f"part-{len(self.names):03d}")
                self.file, self.left = open(os.path.join(self.out, self.names[-1]), "wb"), self.size
            n = self.file.write(view[: self.left])
            self.left -= n
            view = view[n:]
        return len(data)

    def close(self):
        if self.file:
            self.file.close()


RUN = """#!/bin/sh
# sh run WORK_DIR [options of test_wheels.py]: as root, on the GPU machine.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:?usage: sh run WORK_DIR [options of test_wheels.py]}
shift
(cd "$here" && sha256sum --quiet -c SHA256SUMS)
if [ ! -e "$work/gpu/unpacked" ]; then
	mkdir -p "$work"
	cat "$here"/part-* | tar --no-same-owner -xJf - -C "$work"
	: >"$work/gpu/unpacked"
fi
driver=$(ldconfig -p | sed -n 's/.*libcuda[.]so[.]1 .*=> //p' | head -n 1)
[ -n "$driver" ] || driver=$(find / -xdev -path /tmp -prune -o -name libcuda.so.1 -not -path "$work/*" -print 2>/dev/null | head -n 1)
[ -n "$driver" ] || driver=$(find /usr -name libcuda.so.1 2>/dev/null | head -n 1)
if [ -n "$driver" ]; then
	mkdir -p "$work/usr/lib/driver"
	for name in libcuda libnvidia-ml libnvidia-ptxjitcompiler libnvidia-gpucomp libnvidia-nvvm libcudadebugger; do
		cp -P "$(dirname "$driver")/$name".so* "$work/usr/lib/driver/" 2>/dev/null || true
	done
	mkdir -p "$work/etc/ld.so.conf.d"
	echo /usr/lib/driver >"$work/etc/ld.so.conf.d/00-driver.conf"
else
	rm -rf "$work/usr/lib/driver"
	echo "run: there is no libcuda.so.1 on this machine" >&2
fi
exec unshare --mount sh -c '
	work=$1
	shift
	mkdir -p "$work/proc" "$work/sys" "$work/dev" "$work/tmp"
	for d in proc sys dev; do mount --rbind "/$d" "$work/$d"; done
	chroot "$work" /sbin/ldconfig
	for wheel in "$work"/gpu/wheels/*.whl; do set -- "$@" "/gpu/wheels/${wheel##*/}"; done
	exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 chroot "$work" /usr/bin/python3 /gpu/test_wheels.py --no-deps "$@"
' sh "$work" "$@"
"""


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--root", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--part-size", type=int, default=60000000)
    p.add_argument("--level", type=int, choices=range(10), default=1, help="of xz")
    p.add_argument("--package", action="append", default=[])
    p.add_argument("wheels", nargs="+")
    o = p.parse_args()
    root = Root(o.root)
    packages, loose = wanted_packages(root, o.wheels, o.package)
    os.makedirs(o.out)
    parts = Parts(o.out, o.part_size)
    with tempfile.TemporaryFile(dir=o.out) as plain:
        with tarfile.open(fileobj=plain, mode="w|", format=tarfile.GNU_FORMAT) as tar:
            for path in all_files(root, packages, loose):
                tar.add(os.path.join(root.top, path), path, recursive=False)
            for name in ("test_wheels.py", "gpu_checks.py", "test_two_gpus.py"):
                tar.add(os.path.join(HERE, name), f"gpu/{name}")
            for wheel in o.wheels:
                tar.add(wheel, f"gpu/wheels/{os.path.basename(wheel)}")
        size = plain.tell()
        plain.seek(0)
        with subprocess.Popen(["xz", f"-{o.level}", "-T0", "-c"], stdin=plain, stdout=subprocess.PIPE) as xz:
            for data in iter(lambda: xz.stdout.read(1 << 20), b""):
                parts.write(data)
        parts.close()
        if xz.returncode:
            fail(f"xz gave {xz.returncode}")
    with open(os.path.join(o.out, "SHA256SUMS"), "w", encoding="utf-8") as f:
        for name in parts.names:
            with open(os.path.join(o.out, name), "rb") as part:
                f.write(f"{hashlib.file_digest(part, 'sha256').hexdigest()}  {name}\n")
    with open(os.path.join(o.out, "run"), "w", encoding="utf-8") as f:
        f.write(RUN)
    packed = sum(os.path.getsize(os.path.join(o.out, n)) for n in parts.names)
    print(f"{len(packages)} packages, {size / 1e6:.0f} MB, packed {packed / 1e6:.0f} MB in {len(parts.names)} parts")


if __name__ == "__main__":
    main()
