#!/usr/bin/python3
"""README.md and docs/: every block of commands runs, on small wheels and a server on loopback, or has a mark before it that says why not:

    <!-- not run: builds PyTorch -->

<!-- run: fake torch --> is for blocks of builds: they run with definitions whose PyTorch is small, where one build's tree was kept.

Of a marked block ptbuild's lines are parsed, by the program itself with --help, and planned where they say what to build; files and options in
other lines and in the text exist, also in driver/cmd/help. <!-- output --> is for what is shown and not compared, <!-- output of: COMMAND --> for what is, figures aside.

usage: test_docs.py PTBUILD [-v]
"""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
import toy  # noqa: E402
from wheelsite import Server, clean_env, index, make_mixed, make_others, venv  # noqa: E402

PROGRAM = os.path.realpath(sys.argv.pop(1))
PAGES = ["README.md", *sorted(glob.glob("docs/*.md", root_dir=TOP))]
MARK = re.compile(r"<!-- (not run|run|output of|output)(?:: (.+))? -->$")
NOT_COMMANDS = ("yaml", "dockerfile", "jq", "python", "cmake", "c++", "cuda", "text")
# Whose own options and files may stand in the text.
OF_OTHERS = {"--user", "--privileged", "--network", "--ulimit", "--no-cache", "--target", "--require-hashes", "--no-index", "--find-links", "--no-build-isolation", "--hash", "--build-arg", "--trusted-host", "--preview-features", "--index"}
# A page of blocks that are all not run.
NOT_RUN = {"docs/slim.md": "official wheels; tests/e2e/test_slim.py does it with small wheels"}
PLANNED = {"build", "doctor", "fetch", "plan"}


class Block:
    def __init__(self, page, line, text, language, mark):
        self.page, self.line, self.text, self.language = page, line, text, language
        self.mark, self.reason = mark or (("not run", NOT_RUN[page]) if page in NOT_RUN else (None, None))

    def __str__(self):
        return f"{self.page}:{self.line}"


def blocks_of(page, text):
    """Fenced and indented blocks; then the text without them."""
    lines, blocks, prose, at = text.split("\n"), [], [], 0
    mark = None
    while at < len(lines):
        line, begin = lines[at], at
        fenced = line.startswith("```")
        if fenced or (line.startswith("    ") and line.strip() and (at == 0 or not lines[at - 1].strip() or MARK.match(lines[at - 1]))):
            at += 1
            if fenced:
                while not lines[at].startswith("```"):
                    at += 1
                body = lines[begin + 1 : at]
                at += 1
            else:
                while at < len(lines) and (lines[at].startswith("    ") or (not lines[at].strip() and at + 1 < len(lines) and lines[at + 1].startswith("    "))):
                    at += 1
                body = [row[4:] for row in lines[begin:at]]
            blocks.append(Block(page, begin + 1, "\n".join(body), line[3:].strip() if fenced else "sh", mark))
            mark = None
            continue
        found = MARK.match(line)
        if found:
            mark = found.groups()
        elif line.strip():
            mark = None
        prose.append("" if found else line)
        at += 1
    return blocks, "\n".join(prose)


def read_pages():
    for page in PAGES:
        with open(os.path.join(TOP, page)) as file:
            yield page, file.read()


def ptbuild(*words, **more):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300, **more)


class Known:
    """What the program has, by its own help."""

    def __init__(self):
        self.options, self.own = {}, {}
        overview = json.loads(ptbuild("help", "--json").stdout)
        for name in [c["name"] for c in overview["commands"]]:
            doc = json.loads(ptbuild("help", name, "--json").stdout)
            rows = doc["options"] + doc["global_options"]
            self.options[name] = {word for row in rows for word in re.findall(r"(?<![\w-])--?[a-z][\w-]*", row["name"])}
            self.options[name] |= {"--no-" + o[2:] for o in self.options[name] if o.startswith("--")}
        self.all = set().union(*self.options.values())


def commands(text):
    """Of a block for the shell: the words of each simple command."""
    for line in re.sub(r"\\\n\s*", " ", text).split("\n"):
        words = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
        words.whitespace_split = True
        words.commenters = "#"
        command = []
        for word in words:
            if word and set(word) <= set("|&;()"):
                if command:
                    yield command
                command = []
            else:
                command.append(re.sub(r"^\$?\(", "", word))
        while command and re.fullmatch(r"\w+=.*", command[0]) and "=$" not in command[0]:
            command = command[1:]
        if command:
            yield command


