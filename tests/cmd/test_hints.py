#!/usr/bin/python3
"""Every hint of the sources that names a command, an option or a shell command is in tests/data/hints.txt, and what it names is run.

A record of that file: the source file and the text of the hint, then lines with a tab:
  < ARGUMENTS   a command line that gets this hint here
  > ARGUMENTS   what the hint says to run, with values for what it leaves open; ptbuild must not refuse it
  <! >!         the same, without --offline
  - OPTION      the hint says to leave it out
  $ COMMAND     a command of the shell, which must succeed
  ! REASON      why the next command may be refused on a machine of a test, after its own options
  = REASON      why there is nothing to run
"""
import concurrent.futures
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.join(HERE, "..", "..")
PROGRAM = os.path.realpath(sys.argv.pop(1)) if __name__ == "__main__" else ""
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from wheelsite import make_wheel  # noqa: E402

CALL = re.compile(r"\b(?:\w*_hint|hint_\w+|preflight_fail|preflight_warn|refuse)\s*\(")
NAMES_COMMAND = re.compile(r"ptbuild [a-z-]|(?<![\w-])--[a-z]|\b(?:git -C|chmod|chown|unshare|sysctl|docker|apt-get|-m ensurepip)\b")
# Texts that become a hint later, and warnings with one: only what is quoted as a command.
ASIDE = re.compile(r"\b(?:log_warn|log_info|arena_printf|strlist_addf)\s*\(|static const char \w+\[\] =")
QUOTES_COMMAND = re.compile(r"(?:'|^|run )ptbuild (?:--)?[a-z]|\b(?:git -C|unshare --|apt-get install)\b")
LITERALS = re.compile(r'(?:"(?:[^"\\]|\\.)*"\s*)+')
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")
REFUSALS = {2: "usage", 3: "what no table or file has", 7: "a policy"}


def arguments(text, at):
    """What is between the bracket at `at` and its partner."""
    depth, i, inside = 0, at, False
    while i < len(text):
        c = text[i]
        if inside:
            i += c == "\\"
            inside = c != '"'
        elif c == '"':
            inside = True
        else:
            depth += (c == "(") - (c == ")")
            if not depth:
                return text[at + 1:i]
        i += 1
    return ""


def hints_of(text):
    """The texts in the calls that make hints, of those that name a command."""
    for call, names in ((CALL, NAMES_COMMAND), (ASIDE, QUOTES_COMMAND)):
        for found in call.finditer(text):
            end = text.index(";", found.end())
            inside = text[found.end():end] if found[0].endswith("=") else arguments(text, found.end() - 1)
            for literal in LITERALS.finditer(inside):
                hint = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literal[0]))
                if names.search(hint):
                    yield hint


def hints_in_sources():
    found = {}
    for top in ("driver", "cache"):
        for folder, _, names in os.walk(os.path.join(TOP, top)):
            for name in names:
                path = os.path.join(folder, name)
                if name.endswith(".c") and os.path.basename(folder) != "ci":  # what is written there is a file, and ci/check-jobs reads it
                    with open(path, encoding="utf-8") as f:
                        for hint in hints_of(f.read()):
                            found[f"{os.path.relpath(path, TOP)}: {hint}"] = hint
    return found


def records():
    rows = {}
    with open(os.path.join(HERE, "..", "data", "hints.txt"), encoding="utf-8") as f:
        for line in f.read().splitlines():
            if line.startswith("\t"):
                kind, _, rest = line[1:].partition(" ")
                rows[key].append((kind, rest.strip()))
            elif line and not line.startswith("#"):
                key = line
                assert key not in rows, key
                rows[key] = []
    return rows


def pattern(hint):
    """The text of a format as a regular expression."""
    parts = re.split(r"%(?:\.?\*?\d*)?(?:zu|lu|[sduc])", hint.replace("\\n", "\n").replace('\\"', '"'))
    return ".*".join(re.escape(p) for p in parts)


