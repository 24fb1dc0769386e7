#!/usr/bin/env python3
"""ci/check-machine, and with it the first minute of ci/test, on machines that lack something: each lack is made in namespaces of the test's own."""

import http.server
import os
import subprocess
import tempfile
import threading
import time
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPACE = ["unshare", "--user", "--map-root-user", "--mount"]
INSTALLED = "echo installed"


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"Origin: Debian\n")

    def log_message(self, *_):
        pass


class Case(unittest.TestCase):
    def setUp(self):
        dir = tempfile.TemporaryDirectory(prefix="ptbuild-machine-")
        self.addCleanup(dir.cleanup)
        self.dir = dir.name
        self.path = os.path.join(self.dir, "bin")
        os.mkdir(self.path)
        self.stub("dpkg-query", INSTALLED)
        self.stub("apt-get", "exit 100")
        self.stub("sudo", "exit 1")

    def stub(self, name, line, where=None):
        path = os.path.join(where or self.path, name)
        with open(path, "w") as f:
            f.write(f"#!/bin/sh\n{line}\n")
        os.chmod(path, 0o755)

    def run_in(self, space, *words, setup=":", **env):
        there = {**os.environ, "PATH": self.path + ":" + os.environ["PATH"], "TMPDIR": self.dir, **env}
        command = [*space, "sh", "-c", f'set -e; {setup}; exec "$@"', "-", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=TOP, timeout=600, stdin=subprocess.DEVNULL, env=there)


class Machine(Case):
    def lacks(self, said, space=(), *words, **how):
        done = self.run_in(space, "ci/check-machine", *words, **how)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn(said, done.stderr)
        return done.stderr

    def fine(self, space=(), *words, **how):
        done = self.run_in(space, "ci/check-machine", *words, **how)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_nothing_is_missing(self):
        self.fine(SPACE)
        self.fine(SPACE, "--quick")

    def test_no_room(self):
        said = self.lacks("no room: ", SPACE, "--quick", setup=f"mkdir -p {self.dir}/small; mount -t tmpfs -o size=20m none {self.dir}/small", TMPDIR=f"{self.dir}/small")
        self.assertRegex(said, rf"'{self.dir}/small' has (19|20) MiB free, and ci/test needs [0-9]+ MiB there")

    def test_what_lies_on_one_disk_is_added_up(self):
        """900 MiB would do for the files of the tests, and for the tree, but not for both."""
        setup = f"mkdir -p {self.dir}/disk; mount -t tmpfs -o size=900m none {self.dir}/disk; mkdir {self.dir}/disk/t; cp -r ci {self.dir}/disk; cd {self.dir}/disk"
        said = self.lacks("no room: ", SPACE, "--quick", setup=setup, TMPDIR=f"{self.dir}/disk/t")
        self.assertIn("needs 1200 MiB there", said)
        self.fine(SPACE, "--quick", setup=setup)

    def test_no_user_namespaces(self):
        self.lacks("no user namespaces", SPACE, "--quick", setup="echo 0 >/proc/sys/user/max_user_namespaces")

    def test_no_mount_namespaces(self):
        powerless = [*SPACE, "setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
        self.lacks("root may make no mount namespace", powerless, "--quick")

    def test_no_network(self):
        self.stub("apt-get", "echo \"'http://127.0.0.1:9/dists/trixie/InRelease' InRelease 0 \"")
        self.lacks("no network", SPACE)
        self.fine(SPACE, "--quick")  # nothing is to be downloaded
        self.stub("dpkg-query", "exit 1")
        self.lacks("no network", SPACE, "--quick")

    def test_an_archive_that_answers(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        address = f"http://127.0.0.1:{server.server_port}/dists/trixie/InRelease"
        self.stub("apt-get", f"echo \"'http://127.0.0.1:9/dists/trixie/InRelease' one 0 \"; echo \"'{address}' other 0 \"")
        self.fine(SPACE, no_proxy="*")

    def test_nobody_who_may_become_root(self):
        user = ["unshare", "--map-user=12345", "--map-group=12345"]
        self.lacks("needs root or sudo", user)
        self.fine(user, PTBUILD_ONE_HOST="1")
        self.fine(user, "--quick")

    def test_what_is_to_be_installed_is_said_before(self):
        """How many packages, with what they need, and how much is downloaded; here the installation fails."""
        figures = """case "$*" in
*--simulate*) printf 'Inst %s\n' a b c d ;;
*--print-uris*) printf "'http://h/%s.deb' %s.deb 20000000 SHA256:0\n" a a b b c c ;;
*) exit 100 ;;
esac"""
        self.stub("dpkg-query", "exit 1")
        self.stub("apt-get", figures)
        done = self.run_in(SPACE, "ci/test", "--quick")
        self.assertEqual((done.returncode, done.stdout), (1, "0 passed, 1 failed\n"), done.stderr)
        said = done.stderr.splitlines()
        (at,) = [i for i, line in enumerate(said) if "to install: " in line]
        self.assertRegex(said[at], r"^== to install: \d+ packages, 4 with what they need; 60 MB to download")
        self.assertEqual(said[at + 1], "== packages")
        self.assertIn("FAILED: packages", done.stderr)

    def test_the_whole_test_says_it_in_the_first_minute(self):
        start = time.monotonic()
        done = self.run_in(SPACE, "ci/test", setup="echo 0 >/proc/sys/user/max_user_namespaces")
        self.assertEqual((done.returncode, done.stdout), (1, "0 passed, 1 failed\n"), done.stderr)
        self.assertIn("no user namespaces", done.stderr)
        self.assertIn("FAILED: machine", done.stderr)
        self.assertLess(time.monotonic() - start, 60)


if __name__ == "__main__":
    unittest.main()