def own_words(command):
    """Behind 'ptbuild', without redirections; None for another program."""
    for at, word in enumerate(command[:2]):
        if os.path.basename(word) == "ptbuild" and (at == 0 or command[0] in ("sudo", "$")):
            rest = command[at + 1 :]
            return rest[: min([rest.index(w) for w in rest if set(w) <= set("<>")] or [len(rest)])]
    return None


def check_own(words, known, home):
    """Why the program would not take a line; None."""
    inner = words[: words.index("--")] if "--" in words else words
    # Files of a reader's own are not here.
    inner = [os.path.join(home, "small.yaml") if w.endswith("small.yaml") else w for w in inner]
    if "--extension" in inner:
        os.makedirs(os.path.join(home, "tiny"), exist_ok=True)
        with open(os.path.join(home, "tiny", "setup.py"), "w") as file:
            file.write("setup(name='tiny', version='1')\n")
        inner = [os.path.join(home, "tiny") if w == "." else w for w in inner]
    for word, sign, version in (("~/audio", "torchaudio/__init__.py", "2.11.0a0"), ("~/pytorch", "torch/__init__.py", "2.12.0a0")):
        if word in inner:
            tree = os.path.join(home, word[2:])
            os.makedirs(os.path.dirname(os.path.join(tree, sign)), exist_ok=True)
            open(os.path.join(tree, sign), "w").close()
            with open(os.path.join(tree, "version.txt"), "w") as file:
                file.write(f"{version}\n")
            inner = [tree if w == word else w for w in inner]
    inner = [os.path.join(TOP, "profiles", "requirements", "extension.txt") if w == "requirements.txt" else w for w in inner]
    said = ptbuild(*inner, "--help", cwd=home)
    if said.returncode:
        return said.stderr.strip()
    name = next((w for w in inner if w in known.options), "build")
    if name not in PLANNED or not ("--profile" in inner or any("-python" in w for w in inner)):
        return None
    planned, at = [], 0
    inner = [w for w in inner if w != name]
    while at < len(inner):
        word = inner[at]
        value = at + 1 < len(inner) and not inner[at + 1].startswith("-") and word.startswith("-")
        if not word.startswith("-") or (word in known.options["plan"] and word not in ("--root", "--torch", "--lower-store")):
            planned += inner[at : at + 1 + value]
        at += 1 + value
    said = ptbuild("plan", *planned, "--cache", os.path.join(home, "empty"), cwd=home)
    return said.stderr.strip() if said.returncode else None


def check_words(block, known, home):
    """What is wrong in a block, without running it."""
    for command in commands(block.text):
        words = own_words(command)
        if words is not None:
            why = check_own(words, known, home)
            if why:
                yield f"{block}: ptbuild {' '.join(words)}: {why}"
        for word in command:
            if "*" not in word:
                yield from absent(block, word)
    yield from absent(block, block.reason or "")


def absent(block, text):
    for path in re.findall(r"(?<![\w./-])((?:ci|tests|profiles|docs|driver|patches)/[\w./-]*\w)", text):
        if not os.path.exists(os.path.join(TOP, path)):
            yield f"{block}: '{path}' does not exist"


def check_prose(page, text, known):
    """Commands, options and files that the text names; an option may be that of a script that the page names."""
    scripts = set(re.findall(r"\b(?:ci|tests)/[\w./-]*\w", text))
    scripts = [os.path.join(TOP, s) for s in scripts if os.path.isfile(os.path.join(TOP, s))]
    others = set(OF_OTHERS)
    for script in scripts:
        with open(script) as file:
            others.update(re.findall(r"--[a-z][\w-]*", file.read()))
    for span in re.findall(r"`([^`]+)`", text):
        span = " ".join(span.split())
        words = span.split(" ")
        if words[0] == "ptbuild" and len(words) > 1:
            name = words[1] if re.fullmatch(r"[a-z]+", words[1]) else "build"
            if name not in known.options:
                yield f"{page}: there is no command '{name}' (`{span}`)"
                continue
            for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", span.split(" -- ")[0]):
                if option not in known.options[name] | {"--help", "--version"}:
                    yield f"{page}: {name} has no option {option} (`{span}`)"
        elif words[0].startswith("--"):
            option = re.match(r"--[\w-]*", words[0])[0]
            if option not in known.all | others | {"--", "--help", "--version"}:
                yield f"{page}: no command has the option {option} (`{span}`)"
        path = words[0].rstrip(".,:")
        if re.fullmatch(r"(ci|tests|profiles|docs|driver|patches)/[\w./-]+", path) and not os.path.exists(os.path.join(TOP, path)) and not re.search(r"/[A-Z]+\b", path):
            yield f"{page}: '{path}' does not exist (`{span}`)"


