#!/usr/bin/python3
"""What bash, zsh and fish offer behind the words of a command line: each shell's own machinery is asked."""
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.path.realpath(sys.argv.pop(1))

BASH = r"""
source <(ptbuild completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
$(complete -p ptbuild | sed 's/.*-F \([^ ]*\).*/\1/') "$1" "${@: -1}" "${@: -2:1}"
printf '%s\n' "${COMPREPLY[@]}"
"""

# compadd is what every completion of zsh ends in: what it would add goes to a file, and Tab writes END behind it.
ZSH = r"""
autoload -Uz compinit; compinit -u -D
source <(ptbuild completion zsh)
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
    local -a hits; builtin compadd -A hits "$@"; print -rl -- $hits >> $OFFERS
    builtin compadd "$@"
}
offers() { zle complete-word; print END >> $OFFERS }
zle -N offers; bindkey '^I' offers; bindkey '^U' kill-whole-line; LISTMAX=99999; setopt nobeep
print READY >> $OFFERS
"""


class Offers:
    """Asks one shell; gives the list of words it offers for the last word of a line."""

    def __init__(self, directory):
        self.dir = directory
        self.env = {"PATH": directory + "/bin:/usr/bin:/bin", "HOME": directory, "TERM": "xterm", "LC_ALL": "C.UTF-8",
                    "XDG_CONFIG_HOME": directory, "XDG_DATA_HOME": directory, "OFFERS": directory + "/offers"}

    def run(self, *words):
        ran = subprocess.run(words, env=self.env, cwd=self.dir, capture_output=True, text=True, timeout=600)
        assert not ran.stderr and ran.returncode == 0, (ran.returncode, ran.stderr)
        return ran.stdout.split("\n")[:-1]

    def close(self):
        pass


class Bash(Offers):
    def __call__(self, line):
        words = line.replace("=", " = ").split(" ") if line.endswith("=") or "=" in line else line.split(" ")
        return [w for w in self.run("bash", "--norc", "-c", BASH, "bash", *words) if w]


class Fish(Offers):
    def __call__(self, line):
        with open(self.dir + "/ptbuild.fish", "w") as f:
            f.write("\n".join(self.run("ptbuild", "completion", "fish")))
        said = self.run("fish", "--no-config", "-c", "source ptbuild.fish; complete -C $argv[1]", line)
        offers = [w.split("\t")[0] for w in said]
        return [w.split("=", 1)[1] if line.split(" ")[-1].startswith("--") and "=" in w else w for w in offers]


class Zsh(Offers):
    def __init__(self, directory):
        super().__init__(directory)
        with open(directory + "/.zshrc", "w") as f:
            f.write(ZSH)
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.chdir(directory)
            os.execve("/usr/bin/zsh", ["zsh", "-d", "-i"], dict(self.env, ZDOTDIR=directory))
        self.wait("READY")

    def wait(self, last):
        end = time.monotonic() + 300
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                os.read(self.fd, 65536)
            try:
                with open(self.dir + "/offers") as f:
                    lines = f.read().split("\n")
            except FileNotFoundError:
                continue
            if last in lines:
                os.unlink(self.dir + "/offers")
                return [w for w in lines if w and w != last]
        raise AssertionError("zsh does not answer")

    def __call__(self, line):
        os.write(self.fd, b"\x15" + line.encode() + b"\t")
        return self.wait("END")

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


