"""This machine's compilers, Python and what they need as one Debian package: enough of a root for a build, without the archive."""

import glob
import io
import os
import re
import subprocess
import tarfile

WANTED = "gcc g++ libc6-dev make python3 python3-dev python3-setuptools python3-wheel python3-pip python3-venv ninja-build cmake ccache pkgconf pkg-config libyaml-dev dash bash coreutils sed grep findutils tar gzip patch binutils base-files libc-bin".split()
LEFT_OUT = re.compile(r"/usr/share/(doc|man|locale|info)/|/lto1$|/lto-dump|liblto(?!_plugin)|/lib[a-z]*san\.|libpython[^/]*\.a$|libstdc[^/]*\.a$|/libc\.a$|valgrind|/gconv/|-dwp$|/cpack$|/ctest$|gprof")
NAME = re.compile(r"[:( ].*")
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"  # made by update-ca-certificates; pip 25 reads it when it is imported


def closure():
    """The installed packages that those need, by dpkg."""
    out = subprocess.run(["dpkg-query", "-W", "-f", "${Package}\t${Provides}\t${Depends}, ${Pre-Depends}\t${db:Status-Abbrev}\n"], capture_output=True, text=True, check=True).stdout
    needs, provided = {}, {}
    for line in out.splitlines():
        package, provides, depends, state = line.split("\t")
        if state.startswith("ii"):
            needs[package] = [[NAME.sub("", a.strip()) for a in one.split("|")] for one in depends.split(",") if one.strip()]
            provided.update({NAME.sub("", p.strip()): package for p in provides.split(",")})
    todo, seen = list(WANTED), set()
    while todo:
        name = todo.pop()
        package = name if name in needs else provided.get(name)
        if package and package not in seen:
            seen.add(package)
            todo += [next((a for a in one if a in needs or a in provided), one[0]) for one in needs[package]]
    return sorted(seen)


def files():
    """Paths as a merged /usr has them, and where they lie here."""
    found = {}
    for line in subprocess.run(["dpkg", "-L", *closure()], capture_output=True, text=True, check=True).stdout.splitlines():
        if not line.startswith("/") or line.startswith(("/boot", "/var")) or LEFT_OUT.search(line) or not os.path.lexists(line):
            continue
        path = os.path.join(os.path.realpath(os.path.dirname(line)), os.path.basename(line))
        if not os.path.islink(path) and os.path.isdir(path):
            continue
        if path.startswith(("/usr/", "/etc/")):
            found[path[1:]] = path
        # As py3compile leaves them: without them each start of Python compiles what it imports.
        if path.startswith("/usr/lib/python3") and path.endswith(".py"):
            for compiled in glob.glob(os.path.join(os.path.dirname(path), "__pycache__", os.path.basename(path)[:-3] + ".cpython-3*[0-9].pyc")):
                found[compiled[1:]] = compiled
    # What alternatives and scripts of the packages have made.
    for path in ("usr/bin/c++", "usr/bin/cc", "usr/bin/awk"):
        if os.path.islink("/" + path):
            found[path] = os.path.realpath("/" + path)
    for path in ("etc/passwd", "etc/group", CERTIFICATES):
        found[path] = "/" + path
    return found


def tree():
    """data.tar with all directories before their files."""
    out, seen = io.BytesIO(), set()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as t:
        for path, here in sorted(files().items()):
            parts = path.split("/")[:-1]
            for n in range(1, len(parts) + 1):
                folder = "/".join(parts[:n])
                if folder not in seen:
                    seen.add(folder)
                    info = tarfile.TarInfo("./" + folder + "/")
                    info.type, info.mode = tarfile.DIRTYPE, 0o755
                    t.addfile(info)
            info = t.gettarinfo(here, "./" + path)
            if info.type == tarfile.LNKTYPE:  # the same inode twice
                info.type, info.linkname, info.size = tarfile.REGTYPE, "", os.path.getsize(here)
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            if not path.endswith(".py"):  # whose time is in what is compiled
                info.mtime = 1700000000
            info.mode = 0o755 if info.mode & 0o111 else 0o644
            if info.issym():
                t.addfile(info)
            else:
                with open(here, "rb") as f:
                    t.addfile(info, f)
    return out.getvalue()


def machine_deb(name):
    """The package's bytes."""
    control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: Nobody <nobody@invalid>\nDescription: this machine's\n"
    small = io.BytesIO()
    with tarfile.open(fileobj=small, mode="w:gz", format=tarfile.GNU_FORMAT) as t:
        info = tarfile.TarInfo("./control")
        info.size = len(control)
        t.addfile(info, io.BytesIO(control.encode()))
    out = b"!<arch>\n"
    for member, data in (("debian-binary", b"2.0\n"), ("control.tar.gz", small.getvalue()), ("data.tar", tree())):
        out += f"{member:<16}{1700000000:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    return out
