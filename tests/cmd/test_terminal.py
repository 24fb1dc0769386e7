#!/usr/bin/python3
"""What a user sees: the program in terminals of several widths, with colours and without, and in a pipe."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

PROGRAM = os.path.realpath(sys.argv.pop(1))
STYLE = re.compile(r"\033\[[0-9;]*m")
SECTIONS = ("releases", "matrices", "profiles", "isas", "gpus", "toolkits", "blas", "toggles")
PLAN = ("plan", "pytorch-python313-cuda12_8-sm90-avx512", "--release", "2.8.0")


def terminal(columns, *words, **env):
    """What stands on a terminal of so many columns when the program is done: status lines are gone."""
    return re.sub(r"[^\r\n]*\r\033\[K", "", written(columns, *words, **env))


def written(columns, *words, **env):
    """All that the program writes to such a terminal."""
    pid, fd = pty.fork()
    if not pid:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execve(PROGRAM, ["ptbuild", *words], {"HOME": tempfile.gettempdir(), "PATH": "/usr/bin:/bin", "TERM": "xterm", **env})
    said = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        said += part
        if not part:
            break
    os.close(fd)
    os.waitpid(pid, 0)
    return said.decode().replace("\r\n", "\n")


def pipe(*words):
    ran = subprocess.run([PROGRAM, *words], capture_output=True, text=True, env={"HOME": "/nowhere", "TERM": "xterm", "COLUMNS": "40"})
    return ran.stdout + ran.stderr


class Terminal(unittest.TestCase):
    def fits(self, columns, text):
        for line in STYLE.sub("", text).split("\n"):
            self.assertLessEqual(len(line), columns, line)

    def test_a_reader_that_has_seen_enough(self):
        """Ended by SIGPIPE, without a word, as 'ptbuild matrix ... | head' needs it."""
        read, write = os.pipe()
        os.close(read)
        try:
            done = subprocess.run([PROGRAM, "list", "--gpus"], stdout=write, stderr=subprocess.PIPE, env={"HOME": tempfile.gettempdir(), "PATH": "/usr/bin:/bin"})
        finally:
            os.close(write)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""))

    def test_tables_fit(self):
        for columns in (80, 120):
            for section in SECTIONS:
                with self.subTest(section=section, columns=columns):
                    text = terminal(columns, "list", "--" + section)
                    self.fits(columns, text)
                    # nothing is lost, and no name is cut
                    rows = pipe("list", "--" + section).split("\n")
                    shown = STYLE.sub("", text) + re.sub("[,:]\\s", " ", STYLE.sub("", text))
                    self.assertLessEqual(set(" ".join(rows).split()), set(shown.split()) | {"-"})
                    for row in rows[1:-1]:
                        self.assertIn("\n" + row.split(" ")[0], STYLE.sub("", text))

    def test_a_row_is_a_line_in_a_pipe(self):
        for section in SECTIONS:
            text = pipe("list", "--" + section)
            self.assertEqual(STYLE.sub("", text), text)
            self.assertTrue(all(row[:1].strip() for row in text.split("\n")[:-1]), section)

    def test_a_plan_is_a_screen(self):
        for columns in (80, 120):
            text = terminal(columns, *PLAN)
            self.fits(columns, text)
            self.assertLessEqual(text.count("\n"), 46)
            headline = terminal(columns, "plan", "--profile", "sm90-avx512")
            self.fits(columns, headline)
            self.assertRegex(headline, r"\n  time +about .* of CPU time(.*\n)+  disk +[0-9.]+ GiB(.*\n)+  downloads +[0-9.]+ MB for the world")
            self.fits(columns, terminal(columns, *PLAN, "--explain"))
            self.fits(columns, terminal(columns, *PLAN, "--all"))
        self.fits(80, pipe(*PLAN))
        self.assertGreater(max(len(line) for line in pipe(*PLAN, "--explain").split("\n")), 150)

    def test_columns_overrule_the_terminal(self):
        self.fits(60, terminal(200, "list", "--isas", COLUMNS="60"))

    def test_json_is_the_same_everywhere(self):
        for words in ((*PLAN, "--json"), ("list", "--gpus", "--json")):
            self.assertEqual(terminal(80, *words), pipe(*words))

    def test_the_sample_of_the_documents(self):
        """Values and places of docs/profiles.md are those that the program prints."""
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "profiles.md")) as f:
            samples = re.findall(r"^  ([A-Z_]+=\S+) +(\w+\.yaml:\d+)$", f.read(), re.M)
        said = pipe("plan", "--profile", "sm61-avx2", "--release", "2.9.1", "--python", "3.13", "--cuda", "12.8", "--explain")
        self.assertEqual(len(samples), 4)
        self.assertLessEqual(set(samples), set(re.findall(r"^  ([A-Z_]+=\S+) +(\w+\.yaml:\d+)", said, re.M)))

    def test_worlds_and_checks_fit(self):
        for words in (("world", "show", "debian13+cuda12_4"), ("doctor", "--root", "/", "--release", "2.9.1")):
            with self.subTest(words=words):
                text = terminal(80, *words)
                self.assertGreater(len(text.split("\n")), 5, text)
                # a path is not cut, and notes and the error behind the lines are the log's, which is not wrapped
                self.fits(80, "\n".join(line for line in STYLE.sub("", text).split("ptbuild: error: ")[0].split("\n") if " " in line[22:].strip() and not re.match(r"  \w+: ", line)))

    def test_a_wait_says_what_for(self):
        said = written(80, "doctor", "--root", "/", "--release", "2.9.1", "--offline")
        for row in ("memory", "tools", "python"):
            self.assertIn(f"looking at: {row}\r", said)
        self.assertNotIn("looking", pipe("doctor", "--root", "/", "--release", "2.9.1", "--offline"))
        with tempfile.TemporaryDirectory() as place:
            wheel = os.path.join(place, "x-1-py3-none-any.whl")
            open(wheel, "w").close()
            self.assertIn("x-1-py3-none-any.whl: reading\r\033[K", written(80, "verify", wheel))
            self.assertNotIn("reading", pipe("verify", wheel))

    def test_results_fit(self):
        pair = ("pytorch-python313-cpu-avx", "pytorch-python313-cpu-avx2")
        for words in (("detect",), ("diff", *pair), ("cache", "info"), ("world", "list"), ("world", "show", "debian13"),
                      ("matrix", "build-pytorch/main", "--quiet"), ("verify", "--rules"), ("plan", "--explain", pair[0])):
            with self.subTest(words=words):
                self.fits(80, terminal(80, *words))

    def test_help_fits(self):
        for command in re.findall(r"^  ([a-z]+) ", pipe("help"), re.M):
            self.fits(80, terminal(80, "help", command))

    def test_colours(self):
        self.assertIn("\033[1mname\033[0m", terminal(80, "list"))
        self.assertIn("\033[1menvironment\033[0m", terminal(80, *PLAN))
        self.assertIn("ptbuild: \033[1;31merror:\033[0m ", terminal(80, "nothing"))

    def test_colours_can_be_off(self):
        for env in ({"NO_COLOR": "1"}, {"NO_COLOR": "0"}, {"TERM": "dumb"}, {"TERM": ""}):
            for words in (("list",), PLAN, ("nothing",)):
                self.assertNotIn("\033", terminal(80, *words, **env), env)
        self.assertIn("\033[1m", terminal(80, "list", NO_COLOR=""))
        for words in (("list",), PLAN, ("nothing",)):
            self.assertNotIn("\033", pipe(*words))


if __name__ == "__main__":
    unittest.main()
