#!/usr/bin/python3
"""Versions, specifiers, markers and requirements: what ptbuild says of them against packaging.

usage: test_requirements.py EVALUATE [--cases N] [--seed N]

EVALUATE is the program made of evaluate.c. Python's packaging must be importable. Cases are drawn by grammar and then
damaged at random; every disagreement is printed, and none is expected.
"""
import argparse
import random
import subprocess
import sys

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

OPERATORS = ["==", "!=", "<=", ">=", "<", ">", "~=", "==="]
PLATFORMS = {
    "x86_64-linux": ("posix", "linux", "Linux", "x86_64"),
    "aarch64-linux": ("posix", "linux", "Linux", "aarch64"),
    "aarch64-darwin": ("posix", "darwin", "Darwin", "arm64"),
    "win_amd64": ("nt", "win32", "Windows", "AMD64"),
}


class Draw(random.Random):
    def number(self):
        return self.choice(["0", "1", "2", "3", "10", "12", "06", "2024"])

    def version(self, wild=False):
        text = self.choice(["", "", "", "", "0!", "1!"]) + ".".join(self.number() for _ in range(self.randint(1, 4)))
        text = self.choice(["", "", "", "v"]) + text
        if wild:
            return text + ".*"
        if self.random() < 0.25:
            text += self.choice(["", ".", "-", "_"]) + self.choice(["a", "b", "rc", "c", "alpha", "beta", "pre", "preview", "RC"])
            text += self.choice(["", ".", "-"]) + self.choice(["", "0", "1", "2"])
        if self.random() < 0.2:
            text += self.choice([".post1", "-1", ".r2", "post", ".rev0", "-post.1"])
        if self.random() < 0.15:
            text += self.choice([".dev0", "dev", "-dev1", "_dev2"])
        if self.random() < 0.2:
            text += "+" + self.choice(["cpu", "cu124", "cu126", "cpu.avx2", "cpu-avx2", "1", "01", "2.a", "cpu.1", "CU124"])
        return text

    def clause(self):
        op = self.choice(OPERATORS)
        return op + self.choice(["", "", " "]) + self.version(op in ("==", "!=") and self.random() < 0.4)

    def specifier(self):
        return self.choice([",", ", ", " ,"]).join(self.clause() for _ in range(self.choice([1, 1, 1, 2, 2, 3])))

    def atom(self):
        kind = self.randint(0, 7)
        quote = self.choice("'\"")
        if kind < 3:
            name = self.choice(["python_version", "python_full_version", "implementation_version"])
            value = self.choice(["3", "3.8", "3.12", "3.13", "3.13.0", "3.13.2", "3.14", "3.13.*", "2.7", "3.13.0rc1", "x"])
        elif kind == 3:
            name, value = "extra", self.choice(["test", "Test", "a_b", "A-B", "", "dev"])
        else:
            name = self.choice(["os_name", "sys_platform", "platform_system", "platform_machine", "os.name", "implementation_name",
                                "platform_python_implementation", "sys.platform", "platform.machine", "python_implementation"])
            value = self.choice(["posix", "nt", "linux", "darwin", "win32", "Linux", "Windows", "x86_64", "aarch64", "arm64",
                                 "CPython", "cpython", "PyPy", "linux darwin"])
        op = self.choice(["==", "==", "!=", "<=", ">=", "<", ">", "in", "not in"] + (["~=", "==="] if kind < 3 else []))
        sides = [name, quote + value + quote]
        if self.random() < 0.2:
            sides.reverse()
        gap = " " if op in ("in", "not in") else self.choice(["", " "])
        return sides[0] + gap + op + gap + sides[1]

    def marker(self, depth=0):
        if depth < 3 and self.random() < 0.4:
            parts = [self.marker(depth + 1) for _ in range(self.choice([2, 2, 3]))]
            text = parts[0]
            for p in parts[1:]:
                text += self.choice([" and ", " or "]) + p
            return "(" + text + ")" if self.random() < 0.6 else text
        return self.atom()

    def requirement(self):
        text = self.choice(["torch", "Torch", "nvidia-cublas-cu12", "zope.interface", "a__b", "x"])
        if self.random() < 0.3:
            text += self.choice(["[a]", "[a,b]", " [A_b, c-D]", "[]", "[ a ]"])
        if self.random() < 0.15:
            text += " @ " + self.choice(["file:///tmp/a.whl", "https://h/a.whl#sha256=0", "git+https://h/a.git@v1"]) + self.choice(["", " "])
        elif self.random() < 0.8:
            text += self.choice(["", " "]) + (self.specifier() if self.random() < 0.8 else "(" + self.specifier() + ")")
        if self.random() < 0.5:
            text += self.choice([";", "; ", " ; "]) + self.marker()
        return text

    def damaged(self, text):
        if self.random() > 0.15 or not text:
            return text
        at = self.randrange(len(text))
        return text[:at] + self.choice(["", "", ".", "*", "+", "=", "<", " ", "(", ")", "'", "a", "1", ",", "!", ";", "[", "-"]) + text[at + 1:]


