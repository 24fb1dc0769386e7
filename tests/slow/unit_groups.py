#!/usr/bin/env python3
"""Whether files that are compiled in a group (patches/pytorch/*/unit-groups.patch) call what they call when each is compiled alone.

usage: in a tree that is configured with USE_UNIT_GROUPS=OFF, with its generated sources:
       ptbuild shell VARIANT -- python3 unit_groups.py [GROUP...]

Compiles each file alone and each group, without optimization, and compares of each function and table what its relocations refer to: a neighbour's declarations
may have made a call go elsewhere. At -O0 what a call refers to is in the object as it is in the source, but for landing pads, of which there are fewer where the
compiler has seen that a callee throws nothing: destructors are left out of the count. A planted group, known to move a call, must be found. Some 1,100 units of
6 s, one for each processor at a time.
"""
import collections
import json
import multiprocessing
import os
import pickle
import re
import shlex
import struct
import subprocess
import sys
import tempfile

SOURCE = "/ptbuild/src"
TARGETS = ("torch_cpu", "torch_python")
PLANTED = ("torch_cpu", "planted", ["torch/csrc/jit/frontend/ir_emitter.cpp", "torch/csrc/jit/passes/fixup_trace_scope_blocks.cpp"])
AFTER = "#undef TORCH_ASSERT_ONLY_METHOD_OPERATORS\n#undef TORCH_ASSERT_NO_OPERATORS\n"
DROPPED = re.compile(r"-O[0-3sg]|-g\d?|-Winvalid-pch|-Werror.*|-flto.*|-D_FORTIFY_SOURCE.*")
PADS = re.compile(rb"D#Ev$|^_Unwind_Resume$|^_ZdlPv|^__cxa_(free_exception|guard_abort|end_catch|begin_catch|rethrow)$|^_ZSt#terminatev$|^__clang_call_terminate$")
INITIAL = re.compile(rb"_GLOBAL__sub_|__static_initialization|__tls_init|^\.text\.(startup|exit)|^\.init_array")
SECTION = struct.Struct("<IIQQQQIIQQ")


def groups_of(path):
    groups = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith(" "):
                groups[-1][2].append(line.strip())
            elif not line.startswith("#") and line.strip():
                groups.append((*line.split(), []))
    return groups


def unoptimized(command, header):
    """The command's options, without what it reads and writes, with this precompiled header in the place of its own."""
    words = shlex.split(command)
    words = words[1:] if "ccache" in words[0] else words
    kept, skip = [], 0
    for word, following in zip(words, words[1:] + [""]):
        if skip:
            skip = 0
        elif word in ("-o", "-c") or (word == "-include" and following.endswith("cmake_pch.hxx")):
            skip = 1
        elif not DROPPED.fullmatch(word):
            kept.append(word)
    return kept + ["-O0", "-w", "-ffunction-sections", "-fdata-sections"] + (["-include", header] if header else [])


def plain(name):
    """A name without what differs from one compilation to the next: counters, and whether it is told as a symbol or as its section."""
    name = re.sub(rb"\d+", b"#", name)
    if name.startswith((b".L", b".rodata", b".data.rel.ro.local", b".data.rel.ro", b".bss", b".data")):
        return b".data"
    if INITIAL.search(name):
        return b".initial"
    return name[6:] if name.startswith(b".text.") else name


def references(path):
    """Of each section that is a function or a table: whether it is COMDAT, and what its relocations refer to, as a set of sorted lists."""
    with open(path, "rb") as f:
        data = f.read()
    start, count, strings = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 60)
    first = SECTION.unpack_from(data, start)
    count, strings = count or first[5], first[6] if strings == 0xFFFF else strings
    sections = list(SECTION.iter_unpack(data[start : start + 64 * count]))

    def text(at):
        return data[at : data.index(b"\0", at)]

    names = [text(sections[strings][4] + s[0]) for s in sections]
    table = next(s for s in sections if s[1] == 2)
    symbols = list(struct.iter_unpack("<IBBHQQ", data[table[4] : table[4] + table[5]]))
    wide = next((struct.unpack_from(f"<{s[5] // 4}I", data, s[4]) for s in sections if s[1] == 18), None)
    known = {}

    def target(i):
        if i not in known:
            name, info, _, index, _, _ = symbols[i]
            known[i] = plain(names[wide[i] if index == 0xFFFF else index] if info & 15 == 3 else text(sections[table[6]][4] + name))
        return known[i]

    found = {}
    for s in sections:
        name = names[s[7]] if s[1] == 4 else b""
        if not name.startswith((b".text", b".data", b".rodata", b".init_array", b".tdata")):
            continue
        refers = sorted(t for t in (target(i >> 32) for _, i, _ in struct.iter_unpack("<QQq", data[s[4] : s[4] + s[5]])) if not PADS.search(t))
        key = re.sub(rb"\d+", b"#", name)
        if INITIAL.search(key) or key in (b".text", b".data", b".rodata", b".tdata", b".data.rel.local", b".data.rel.ro.local"):
            found.setdefault(b"what runs first", (False, set()))[1].update((t,) for t in refers)
        else:
            found.setdefault(key, (bool(sections[s[7]][2] & 0x200), set()))[1].add(tuple(refers))
    return found


