#!/usr/bin/env python3
""".ci/run: where it runs what, and what it adds up."""

import os
import shutil
import subprocess
import unittest

from test_machine import TOP, Case


class Run(Case):
    """.ci/run in a repository with other scripts below it."""

    def setUp(self):
        super().setUp()
        open(os.path.join(self.dir, "asked"), "w").close()
        self.tree = os.path.join(self.dir, "tree")
        os.makedirs(os.path.join(self.tree, ".ci"))
        shutil.copytree(os.path.join(TOP, "ci", "packages"), os.path.join(self.tree, "ci", "packages"))
        shutil.copy(os.path.join(TOP, ".ci", "run"), os.path.join(self.tree, ".ci"))
        shutil.copy(os.path.join(TOP, "ci", "lib.sh"), os.path.join(self.tree, "ci"))
        self.script("check-machine", "true")
        self.bare("100 passed, 0 failed")
        self.quick("20 passed, 0 failed")
        self.git("init", "-q")
        os.environ.pop("PTBUILD_TEST_CCACHE", None)  # it is passed on, and this run may have one

    def git(self, *words):
        git = ["git", "-C", self.tree, "-c", "user.name=T", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
        subprocess.run([*git, *words], check=True, stdout=subprocess.DEVNULL)

    def script(self, name, line):
        self.stub(name, line, os.path.join(self.tree, "ci"))

    def bare(self, closing, status=0, user="10 passed, 0 failed"):
        """The host of Debian 12 has a second run, of another user."""
        second = f'case "$*" in *test,user*) echo "{user}" ;; esac'
        self.script("test-hosts", f'echo "$@" >>{self.dir}/asked; echo "1 passed, 7 failed here"; echo "{closing}"; {second}; exit {status}')

    def quick(self, closing, status=0):
        self.script("test", f'echo "test $*" >>{self.dir}/asked; echo "{closing}"; exit {status}')

    def ends(self, closing, status, *words):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a: tree")
        done = self.run_in([], os.path.join(self.tree, ".ci", "run"), *words, CI="true")
        self.assertEqual((done.stdout.splitlines()[-1], done.returncode), (closing, status), done.stdout + done.stderr)
        return done.stderr

    def asked(self):
        with open(os.path.join(self.dir, "asked")) as f:
            return f.read().splitlines()

    def test_all_are_added_up(self):
        self.ends("120 passed, 0 failed", 0, "trixie:user")
        self.assertEqual(self.asked(), ["--only test trixie:user", "test --quick"])

    def test_root_and_another_user(self):
        self.ends("130 passed, 0 failed", 0, "bookworm:root")
        self.assertEqual(self.asked(), ["--only test,user bookworm:root", "test --quick"])
        self.bare("100 passed, 0 failed", 1, "9 passed, 1 failed")
        self.ends("129 passed, 1 failed", 1, "bookworm:root")
        self.bare("100 passed, 0 failed", 0, "")
        self.assertIn("1 closing lines instead of 2", self.ends("120 passed, 1 failed", 1, "bookworm:root"))

    def test_the_host_follows_the_commit(self):
        hosts = set()
        self.git("add", "-A")
        for i in range(32):
            self.git("commit", "-q", "--allow-empty", "-m", f"a: {i}")
            self.run_in([], os.path.join(self.tree, ".ci", "run"))
            hosts.update(line.split()[-1] for line in self.asked() if not line.startswith("test "))
            if len(hosts) == 2:
                break
        self.assertEqual(hosts, {"trixie:user", "bookworm:root"})

    def test_failures_of_each(self):
        self.bare("99 passed, 1 failed", 1)
        self.ends("119 passed, 1 failed", 1, "trixie:user")
        self.quick("18 passed, 2 failed", 1)
        self.ends("117 passed, 3 failed", 1, "trixie:user")

    def test_a_status_without_a_failure_counts(self):
        self.bare("100 passed, 0 failed", 1)
        self.assertIn("FAILED: the bare root", self.ends("120 passed, 1 failed", 1, "trixie:user"))

    def test_no_closing_line_counts(self):
        for status in (0, 1):
            self.bare("it broke", status)
            self.assertIn("0 closing lines", self.ends("20 passed, 1 failed", 1, "trixie:user"))
        self.quick("0 passed, 0 failed")
        self.ends("0 passed, 2 failed", 1, "trixie:user")

    def test_a_machine_that_can_make_no_root(self):
        self.script("check-machine", "echo 'no network' >&2; exit 1")
        said = self.ends("0 passed, 1 failed", 1, "trixie:user")
        self.assertIn("no network", said)
        self.assertIn("no bare root can be made", said)
        self.assertEqual(self.asked(), [])


if __name__ == "__main__":
    unittest.main()