class Place:
    """A directory of a reader's: wheels, an environment, and the two servers."""

    def __init__(self):
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="ptbuild-docs-"))
        for name in ("bin", "dist", "others", "home", ".github/workflows"):
            os.makedirs(os.path.join(self.dir, name))
        for name in ("prefix/share/ptbuild", "build"):
            os.makedirs(os.path.join(self.dir, name))
        open(os.path.join(self.dir, "build", "install_manifest.txt"), "w").close()
        os.symlink(PROGRAM, os.path.join(self.dir, "bin", "ptbuild"))
        for name in ("ci", "patches", "profiles", "tests"):
            os.symlink(os.path.join(TOP, name), os.path.join(self.dir, name))
        with open(os.path.join(self.dir, "own.patch"), "w") as file:
            file.write("Why it is needed\n--- a/setup.py\n+++ b/setup.py\n@@ -1 +1 @@\n-a\n+b\n")
        with open(os.path.join(self.dir, "small.yaml"), "w") as file:
            file.write("inherit: sm90-avx512\n")
        make_mixed(os.path.join(self.dir, "dist"))
        make_others(os.path.join(self.dir, "others"))
        index(PROGRAM, os.path.join(self.dir, "dist"))
        venv(os.path.join(self.dir, "env"))
        self.index, self.others = Server(os.path.join(self.dir, "dist")), Server(os.path.join(self.dir, "others"))
        path = f"{self.dir}/bin:{self.dir}/env/bin:/usr/bin:/bin"
        self.env = clean_env(HOME=os.path.join(self.dir, "home"), PATH=path, PIP_INDEX_URL=self.others.url, PIP_NO_CACHE_DIR="1", PIP_DISABLE_PIP_VERSION_CHECK="1")

    def run(self, text):
        text = text.replace("/usr/local", f"{self.dir}/prefix")
        text = re.sub(r"\bhttp://HOST\b", self.index.url, text).replace("build/ptbuild", "ptbuild")
        text = re.sub(r"(?m)^\$ ", "", text)
        return subprocess.run(["bash", "-e", "-u", "-o", "pipefail", "-c", text], capture_output=True, text=True, cwd=self.dir, env=self.env, timeout=300)

    def close(self):
        for server in (self.index, self.others):
            server.__exit__()
        shutil.rmtree(self.dir)


class StandIn:
    """A small PyTorch in the place of the real one, built once; its tree was kept. Made when it is asked for."""

    made = None

    def __init__(self):
        self.world = world = toy.World(PROGRAM)
        os.symlink(os.path.join(TOP, "patches"), world.path("patches"))
        os.mkdir(world.path("lower"))
        for era in toy.ERAS[1:]:
            os.unlink(world.release(era))
        # A release with a suffix is no default.
        with open(world.release(toy.ERAS[0])) as file:
            row = file.read().replace(f"name: 2.9.1-{toy.ERAS[0]}", "name: 2.9.1")
        os.unlink(world.release(toy.ERAS[0]))
        with open(os.path.join(world.profiles, "releases", "2.9.1.yaml"), "w") as file:
            file.write(row)
        self.env = clean_env(HOME=world.path("home"), PTBUILD_DATA_DIR=world.dir, PATH=f"{os.path.dirname(PROGRAM)}:/usr/bin:/bin")
        StandIn.made = self
        done = self.run("ptbuild build --profile cpu-avx2 --keep")
        assert done.returncode == 0, done.stderr

    def run(self, text):
        text = text.replace("/mnt/ptbuild-cache", self.world.path("lower")).replace("-python313-", f"-python{toy.host_python().replace('.', '')}-")
        return subprocess.run(["bash", "-e", "-u", "-c", text], capture_output=True, text=True, cwd=self.world.dir, env=self.env, stdin=subprocess.DEVNULL, timeout=600)


def without_figures(text):
    return re.sub(r"(?<![A-Za-z_\d])\d[\d.,]*", "N", " ".join(text.split()))