def specifier_of(text, version):
    try:
        s = SpecifierSet(text)
    except InvalidSpecifier:
        return "bad"
    return "yes" if s.contains(version, prereleases=True) else "no"


def order_of(x, y):
    def version(v):
        try:
            return Version(v)
        except InvalidVersion:
            return None
    left, right = version(x), version(y)
    if left is None or right is None:
        return str((left is not None) - (right is not None))
    return str((left > right) - (left < right))


def marker_of(python, platform, extra, text):
    """Over the patch releases 0 to 99; None where packaging refuses to compare: there is no answer to agree with."""
    try:
        m = Marker(text)
    except InvalidMarker:
        return "bad"
    os_name, sys_platform, system, machine = PLATFORMS[platform]
    seen = set()
    for patch in range(100):
        full = f"{python}.{patch}"
        env = {"python_version": python, "python_full_version": full, "implementation_version": full, "os_name": os_name,
               "sys_platform": sys_platform, "platform_system": system, "platform_machine": machine, "extra": extra,
               "implementation_name": "cpython", "platform_python_implementation": "CPython"}
        try:
            seen.add(m.evaluate(env))
        except (UndefinedComparison, UndefinedEnvironmentName, KeyError):
            return None
    return "perhaps" if len(seen) > 1 else "always" if seen == {True} else "never"


def requirement_of(text):
    try:
        r = Requirement(text)
    except InvalidRequirement:
        return "bad"
    if r.name.endswith("_"):  # packaging takes it, PEP 508 does not
        return "bad"
    return (canonicalize_name(r.name).replace("-", "_"), {canonicalize_name(x).replace("-", "_") for x in r.extras}, r.specifier, r.url or "", r.marker)


def same_requirement(got, want):
    if got == "bad" or want == "bad":
        return got == want
    name, extras, specifier, url, marker = got.split("\t")
    return ((name, set(filter(None, extras.split(","))), SpecifierSet(specifier), url) == want[:4] and
            (str(Marker(marker)) if marker else "") == (str(want[4]) if want[4] else ""))


def draw(rng, n):
    for _ in range(n):
        yield "V", rng.damaged(rng.specifier()), rng.version()
        yield "C", rng.damaged(rng.version()), rng.version()
        yield "M", rng.choice(["3.8", "3.12", "3.13"]), rng.choice(sorted(PLATFORMS)), rng.choice(["", "test", "a-b"]), rng.damaged(rng.marker())
        yield "R", rng.damaged(rng.requirement())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("evaluate")
    p.add_argument("--cases", type=int, default=5000)
    p.add_argument("--seed", type=int, default=1)
    o = p.parse_args()
    cases = list(draw(Draw(o.seed), o.cases))
    out = subprocess.run([o.evaluate], input="".join("\t".join(c) + "\n" for c in cases), capture_output=True, text=True, check=True).stdout
    answers = out.split("\n")[:-1]
    assert len(answers) == len(cases), f"{len(answers)} answers to {len(cases)} questions"
    wrong = refused = 0
    for c, got in zip(cases, answers):
        want = {"V": specifier_of, "C": order_of, "M": marker_of, "R": requirement_of}[c[0]](*c[1:])
        refused += want is None
        if want is not None and not (same_requirement(got, want) if c[0] == "R" else got == want):
            wrong += 1
            print("DIFFERS", c, "packaging:", want, "ptbuild:", got)
    print(f"{len(cases)} cases, {refused} that packaging refuses to evaluate, {wrong} disagreements")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
