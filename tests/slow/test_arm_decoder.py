#!/usr/bin/env python3
"""The AArch64 decoder (profiles/extensions.yaml) compared with LLVM's, word by word, over the code of libraries and over random words.

usage: test_arm_decoder.py DECODE_WORDS ROOT|--random=COUNT [FILE...]

DECODE_WORDS is the program made of decode_words.c. ROOT is a root file system of aarch64 ('ptbuild world make debian13 --platform aarch64-linux --copy ROOT'); without any FILE its libtorch_cpu and five system libraries are read.

For each different word of the code, ptbuild says which extension it needs, or none. LLVM must decode the word with this extension and what it implies, and not without it.
A word that LLVM cannot decode at all is no instruction: data, or newer than LLVM. It counts as a disagreement where ptbuild takes it for one that needs an extension.
Of random words these are no disagreement: nobody's code has them.
The last line has the number of disagreements; the exit status is 1 unless it is 0.
"""
import collections
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
PROFILES = os.path.join(HERE, "../../profiles")
LIBRARIES = ("libtorch_cpu.so", "libc.so.6", "libm.so.6", "libcrypto.so.3", "libopenblas.so.0", "libstdc++.so.6")
# What LLVM calls the extensions of the table, less what it counts as implied itself. SHA512 and SHA3 are one feature there, SM3 and SM4 as well, and MTE has none here: GCC emits none of it without a flag.
FEATURES = {
    "crc32": "crc", "atomics": "lse", "asimdrdm": "rdm", "aes": "aes", "sha2": "sha2", "sha512": "sha3", "sha3": "sha3", "sm3": "sm4", "sm4": "sm4",
    "fphp": "fullfp16", "asimdhp": "fullfp16", "asimdfhm": "fp16fml", "asimddp": "dotprod", "fcma": "complxnum", "jscvt": "jsconv", "lrcpc": "rcpc",
    "ilrcpc": "rcpc-immo", "flagm": "flagm", "sb": "sb", "frint": "fptoint", "rng": "rand", "paca": "pauth", "i8mm": "i8mm", "bf16": "bf16",
    "sve": "sve", "sve2": "sve2", "svei8mm": "sve,+i8mm", "svebf16": "sve,+bf16",
    "svef32mm": "sve,+f32mm", "svef64mm": "sve,+f64mm", "sveaes": "sve2-aes", "svebitperm": "sve2-bitperm", "svesha3": "sve2-sha3", "svesm4": "sve2-sm4", "sme": "sme,+sme-f64,+sme-i64",
}
# With less than all that is needed LLVM must refuse the word.
LESS = {"sve2": ["sve"], "svei8mm": ["sve", "i8mm"], "svebf16": ["sve", "bf16"], "ilrcpc": ["rcpc"], "asimdfhm": ["fullfp16"],
        "svef32mm": ["sve"], "svef64mm": ["sve"], "sveaes": ["sve2"], "svebitperm": ["sve2"], "svesha3": ["sve2"], "svesm4": ["sve2"], "sme": ["sve2"]}
# Reading a system register is one instruction to LLVM, whatever its number.
LESS["rng"] = []
# Data in the code of libcrypto: constants of SM4, which an object's symbol does not cover.
DATA = {"64044626", "646b7279", "a0a7aeb5", "c0c7ced5", "c10bb67c", "c1d21300", "e0e7eef5"}
# Instructions that LLVM 14 does not know: mask, value, and what needs them.
NEWER = [(0xFFA0F800, 0x04205800, "sme"), (0xFFFFF800, 0x04BF5800, "sme")]


def is_newer(word, extension):
    return any(int(word, 16) & mask == value and extension == needs for mask, value, needs in NEWER)


def attributes(features):
    return ["-mattr=+" + features] if features else []


def undecoded(llvm, words, features):
    """Those of these words that LLVM does not decode with these features beyond the baseline."""
    if not words:
        return set()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
        f.writelines(" ".join(f"0x{b:02x}" for b in int(w, 16).to_bytes(4, "little")) + "\n" for w in words)
        f.flush()
        out = subprocess.run([llvm, "--disassemble", "--triple=aarch64", *attributes(features), f.name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return {words[int(n) - 1] for n in re.findall(r":(\d+):\d+: warning: invalid instruction encoding", out.stderr)}


def random_words(count):
    """Half of them in the space of SVE."""
    draw = random.Random(1).getrandbits
    words = {draw(32) for _ in range(count // 2)} | {draw(32) & ~0x1E000000 | 0x04000000 for _ in range(count // 2)}
    return "".join(f"{w:08x}\n" for w in words)


def read_words(program, files, words):
    """Words by what they need; how often each occurs, and what the table calls it."""
    needs, count, what = collections.defaultdict(list), {}, {}
    done = subprocess.run([program, PROFILES, *files], input=words, stdout=subprocess.PIPE, text=True, check=True)
    for line in done.stdout.splitlines():
        word, n, extension, name = line.split(" ", 3)
        needs[extension].append(word)
        count[word], what[word] = int(n), name
    return needs, count, what


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, root, *files = sys.argv[1:]
    llvm = shutil.which("llvm-mc") or max(glob.glob("/usr/bin/llvm-mc-*"), default=None)
    if not llvm:
        sys.exit("NOT RUN: there is no llvm-mc (Debian's package llvm)")
    drawn = root.startswith("--random=")
    files = ["-"] if drawn else files or [os.path.join(root, "usr/lib/aarch64-linux-gnu", name) for name in LIBRARIES]
    needs, count, what = read_words(program, files, random_words(int(root[9:])) if drawn else "")
    every = ",+".join(sorted(set(FEATURES.values())))
    wrong = []  # word, ptbuild's, what LLVM says
    for extension, words in sorted(needs.items()):
        print(f"{extension}: {len(words)} words, {sum(count[w] for w in words)} times", flush=True)
        if extension == "-":
            refused = undecoded(llvm, words, "")
            unknown = undecoded(llvm, sorted(refused), every)
            wrong += [(w, "-", "needs more") for w in refused - unknown]
            print(f"no instructions for LLVM: {len(unknown)} words, {sum(count[w] for w in unknown)} times")
            continue
        features = [FEATURES[x] for x in extension.split("+")]
        refused = {w for w in undecoded(llvm, words, ",+".join(features)) if not is_newer(w, extension)}
        unknown = undecoded(llvm, sorted(refused), every)
        none = set() if drawn else unknown - DATA
        wrong += [(w, extension, "needs more") for w in refused - unknown] + [(w, extension, "is no instruction") for w in none]
        rest = [w for w in words if w not in refused and not is_newer(w, extension)]
        for less in LESS.get(extension, features if len(features) > 1 else [""]):
            wrong += [(w, extension, "needs less: " + (less or "nothing")) for w in set(rest) - undecoded(llvm, rest, less)]
    kinds = collections.Counter((what[w], extension, verdict) for w, extension, verdict in wrong)
    for (name, extension, verdict), n in sorted(kinds.items(), key=str):
        some = sorted(w for w, x, v in wrong if (what[w], x, v) == (name, extension, verdict))
        print(f"ptbuild: {extension} ({name or 'no row'}); LLVM: {verdict}: {n} words, {sum(count[w] for w in some)} times, as {' '.join(some[:4])}")
    print(f"{len(count)} different words of {sum(count.values())} in {len(files)} files, {len(wrong)} disagreements")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
