#!/usr/bin/env python3
"""ci/prove: what it runs, what it believes, and what its table may say."""

import json
import os
import shutil
import subprocess
import unittest

from test_machine import TOP, Case

CLAIM = """
[[claim]]
name = "{name}"
page = "README.md"
says = "It takes {says}"
check = '{check}'
minutes = {minutes}
needs = [{needs}]
{more}
fault = {{file = "value", from = "{value}", to = "7"}}
"""


class Prove(Case):
    """ci/prove in a repository with a table of its own, and a cmake that builds nothing."""

    def setUp(self):
        super().setUp()
        self.tree = os.path.join(self.dir, "tree")
        os.makedirs(os.path.join(self.tree, "ci"))
        os.makedirs(os.path.join(self.tree, "docs"))
        shutil.copy(os.path.join(TOP, "ci", "prove"), os.path.join(self.tree, "ci"))
        self.stub("cmake", 'echo "$PWD $*" >>' + os.path.join(self.dir, "built"))
        self.write("README.md", "# A title\n\nIt takes 5\nseconds.\n")
        self.write("value", "5\n")
        self.write(".gitignore", "/build-*/\n")
        self.git("init", "-q")

    def git(self, *words):
        git = ["git", "-C", self.tree, "-c", "user.name=T", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
        return subprocess.run([*git, *words], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def write(self, name, text):
        with open(os.path.join(self.tree, name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.tree, name), encoding="utf-8") as file:
            return file.read()

    def table(self, *claims):
        """Each is what differs from a claim that holds."""
        given = {"name": "five", "says": "5 seconds", "check": "grep -qx 5 value", "minutes": 1, "needs": "", "more": "", "value": "5"}
        self.write("ci/claims.toml", "".join(CLAIM.format(**{**given, **p}) for p in claims))
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a: tree")

    def prove(self, *words):
        path = f"{self.dir}/bin:{os.environ['PATH']}"
        command = ["/usr/bin/python3", os.path.join(self.tree, "ci", "prove"), *words]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PATH": path})

    def ends(self, status, *words, has=()):
        done = self.prove(*words)
        text = done.stdout + done.stderr
        self.assertEqual(done.returncode, status, text)
        for part in has:
            self.assertIn(part, text)
        return text

    def results(self):
        return json.loads(self.read("build-proof/results.json"))

    def test_passed_is_not_run_again_at_the_commit(self):
        self.table({})
        self.ends(0, has=["five: ok", "1 passed, 0 failed"])
        self.ends(0, has=["five: passed before"])
        self.ends(0, "--again", has=["five: ok"])
        self.git("commit", "-q", "--allow-empty", "-m", "a: another")
        self.ends(0, has=["five: ok"])

    def test_failed_is_run_again(self):
        self.table({"check": "false"})
        self.ends(1, has=["five: FAILED, status 1", "0 passed, 1 failed"])
        self.ends(1, has=["five: FAILED"])

    def test_check_runs_in_clone_of_commit(self):
        self.table({})
        self.write("value", "6\n")
        self.ends(0, has=["five: ok"])

    def test_changed_row_is_run_again(self):
        self.table({})
        self.ends(0)
        self.write("ci/claims.toml", self.read("ci/claims.toml").replace("grep -qx 5", "grep -qx 6"))
        self.ends(1, has=["five: FAILED"])

    def test_figure_within_limits(self):
        more = "figure = 'took ([0-9.]+)'\nat_most = 5\nunit = 's'"
        for took, status in (("4.5", 0), ("5.5", 1), ("", 1)):
            self.table({"check": f"echo took 9; echo took {took}" if took else "true", "more": more})
            self.ends(status, "--again")
        self.table({"check": "echo took 1; false", "more": more})
        self.ends(1, "--again")

    def test_lacking_need_is_named_and_not_run(self):
        self.table({"needs": '"tool:no-such-tool", "processors:1"'})
        self.ends(0, has=["five: not run here: it needs tool:no-such-tool"])
        self.assertFalse(os.path.exists(os.path.join(self.tree, "build-proof/results.json")))

    def test_minutes_bound_what_is_chosen(self):
        self.table({"minutes": 3}, {"name": "six"})
        text = self.ends(0, "--minutes", "2", has=["six: ok"])
        self.assertIn("five: not run: 3 more minutes", text)

    def test_self_test_finds_fault_and_check_that_cannot_fail(self):
        self.table({})
        self.ends(0, "--self-test", has=["five: the fault was found", "1 faults found, 0 not found"])
        self.table({"check": "true"})
        self.ends(1, "--self-test", has=["five: the fault was NOT FOUND"])
        self.assertEqual(self.read("value"), "5\n")

    def test_page_has_the_commit_at_which_the_fault_was_found(self):
        self.table({}, {"name": "six", "check": "true"}, {"name": "not-tried"})
        self.ends(0, "--only", "five", "--self-test")
        self.ends(1, "--only", "six", "--self-test")
        # What a self-test found is no result of the claim itself.
        self.assertIn("not run", self.ends(0, "--list"))
        self.ends(0, "--write")
        page = self.read("docs/proof.md")
        self.assertRegex(page, r"(?m)^\| `five` \|.* \| \*\*not seen\*\*: not run \|  \|  \|  \| this \|$")
        self.assertRegex(page, r"(?m)^\| `six` \|.*\| \*\*not found\*\* \(this\) \|$")
        self.assertRegex(page, r"(?m)^\| `not-tried` \|.*\|  \|$")
        tested = self.git("rev-parse", "HEAD")
        self.git("commit", "-q", "--allow-empty", "-m", "a: another")
        self.ends(0, "--write")
        self.assertRegex(self.read("docs/proof.md"), rf"(?m)^\| `five` \|.*\| {tested[:8]} \|$")
        # With another fault or another check it is not known.
        self.table({"value": "5\\n"})
        self.ends(0, "--write")
        self.assertRegex(self.read("docs/proof.md"), r"(?m)^\| `five` \|.*\|  \|$")

    def test_self_test_keeps_the_result_of_the_check(self):
        self.table({})
        self.ends(0)
        self.ends(0, "--self-test", "--write")
        self.assertEqual([bool(r.get("fault")) for r in self.results()], [False, True])
        self.assertRegex(self.read("docs/proof.md"), r"(?m)^\| `five` \|.* \| passed \| this \|.*\| this \|$")

    def test_kernel_is_compared_by_number(self):
        self.table({"needs": '"kernel:3.10"'}, {"name": "six", "needs": '"kernel:999.1"'})
        self.ends(0, has=["five: ok", "six: not run here: it needs kernel:999.1"])

    def test_page_has_what_was_seen_and_what_was_not(self):
        self.table({}, {"name": "six", "needs": '"tool:no-such-tool"', "more": 'unseen = "nobody has the tool"'})
        self.ends(0)
        self.ends(0, "--write")
        page = self.read("docs/proof.md")
        self.assertIn("| `five` | [README.md](../README.md): It takes 5 seconds | passed | this |", page)
        self.assertIn("**not seen**: nobody has the tool", page)
        self.assertIn(self.git("rev-parse", "HEAD"), page)

    def test_page_names_what_failed_at_the_commit(self):
        self.table({})
        self.ends(0)
        self.table({"check": "false"})
        self.ends(1)
        self.ends(0, "--write")
        self.assertIn("| **failed** | this |", self.read("docs/proof.md"))

    def test_result_of_another_machine_is_merged(self):
        self.table({})
        self.ends(0)
        other = [{**self.results()[0], "machine": "another", "date": "2999-01-01"}]
        self.write("other.json", json.dumps(other))
        self.ends(0, "--merge", "other.json", "--write")
        self.assertEqual([r["machine"] == "another" for r in self.results()], [False, True])
        self.assertIn("| another |", self.read("docs/proof.md"))

    def test_page_and_source_disagree_with_table(self):
        self.table({"says": "6 seconds", "value": "8"})
        self.ends(1, "--check", has=["README.md does not say: It takes 6 seconds", "the text of the fault 0 times"])
        self.table({"says": "5"})
        self.write("README.md", "It takes 5\n\nand 20 MB\n")
        self.ends(1, "--check", has=["README.md:3: no claim has '20 MB'"])

    def test_wrong_table_names_claim_and_key(self):
        for more, words in (("at_most = 5", "a figure needs a limit"), ("color = 1", "unknown key 'color'")):
            self.table({"more": more})
            self.ends(2, has=["claim 'five'", words])
        self.table({}, {})
        self.ends(2, has=["two claims are called 'five'"])
        self.table({"needs": '"luck"'})
        self.ends(2, has=["unknown need 'luck'"])
        self.ends(2, "--only", "seven", has=["unknown need"])
        self.table({})
        self.ends(2, "--only", "seven", has=["no claim 'seven'"])


if __name__ == "__main__":
    unittest.main()