class Completion:
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="completion-")
        os.mkdir(cls.dir + "/bin")
        os.mkdir(cls.dir + "/wheels")
        open(cls.dir + "/some.whl", "w").close()
        os.symlink(PROGRAM, cls.dir + "/bin/ptbuild")
        cls.ask = cls.shell(cls.dir)

    @classmethod
    def tearDownClass(cls):
        cls.ask.close()
        shutil.rmtree(cls.dir)

    def words(self, kind):
        return subprocess.run([PROGRAM, "completion", "--words", kind], capture_output=True, text=True, check=True).stdout.split()

    def has(self, line, *wanted):
        offers = self.ask(line)
        for w in wanted:
            self.assertIn(w, offers, line)
        return offers

    def test_commands(self):
        self.assertEqual(self.ask("ptbuild doc"), ["doctor"])
        self.assertIn("plan", self.has("ptbuild ", "build", "cache", "help"))

    def test_help_topics(self):
        self.assertEqual(self.ask("ptbuild help mat"), ["matrix"])
        self.assertEqual(self.ask("ptbuild completion zs"), ["zsh"])
        self.assertEqual(self.ask("ptbuild cache ver"), ["verify"])

    def test_names_from_the_tables(self):
        for line, kind in (("plan --release ", "release"), ("build --profile cpu-", "profile"), ("plan -p sm90-", "profile"),
                           ("plan --matrix build-pytorch/pytorch-2.9", "matrix"), ("matrix build-pytorch/", "matrix"),
                           ("plan --python ", "python"), ("plan --cuda 12", "cuda"), ("build --blas ", "blas"),
                           ("--profile cpu-avx5", "profile"), ("slim --gpu ", "gpu"), ("slim --gpu sm9", "gpu"),
                           ("slim --release ", "official"), ("slim --release 2.1", "official")):
            prefix = line.split(" ")[-1]
            with self.subTest(line=line):
                self.assertEqual(sorted(set(self.ask("ptbuild " + line))), sorted(w for w in self.words(kind) if w.startswith(prefix)))

    def test_list_of_gpus(self):
        self.has("ptbuild slim --gpu sm80+sm9", "sm80+sm90")
        self.has("ptbuild slim --gpu sm80,sm12", "sm80,sm120")
        self.has("ptbuild slim --release ", "2.9.1", "latest")

    def test_variants(self):
        for line in ("plan pytorch-python313-cpu-", "fetch pytorch-python313-cpu-", "diff pytorch-python312-cpu-avx pytorch-python313-cpu-",
                     "shell pytorch-python313-cpu-", "doctor pytorch-python313-cpu-", "pytorch-python313-cpu-"):
            with self.subTest(line=line):
                self.has("ptbuild " + line, "pytorch-python313-cpu-avx2", "pytorch-python313-cpu-armv9")
        self.has("ptbuild plan torchvision-python313-cuda12_8-sm90", "torchvision-python313-cuda12_8-sm90-avx512")

    def test_the_second_word(self):
        worlds = self.words("world")
        self.assertIn("debian13", worlds)
        for line in ("world make ", "world show --platform x86_64-linux ", "world lock --write --base=debian13 ", "world lock --base "):
            with self.subTest(line=line):
                self.assertEqual(sorted(self.ask("ptbuild " + line)), sorted(worlds))
        self.assertEqual(self.ask("ptbuild world --platform aarch64-linux ver"), ["verify"])
        self.assertNotIn("verify", self.ask("ptbuild cache info "))
        self.has("ptbuild plan pytorch-python313-cpu-avx2 --release 2.6.0 torchaudio-python313-cpu-", "torchaudio-python313-cpu-avx2")

    def test_packages(self):
        self.has("ptbuild build --package torch", "torchvision", "torchaudio")

    def test_options(self):
        self.assertIn("--max-size", self.ask("ptbuild cache gc --max"))
        self.assertIn("--offline", self.ask("ptbuild plan --off"))
        self.assertEqual(self.ask("ptbuild plan --sandbox n"), ["none"])
        self.assertEqual([w for w in self.ask("ptbuild list --profiles --isa")], ["--isas"])

    def test_files_and_directories(self):
        self.assertIn("some.whl", self.ask("ptbuild verify so"))
        self.assertTrue(any(w.rstrip("/") == "wheels" for w in self.ask("ptbuild index whe")))
        self.assertNotIn("some.whl", self.ask("ptbuild index so"))

    def test_value_behind_an_equals_sign(self):
        self.assertEqual(self.ask("ptbuild plan --release=2.6.0-d"), ["2.6.0-debian"])

    def test_an_unfinished_quote(self):
        for quote in "\"'":
            self.has("ptbuild plan --release " + quote + "2.6.0-d", "2.6.0-debian")
            self.ask("ptbuild " + quote + "pla [")
            self.ask("ptbuild plan " + quote + "a b")

    def test_a_name_that_does_not_exist(self):
        self.assertEqual(self.ask("ptbuild plan --release nothing-like-it"), [])


for name, shell in (("bash", Bash), ("zsh", Zsh), ("fish", Fish)):
    globals()["In" + name.capitalize()] = type("In" + name.capitalize(), (Completion, unittest.TestCase), {"shell": shell})


class Words(unittest.TestCase):
    def words(self, kind):
        return subprocess.run([PROGRAM, "completion", "--words", kind], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]

    def test_variants_can_be_planned(self):
        names = self.words("variant")
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("pytorch-python313-cuda13_0-sm88-avx2", names)
        self.assertNotIn("torchvision-python313-cuda13_0-sm88-avx2", names)  # torch's extension builder does not know it
        chosen = {}  # one of each package and Python, and of each GPU
        for name in names:
            package, python, *rest = name.split("-")
            chosen[package, python] = name
            chosen[next((w for w in rest if w.startswith("sm")), "cpu")] = name
        self.assertGreater(len(chosen), 30)
        for name in chosen.values():
            with self.subTest(name=name):
                ran = subprocess.run([PROGRAM, "plan", name], capture_output=True, text=True)
                self.assertEqual(ran.returncode, 0, ran.stderr)


if __name__ == "__main__":
    unittest.main()
