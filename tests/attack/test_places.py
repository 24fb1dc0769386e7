#!/usr/bin/python3
"""What others put into places of the user before ptbuild comes: links, pipes and hard links in an index and in a store, and stores of others.

Each case shows that ptbuild met it (the refusal names it), and that what it stands for is as it was."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

PTBUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "ptbuild"
SECRET = "the user's letter\n"
WHEEL = "a-1-py3-none-any.whl"


class Case(unittest.TestCase):
    def setUp(self):
        dir = tempfile.TemporaryDirectory()
        self.addCleanup(dir.cleanup)
        self.dir = dir.name
        self.victim = os.path.join(self.dir, "victim")
        os.mkdir(self.victim)
        self.letter = os.path.join(self.victim, "letter")
        with open(self.letter, "w", encoding="utf-8") as file:
            file.write(SECRET)

    def tearDown(self):
        with open(self.letter, encoding="utf-8") as file:
            self.assertEqual(file.read(), SECRET)
        self.assertEqual(os.listdir(self.victim), ["letter"])

    def refused(self, words, *args, status=7, within=()):
        """A pipe that nobody writes would be waited for without end."""
        got = subprocess.run([*within, PTBUILD, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, env={**os.environ, "HOME": self.dir})
        self.assertIn(words, got.stdout)
        self.assertNotIn(SECRET.strip(), got.stdout)
        self.assertEqual(got.returncode, status, got.stdout)


class Index(Case):
    def setUp(self):
        super().setUp()
        self.dist = os.path.join(self.dir, "dist")
        os.mkdir(self.dist)
        with zipfile.ZipFile(os.path.join(self.dist, WHEEL), "w") as z:
            z.writestr("a-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: a\nVersion: 1\n")
            z.writestr("a-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            z.writestr("a-1.dist-info/RECORD", "")
        subprocess.run([PTBUILD, "index", self.dist], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual([name for name in os.listdir(self.dist) if name.endswith(".lock")], [])
        self.lock = os.path.join(self.dist, ".ptbuild-index.lock")  # another name would not be refused
        self.yanked = os.path.join(self.dist, WHEEL + ".yanked")

    def test_lock_is_a_link(self):
        os.symlink(self.letter, self.lock)
        self.refused("lock file", "index", self.dist)

    def test_lock_is_a_link_to_nothing(self):
        os.symlink(os.path.join(self.victim, "new"), self.lock)
        self.refused("lock file", "index", self.dist)

    def test_lock_has_another_name(self):
        os.link(self.letter, self.lock)
        self.refused("lock file", "index", self.dist)

    def test_lock_is_a_pipe(self):
        os.mkfifo(self.lock)
        self.refused("lock file", "index", self.dist)

    def test_yanked_is_a_link(self):
        os.symlink(self.letter, self.yanked)
        self.refused("would be published", "index", self.dist)
        for root, _, names in os.walk(self.dist):
            for name in names:
                if not name.endswith((".whl", ".yanked")):
                    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
                        self.assertNotIn(SECRET.strip(), file.read())

    def test_yanked_is_a_pipe(self):
        os.mkfifo(self.yanked)
        self.refused("would be published", "index", self.dist)

    def test_yanked_is_a_directory(self):
        os.mkdir(self.yanked)
        self.refused("would be published", "index", self.dist)


class Store(Case):
    def setUp(self):
        super().setUp()
        self.store = os.path.join(self.dir, "store")
        subprocess.run([PTBUILD, "fetch", "--profile", "cpu-avx2", "--release", "2.9.1", "--offline", "--cache", self.store], stderr=subprocess.DEVNULL)
        for lock in os.listdir(os.path.join(self.store, "locks")):
            os.unlink(os.path.join(self.store, "locks", lock))

    def part(self, name):
        path = os.path.join(self.store, name)
        os.rmdir(path)
        os.symlink(self.victim, path)
        self.refused(f"'{path}' is a symbolic link", "cache", "gc", "--keep-days", "0", "--cache", self.store)
        self.refused(f"'{path}' is a symbolic link", "fetch", "--profile", "cpu-avx2", "--sources-only", "--offline", "--cache", self.store)

    def test_tmp(self):
        self.part("tmp")

    def test_objects(self):
        self.part("objects")

    def test_locks(self):
        self.part("locks")

    def test_build(self):
        self.part("build")

    def test_quarantine(self):
        self.part("quarantine")

    def test_stamps(self):
        self.part("stamps")

    def test_everybody_may_write(self):
        os.chmod(self.store, 0o777)
        self.refused("world-writable", "cache", "info", "--cache", self.store)

    def give_away(self, path):
        """Makes a directory another user's: its number, and the command to see it so. Only root can do it for good; any
        other user sees root's /tmp there, whose owner has no number in a user namespace."""
        if os.geteuid() == 0:
            os.chown(path, 12345, 12345)
            return 12345, ()
        return 65534, ("bwrap", "--dev-bind", "/", "/", "--bind", "/tmp", path)

    def test_a_directory_of_another_user(self):
        os.chmod(self.store, 0o1777)
        user, within = self.give_away(os.path.join(self.store, "stamps"))
        self.refused(f"owned by user {user}", "cache", "info", "--cache", self.store, within=within)

    def test_the_hint_holds(self):
        os.chmod(self.store, 0o777)
        subprocess.run(["chmod", "o-w", self.store], check=True)
        got = subprocess.run([PTBUILD, "cache", "info", "--json", "--cache", self.store], stdout=subprocess.PIPE, check=True)
        self.assertTrue(json.loads(got.stdout))

    def test_a_read_only_mount(self):
        """What only reads works, what writes says why it cannot."""

        def run(*words):
            mount = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", self.store, self.store]
            return subprocess.run([*mount, PTBUILD, *words, "--cache", self.store], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        variant = ("--profile", "cpu-avx2", "--release", "2.6.0-debian")
        for words in (("cache", "info"), ("cache", "verify"), ("list",), ("plan", *variant), ("world", "list"), ("world", "show", "debian13")):
            got = run(*words)
            self.assertEqual(got.returncode, 0, (words, got.stderr))
        got = run("world", "verify", "debian13")
        self.assertEqual((got.returncode, "is not made" in got.stderr), (3, True), got.stderr)
        got = run("doctor", *variant)
        self.assertEqual((got.returncode, f"cannot write into '{self.store}'" in got.stdout + got.stderr), (8, True), got.stdout + got.stderr)
        for words in (("cache", "gc", "--keep-days", "1"), ("fetch", *variant, "--offline"), ("build", *variant, "--offline"), ("world", "make", "debian13", "--offline")):
            got = run(*words)
            self.assertEqual((got.returncode, "Read-only file system" in got.stderr), (8, True), (words, got.stderr))

    def test_a_damaged_object_of_a_read_only_store(self):
        """It is told and stays where it is."""
        item = os.path.join(self.store, "objects", "pyenv", "a" * 64)
        os.makedirs(item)
        with open(os.path.join(item, ".manifest.json"), "w") as f:
            json.dump({"format": 1, "kind": "pyenv", "key": "a" * 64, "files": [{"path": "file", "size": 4, "sha256": "0" * 64}]}, f)
        with open(os.path.join(item, "file"), "w") as f:
            f.write("text")
        mount = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", self.store, self.store]
        got = subprocess.run([*mount, PTBUILD, "cache", "verify", "--cache", self.store], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(got.returncode, 5, got.stderr)
        self.assertIn("1 of 1 object", got.stderr)
        self.assertIn("the store cannot be written", got.stderr)

    def test_store_of_another_user(self):
        user, within = self.give_away(self.store)
        refusal = f"owned by user {user}"
        self.refused(refusal, "cache", "info", "--cache", self.store, within=within)
        self.refused(refusal, "fetch", "--profile", "cpu-avx2", "--sources-only", "--offline", "--cache", self.store, within=within)


if __name__ == "__main__":
    unittest.main()
