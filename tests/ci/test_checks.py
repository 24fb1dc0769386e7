#!/usr/bin/python3
"""The checks of ci/ on a copy of the tree: they pass as it is, and each defect that they are there for is found."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PARTS = ("ci", "driver", "cache", "tests", "docs", "profiles", "patches")


def git(where, *words):
    assert os.path.isdir(os.path.join(where, ".git")) or words[0] == "init"
    subprocess.run(["git", "-C", where, "-c", "user.name=T", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false",
                    *words], check=True, stdout=subprocess.DEVNULL)


class Checks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="checks-")
        cls.tree = os.path.join(cls.dir, "tree")
        os.mkdir(cls.tree)
        for name in sorted(os.listdir(TOP)):
            path = os.path.join(TOP, name)
            if name in PARTS and os.path.isdir(path):
                shutil.copytree(path, os.path.join(cls.tree, name), ignore=shutil.ignore_patterns("data", "corpus"))
            elif os.path.isfile(path) and name != ".git":  # a file in a linked work tree: git would commit to its repository
                shutil.copy(path, cls.tree)
        git(cls.tree, "init", "-q")
        git(cls.tree, "add", "-A")
        git(cls.tree, "commit", "-qm", "tests: copy the tree\n\nThe checks ask git which files there are.")
        git(cls.tree, "tag", "copied")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def setUp(self):
        git(self.tree, "reset", "-q", "--hard", "copied")
        git(self.tree, "clean", "-qfdx")

    def check(self, name, *words):
        """The exit status of a check and all it said."""
        done = subprocess.run([os.path.join(self.tree, "ci", name), *words], cwd=self.tree, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def found(self, words, name, *options):
        status, said = self.check(name, *options)
        self.assertNotEqual(status, 0, f"{name} found nothing; it said: {said}")
        self.assertIn(words, said)

    def write(self, path, text, mode="w"):
        path = os.path.join(self.tree, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, mode, encoding="utf-8") as f:
            f.write(text)

    def test_the_tree_as_it_is(self):
        for name in ("check-layers", "check-sizes", "check-text", "check-links"):
            status, said = self.check(name)
            self.assertEqual(status, 0, f"{name}: {said}")

    def test_prose_finds_each_kind_of_text(self):
        self.assertEqual(self.check("check-prose")[0], 0)
        plants = {
            "docs/install.md": "\nPut it back anew.\n",
            "driver/base/err.c": "\n/* Of all lists, this lies in the arena. */\n",
            "profiles/gpu.yaml": "\n# note\n  note: mended by hand\n",
        }
        rules = {"docs/install.md": "anew/docs", "driver/base/err.c": "lies/comments", "profiles/gpu.yaml": "mend/data"}
        for path, text in plants.items():
            self.write(path, text, "a")
            self.found(rules[path], "check-prose")
            git(self.tree, "checkout", "-q", path)

    def test_prose_finds_a_long_sentence(self):
        self.write("docs/install.md", "\n" + "and more " * 20 + "end.\n", "a")
        self.found("long-sentence/docs", "check-prose")

    def test_prose_ignores_code(self):
        self.write("docs/install.md", "\n`anew`\n\n    put it back anew\n\n```\nanew\n```\n", "a")
        self.assertEqual(self.check("check-prose")[0], 0)

    def test_prose_baseline_follows_fewer_findings(self):
        self.write("ci/prose/baseline.txt", "anew/docs 1000\n", "a")
        status, said = self.check("check-prose")
        self.assertEqual(status, 0)
        self.assertIn("check-prose --write", said)

    def test_a_file_outside_any_room(self):
        self.write("driver/core/stray.c", '#include "base/err.h"\n')
        self.found("driver/core/stray.c: lies in no room", "check-layers")

    def test_a_file_in_the_wrong_room_by_its_name(self):
        self.write("driver/core/zip/elf_more.c", '#include "core/zip/zip.h"\n')
        self.found("driver/core/zip/elf_more.c: belongs into driver/core/elf", "check-layers")

    def test_a_file_in_the_wrong_room_by_its_includes(self):
        self.write("driver/core/zip/choice.c", '#include "core/plan/plan.h"\n')
        self.found("core/zip", "check-layers")

    def test_a_new_room_is_a_new_line_of_the_picture(self):
        self.write("driver/core/news/news.c", '#include "base/err.h"\n')
        self.found("news", "check-layers")

    def test_a_circle_of_rooms(self):
        self.write("driver/core/elf/back.c", '#include "core/wheel/wheel.h"\n')
        self.found("rooms that need each other: core/elf -> core/wheel -> core/elf", "check-layers")

    def test_an_include_that_points_up(self):
        self.write("driver/base/up.c", '#include "core/plan/plan.h"\n')
        self.found('driver/base/up.c:1: base may not include "core/plan/plan.h"', "check-layers")

    def test_a_step_that_includes_a_step(self):
        self.write("driver/step/pack/wrong.c", '\n#include "step/fetch/fetch.h"\n')
        self.found('driver/step/pack/wrong.c:2: step/pack may not include "step/fetch/fetch.h"', "check-layers")

    def test_the_store_stands_on_base_alone(self):
        self.write("cache/wrong.c", '#include "core/plan/plan.h"\n')
        self.found("cache/wrong.c:1: cache may not include", "check-layers")

    def test_the_picture_is_drawn(self):
        page = os.path.join(self.tree, "driver/ARCHITECTURE.md")
        with open(page, encoding="utf-8") as f:
            text = f.read()
        self.write("driver/ARCHITECTURE.md", text.replace("core/plan", "core/plain"))
        self.found("driver/ARCHITECTURE.md shows", "check-layers")
        self.assertEqual(self.check("check-layers", "--draw")[0], 0)
        self.assertEqual(self.check("check-layers")[0], 0)

    def test_sizes(self):
        line = "\tint x" + "x" * 120 + ";\n"
        self.write("driver/base/wide.c", "void f(void)\n{\n" + line + "}\n")
        self.found("driver/base/wide.c:3: columns: a line of", "check-sizes")
        self.write("driver/base/wide.h", "/* " + "a word " * 14 + " */\n")
        self.found("driver/base/wide.h:1: columns: a line of", "check-sizes")
        self.write("driver/base/long.c", "void f(void)\n{\n" + "\t;\n" * 101 + "}\n")
        self.found("driver/base/long.c:2: lines: a function of 101, at most 100", "check-sizes")
        self.write("driver/base/long.h", "int a;\n" * 251 + "\n" * 9)
        self.found("driver/base/long.h:1: lines: a file of 251, at most 250", "check-sizes")

    def test_a_full_folder(self):
        for i in range(41):
            self.write(f"driver/core/zip/zip_{i}.c", "\n")
        self.found("driver/core/zip has", "check-sizes")

    def test_words(self):
        self.write("driver/base/words.c", 'const char *words = "\'%s\' is ' + 'no size";\n')
        self.found("driver/base/words.c:1", "check-text")
        self.setUp()
        self.write("docs/words.md", "see /wo" + "rk/main\n")
        self.found("docs/words.md:1", "check-text")

    def test_a_pipe_that_breaks(self):
        self.write("ci/broken", "bwrap --help | gr" + "ep -q userns\n")
        self.found("ci/broken:1", "check-text")
        self.setUp()
        self.write("ci/broken", "printf '1 2' | he" + "ad -n 1\n")
        self.found("ci/broken:1", "check-text")

    def test_links(self):
        self.write("docs/lonely.md", "# A page that nobody names\n")
        self.found("lonely.md", "check-links")
        self.setUp()
        self.write("README.md", "\n[gone](docs/gone.md)\n", "a")
        self.found("docs/gone.md", "check-links")
        self.setUp()
        self.write("README.md", "word " * 900, "a")
        self.found("README.md", "check-links")

    def test_links_refuses_a_message_that_the_sources_lack(self):
        page = "docs/troubleshooting.md"
        with open(os.path.join(self.tree, page)) as f:
            text = f.read()
        self.assertIn("`wrong digest from '...'`", text)
        for old, new in (("`wrong digest from '...'`", "`wrong digits from '...'`"), ("`wrong digest from '...'`", "`ab...`"),
                         ("`no profile fits this machine`", "`wrong digest from '...'`"), ("## Messages of ptbuild", "## Messages")):
            self.write(page, text.replace(old, new))
            self.found(page, "check-links")

    def commit(self, subject, *body):
        self.write("note", subject, "a")
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-qm", "\n\n".join((subject, *body)))

    def test_commits(self):
        for wanted, message in (("does not begin with 'area: '", ("No area here", "Why.")),
                                ("at most 72", ("zip: " + "long " * 14, "Why.")),
                                ("no body", ("zip: there is a subject alone",))):
            self.commit(*message)
            self.found(wanted, "check-commits", "HEAD~1..HEAD")
        self.commit("zip: a good commit", "This is why.")
        self.assertEqual(self.check("check-commits", "HEAD~1..HEAD")[0], 0)
        git(self.tree, "tag", "v9.9.9", "HEAD~1")
        status, said = self.check("check-commits")
        self.assertEqual((status, said.strip()), (0, "check-commits: 1 commits of v9.9.9..HEAD"))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