def compiled(job):
    name, options, directory, source = job
    r = subprocess.run([*options, "-fdiagnostics-color=never", "-c", source, "-o", name + ".o"], cwd=directory, capture_output=True, text=True)
    if r.returncode:
        return f"{source} does not compile: {r.stderr[:500]}"
    with open(name, "wb") as f:
        pickle.dump(references(name + ".o"), f, -1)
    os.unlink(name + ".o")
    return ""


def differences(group, work):
    """(file, section, what it refers to alone, what in the group) of those that differ; the number of sections that were compared."""
    _, name, files = group
    with open(f"{work}/{name}", "rb") as f:
        together = pickle.load(f)
    alone, owners, comdat, found = collections.defaultdict(set), collections.defaultdict(list), {}, []
    for i, file in enumerate(files):
        with open(f"{work}/{name}-{i}", "rb") as f:
            for key, (folded, lists) in pickle.load(f).items():
                alone[key] |= lists
                owners[key].append((file, lists))
                comdat[key] = folded
    for key in set(alone) | set(together):
        a, b = alone.get(key, set()), together.get(key, (False, set()))[1]
        # One instance of several that are alike is kept, and one that nothing needs any more is not made.
        if a == b or (comdat.get(key) and b <= a):
            continue
        which = [f for f, lists in owners.get(key, []) if not lists <= b] or [f for f, _ in owners.get(key, [])] or ["?"]
        left, right = (collections.Counter(t for x in s for t in x) for s in (a - b, b - a))
        found += [(f, key.decode(), left - right, right - left) for f in which]
    return found, len(alone)


def main():
    wanted = set(sys.argv[1:])
    groups = [g for g in groups_of(f"{SOURCE}/cmake/unit_groups.txt") if not wanted or g[1] in wanted] + [PLANTED]
    with open(f"{SOURCE}/build/compile_commands.json", encoding="utf-8") as f:
        commands = {(t, c["file"].removeprefix(SOURCE + "/")): c for c in json.load(f) for t in TARGETS if f"/{t}.dir/" in c["output"]}
    with tempfile.TemporaryDirectory() as work, multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
        headers = {}
        for t in {g[0] for g in groups}:
            c = next(v for (target, _), v in commands.items() if target == t)
            own = next(w for w in shlex.split(c["command"]) if w.endswith("cmake_pch.hxx"))
            headers[t] = f"{work}/{t}/cmake_pch.hxx"
            os.mkdir(f"{work}/{t}")
            with open(own, encoding="utf-8") as f, open(headers[t], "w", encoding="utf-8") as g:
                g.write(f.read())
            subprocess.run([*unoptimized(c["command"], None), "-x", "c++-header", headers[t], "-o", headers[t] + ".gch"], cwd=c["directory"], check=True)
        jobs = []
        for t, name, files in groups:
            c = commands[t, files[0]]
            with open(f"{work}/{name}.cpp", "w", encoding="utf-8") as f:
                f.writelines(f'#include "{SOURCE}/{file}"\n{AFTER}' for file in files)
            jobs.append((f"{work}/{name}", unoptimized(c["command"], headers[t]), c["directory"], f"{work}/{name}.cpp"))
            jobs += [(f"{work}/{name}-{i}", unoptimized(commands[t, file]["command"], headers[t]), c["directory"], f"{SOURCE}/{file}") for i, file in enumerate(files)]
        failed = [e for e in pool.imap_unordered(compiled, jobs) if e]
        if failed:
            sys.exit("\n".join(failed))
        results = pool.starmap(differences, [(g, work) for g in groups])
    for (_, name, _), (found, _) in zip(groups, results):
        for file, key, left, right in found:
            print(f"{name} {file}: {key}\n    alone: {dict(left)}\n    in the group: {dict(right)}")
    moved = sum(bool(found) for found, _ in results[:-1])
    print(f"{len(groups) - 1} groups of {sum(len(g[2]) for g in groups[:-1])} files, {sum(n for _, n in results)} functions and tables: {moved} groups differ")
    if not results[-1][0]:
        sys.exit("the call that the planted group moves was not found")
    sys.exit(moved != 0)


if __name__ == "__main__":
    main()