class Hints(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work, cls.ran = tempfile.TemporaryDirectory(), {}
        os.chdir(cls.work.name)
        shutil.copytree(os.path.join(TOP, "profiles"), "profiles")
        for folder in ("dist", "foreign", "source", "empty", "marked", "new", "audio", "nameless"):
            os.mkdir(folder)
        torch = make_wheel("dist", "torch", "2.6.0+cpu.avx2")
        make_wheel("foreign", "torch", "2.6.0+cpu.avx2", python="cp399-cp399-manylinux_2_28_x86_64")
        marked = make_wheel("marked", "torch", "2.6.0+cpu.avx2", marked=True)
        for path, text in (("profile.yaml", "gpu: cpu\nisa: avx2\n"), ("bundle.yaml", "profile: sm90-avx2\ntorch: official==2.9.1\ncompanions: [torchvision]\n"),
                           ("mine.yaml", "note: for a test\nrelease: 2.9.1\npythons: ['3.13']\nrows:\n  - {gpus: [cpu], isas: [avx2]}\n"),
                           ("source/setup.py", "setup(name='tiny', version='1.0')\n"), ("k.gpg", ""), ("audio/version.txt", "2.11.0\n"), ("nameless/setup.py", "setup(name='nameless', version=find())\n")):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        for name in ("sm90-avx512", "sm90-avx2"):
            with open(f"{name}.json", "w", encoding="utf-8") as f:
                f.write('[{"directory": "/b", "command": "c++ -c a.cpp", "file": "a.cpp"}]')
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "env"], check=True)
        for words in (("genpkey", "-algorithm", "ed25519", "-out", "private"), ("pkey", "-in", "private", "-pubout", "-out", "key")):
            subprocess.run(["openssl", *words], check=True, capture_output=True)
        os.makedirs("audio/src/torchaudio")
        open("audio/src/torchaudio/__init__.py", "w").close()
        tree = shutil.make_archive("tree", "tar", ".", "audio")
        packages = next(os.path.join(d, "site-packages") for d, names, _ in os.walk("env") if "site-packages" in names)
        shutil.unpack_archive(torch, packages, "zip")
        cls.values = {"torch": torch, "marked": marked, "profiles": "profiles", "machine": os.path.join(TOP, "tests/data/machines/zen4-9654-h100.yaml"), "python": sys.executable,
                      "env": "env", "key": "key", "private": "private", "uid": str(os.getuid()), "tree": tree[:-4], "treesum": hashlib.sha256(open(tree, "rb").read()).hexdigest()}
        for folder in ("dist", "foreign"):
            made = cls.run_line(f"index {folder}", "made")
            assert made.returncode == 0, made.stderr
        os.mkdir("store")
        cls.run_line("fetch --profile cpu-avx2 --release 2.9.1", "store")  # makes the store

    @classmethod
    def tearDownClass(cls):
        os.chdir(TOP)
        cls.work.cleanup()

    @classmethod
    def run_line(cls, line, place, offline=True):
        """A command line with values, the tables of the work directory and its store."""
        store = os.path.join(cls.work.name, "store")
        words = shlex.split(line.format(**cls.values, new=os.path.join(cls.work.name, f"{place}-new"), store=store))
        if "--cache" not in words and words[:1] != ["matrix"]:
            words += ["--cache", store]
        if "--profiles" not in words:
            words += ["--profiles", "profiles"]
        if offline and "--offline" not in words:
            words += ["--offline"]
        env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": cls.work.name, "LC_ALL": "C.UTF-8", "http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1", "no_proxy": ""}
        if (line, offline) not in cls.ran:  # several hints name the same
            cls.ran[line, offline] = subprocess.run([PROGRAM, *words], capture_output=True, text=True, env=env, timeout=600, stdin=subprocess.DEVNULL)
        return cls.ran[line, offline]

    def all_lines(self, kinds, judge):
        """judge(key, kind, line, reason, place) for every line of these kinds, several at once."""
        jobs = []
        for n, (key, lines) in enumerate(records().items()):
            reason = None
            for k, (kind, line) in enumerate(lines):
                if kind in kinds:
                    jobs.append((key, kind, line, reason, f"{n}-{k}"))
                reason = line if kind == "!" else None
        with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
            for job, wrong in zip(jobs, pool.map(lambda j: judge(*j), jobs)):
                with self.subTest(hint=job[0], line=job[2]):
                    self.assertIsNone(wrong)
        return len(jobs)

    def test_every_hint_of_the_sources_has_a_record(self):
        sources, table = hints_in_sources(), records()
        self.assertEqual(sorted(set(sources) - set(table)), [], "hints without a record in tests/data/hints.txt")
        self.assertEqual(sorted(set(table) - set(sources)), [], "records of hints that are not in the sources")
        self.assertGreater(len(table), 200)
        self.assertEqual(list(hints_of('x(e); err_hint(e, "see (%s), or "\n "\'ptbuild list --gpus\'", a(b));')), ["see (%s), or 'ptbuild list --gpus'"])

    def test_every_record_runs_what_its_hint_names(self):
        for key, lines in records().items():
            hint = key.partition(": ")[2]
            with self.subTest(hint=key):
                run = [line for kind, line in lines if kind in (">", ">!", "$")]
                left_out = [line for kind, line in lines if kind == "-"]
                self.assertTrue(run or any(kind == "=" for kind, _ in lines), "nothing is run, and no reason given")
                if not run:
                    continue
                words = {w for line in run for w in line.split()}
                for option in set(OPTION.findall(hint)) - {"--hash"}:
                    self.assertEqual(option in left_out, option not in words, option)
                named = set(re.findall(r"(?:'|: |run |example |^)ptbuild ([a-z]+)", hint)) - {"plans"}  # a verb
                self.assertLessEqual(named, {line.split()[0] for line in run if line})

    def test_every_input_gets_its_hint(self):
        excused = {line for lines in records().values() for (before, _), (_, line) in zip(lines, lines[1:]) if before == "!"}

        def judge(key, kind, line, reason, place):
            got = self.run_line(line, place, offline=kind == "<")
            hint = key.partition(": ")[2]
            if not got.returncode or not re.search(pattern(hint), got.stderr, re.S):
                return f"exit status {got.returncode}: {got.stderr[-600:]}"
            # and what it quotes here, unless that has words to fill in
            for command in re.findall(r"'ptbuild ([^']+)'", got.stderr.rpartition("hint: ")[2]):
                if " " in command and not re.search(r"\b[A-Z]{3,}\b|\.\.\.|\*", command) and command not in excused:
                    ran = self.run_line(command, place)
                    if ran.returncode in REFUSALS:
                        return f"'{command}': exit status {ran.returncode}: {ran.stderr[-600:]}"
            return None
        self.assertGreater(self.all_lines(("<", "<!"), judge), 60)

    def test_what_hints_name_is_not_refused(self):
        def judge(key, kind, line, reason, place):
            if kind == "$":
                new = os.path.join(self.work.name, f"{place}-new")
                os.mkdir(new)
                done = subprocess.run(line.format(**self.values, new=new), shell=True, capture_output=True, text=True)
                return f"exit status {done.returncode}: {done.stderr}" if done.returncode else None
            got = self.run_line(line, place, offline=kind == ">")
            if reason or (got.returncode not in REFUSALS and got.returncode >= 0):
                return None
            return f"exit status {got.returncode}, {REFUSALS.get(got.returncode, 'fine')}: {got.stderr[-600:]}"
        self.assertGreater(self.all_lines((">", ">!", "$"), judge), 250)


if __name__ == "__main__":
    unittest.main(verbosity=2)