def check_block(block, known, place):
    """What is wrong with it."""
    if block.mark == "output of":
        said = place.run(block.reason)
        have = without_figures(said.stdout)
        for line in block.text.split("\n"):
            if line.strip() not in ("", "...") and without_figures(line) not in have:
                yield f"{block}: '{block.reason}' does not say '{line.strip()}'"
        return
    if block.mark == "output" or (block.language in NOT_COMMANDS):
        return
    if block.language not in ("sh", ""):
        yield f"{block}: blocks of the language '{block.language}' are not known"
        return
    yield from check_words(block, known, place.dir)
    if block.mark == "not run":
        if not block.reason:
            yield f"{block}: the mark has no reason"
        return
    if block.mark == "run":
        if block.reason != "fake torch":
            yield f"{block}: 'run: {block.reason}' is not known"
            return
        place = StandIn.made or StandIn()
    said = place.run(block.text)
    if said.returncode == 127 and re.search(r": (uv|jq): command not found", said.stderr):
        print(f"{block}: not run: {said.stderr.strip()}", file=sys.stderr)
    elif said.returncode:
        yield f"{block}: exit status {said.returncode}: {block.text}\n{said.stdout[-2000:]}{said.stderr[-2000:]}"


class Docs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.known, cls.place = Known(), Place()

    @classmethod
    def tearDownClass(cls):
        cls.place.close()
        if StandIn.made:
            StandIn.made.world.close()

    def test_blocks(self):
        wrong, counts = [], {}
        for page, text in read_pages():
            blocks, _ = blocks_of(page, text)
            for block in blocks:
                found = list(check_block(block, self.known, self.place))
                wrong += found
                kind = block.mark or ("not commands" if block.language in NOT_COMMANDS else "run")
                counts[kind] = counts.get(kind, 0) + 1
        print(f"blocks: {counts}", file=sys.stderr)
        self.assertFalse(wrong, "\n" + "\n".join(wrong))
        self.assertGreater(counts["run"], 5)

    def test_text(self):
        wrong = []
        for page, text in read_pages():
            blocks, prose = blocks_of(page, text)
            named = "\n".join(b.text for b in blocks if b.language in ("sh", ""))
            wrong += check_prose(page, prose + "\n" + named.replace("`", ""), self.known)
        self.assertFalse(wrong, "\n" + "\n".join(wrong))

    def test_help(self):
        """driver/cmd/help: a file for each command; the program takes its examples, and has the options that it names."""
        folder = os.path.join(TOP, "driver", "cmd", "help")
        self.assertEqual(set(os.listdir(folder)), {name + ".txt" for name in self.known.options})
        wrong = []
        for name in self.known.options:
            with open(os.path.join(folder, name + ".txt")) as file:
                blocks, text = blocks_of(f"driver/cmd/help/{name}.txt", file.read())
            self.assertTrue(blocks, name)
            for block in blocks:
                wrong += check_words(block, self.known, self.place.dir)
            wrong += [f"{name}: no command has the option {o}" for o in re.findall(r"(?<![\w-])--[a-z][\w-]*", text) if o not in self.known.all | OF_OTHERS]
        self.assertFalse(wrong, "\n" + "\n".join(wrong))

    def test_what_is_broken_is_found(self):
        """One of each kind, broken on purpose."""
        for text, word in (
            ("    ptbuild plan --profile cpu-avx3\n", "avx3"),
            ("    ptbuild lst\n", "lst"),
            ("    ptbuild list --gpu\n", "gpu"),
            ("    false\n", "exit status 1"),
            ("<!-- run: fake torch -->\n    ptbuild shell pytorch-python313-cpu-avx2 -- ninja -C build nothing\n", "exit status"),
            ("<!-- run: fake -->\n    ls\n", "not known"),
            ("<!-- not run: a build -->\n    ptbuild build --profile sm91-avx2\n", "sm91"),
            ("<!-- not run: a build -->\n    ptbuild build --keep-tree\n", "keep-tree"),
            ("<!-- not run: as root -->\n    ci/quickstrat\n", "ci/quickstrat"),
            ("<!-- not run -->\n    ci/quickstart\n", "no reason"),
            ("<!-- not run: tests/e2e/test_nothing.py does it -->\n    ls\n", "test_nothing"),
            ("<!-- output of: ptbuild list --isas -->\n    avx3  x86_64-linux\n", "does not say"),
            ("```shell\nls\n```\n", "not known"),
        ):
            blocks, _ = blocks_of("page", text)
            found = [w for b in blocks for w in check_block(b, self.known, self.place)]
            self.assertTrue(any(word in w for w in found), (text, found))
        for text, word in (
            ("see `ptbuild plann`", "plann"),
            ("see `ptbuild plan --explian`", "--explian"),
            ("with `--frobnicate`", "--frobnicate"),
            ("run `ci/quickstrat`", "ci/quickstrat"),
        ):
            found = list(check_prose("page", text, self.known))
            self.assertTrue(any(word in w for w in found), (text, found))


if __name__ == "__main__":
    unittest.main()
