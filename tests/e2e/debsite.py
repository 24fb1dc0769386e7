"""A small Debian archive on the loopback interface: packages made here, an index signed by a key made here, and a server that keeps connections."""

import gzip
import hashlib
import http.server
import io
import os
import subprocess
import sys
import tarfile
import threading
import time


def tar_gz(files):
    """Paths and their bytes, or "-> target" for a link."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1, mtime=0) as z, tarfile.open(fileobj=z, mode="w", format=tarfile.GNU_FORMAT) as t:
        for path, data in files.items():
            info = tarfile.TarInfo("./" + path)
            info.mtime = 1700000000
            if data is None:
                info.type, info.mode, data = tarfile.DIRTYPE, 0o755, b""
            else:
                info.mode = 0o644
                info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def make_deb(name, version, files, more=""):
    control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: Nobody <nobody@invalid>\nDescription: made for a test\n{more}"
    out = b"!<arch>\n"
    for member, data in (("debian-binary", b"2.0\n"), ("control.tar.gz", tar_gz({"control": control.encode()})), ("data.tar.gz", tar_gz(files))):
        out += f"{member:<16}{1700000000:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    return out


def date(seconds):
    return time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime(seconds))


class Keys:
    """A key that signs, and the keyring that knows it."""

    def __init__(self, top):
        self.home = os.path.join(top, "gpg")
        self.ring = os.path.join(top, "ring.gpg")
        os.makedirs(self.home, mode=0o700)
        self.gpg("--quick-gen-key", "Test <test@invalid>", "rsa2048", "sign", "never")
        with open(self.ring, "wb") as f:
            f.write(self.gpg("--export"))

    def gpg(self, *words, text=None):
        done = subprocess.run(["gpg", "--homedir", self.home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", "", *words], input=text, capture_output=True, check=True, env={**os.environ, "LC_ALL": "C"})
        return done.stdout

    def close(self):
        subprocess.run(["gpgconf", "--homedir", self.home, "--kill", "all"], capture_output=True)


class Archive:
    """packages: name -> (version, files, more fields of the control file)."""

    def __init__(self, top, keys):
        self.top, self.keys, self.packages = top, keys, {}
        self.connections = self.requests = 0

    def path_of(self, name):
        return f"pool/main/{name[0]}/{name}/{name}_{self.packages[name][0]}_all.deb"

    def put(self, name, version, files, more=""):
        """Adds a package or replaces it: the older file goes."""
        if name in self.packages:
            os.unlink(os.path.join(self.top, self.path_of(name)))
        self.packages[name] = (version, make_deb(name, version, files, more), more)
        path = os.path.join(self.top, self.path_of(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(self.packages[name][1])

    def publish(self, when=None, until=None, keys=None, suite="toy"):
        text = ""
        for name in sorted(self.packages):
            version, data, more = self.packages[name]
            text += f"Package: {name}\nVersion: {version}\nArchitecture: all\n{more}Filename: {self.path_of(name)}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n"
        index = gzip.compress(text.encode(), 1)
        digest = hashlib.sha256(index).hexdigest()
        release = f"Suite: {suite}\nCodename: {suite}\nDate: {date(when or time.time())}\n"
        release += f"Valid-Until: {date(until)}\n" if until else ""
        release += "Acquire-By-Hash: yes\nSHA256:\n"
        for arch in ("amd64", "arm64"):
            release += f" {hashlib.sha256(text.encode()).hexdigest()} {len(text.encode())} main/binary-{arch}/Packages\n {digest} {len(index)} main/binary-{arch}/Packages.gz\n"
        dists = os.path.join(self.top, "dists", "toy")
        for arch in ("amd64", "arm64"):
            os.makedirs(f"{dists}/main/binary-{arch}/by-hash/SHA256", exist_ok=True)
            with open(f"{dists}/main/binary-{arch}/by-hash/SHA256/{digest}", "wb") as f:
                f.write(index)
        with open(os.path.join(dists, "InRelease"), "wb") as f:
            f.write((keys or self.keys).gpg("--clearsign", text=release.encode()))

    def serve(self):
        """The URL; the server ends with the process."""
        archive = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def __init__(self, *args):
                super().__init__(*args, directory=archive.top)

            def setup(self):
                archive.connections += 1
                super().setup()
                self.connection.settimeout(30)

            def log_message(self, *words):
                archive.requests += 1

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, request, address):
                # A client that was killed is no fault of the archive.
                if not isinstance(sys.exc_info()[1], ConnectionError):
                    super().handle_error(request, address)

        server = Server(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"
