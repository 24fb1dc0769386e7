#!/usr/bin/python3
"""Wheels that somebody made to do harm, one lie each: in the archive, its names, RECORD and metadata, in ELF files, in GPU code. `verify` names the lie; whatever it meets, it ends soon with its own exit code, leaves nothing
behind, writes nowhere else, and does not say that this machine can use what is damaged. As root every case runs as root and as nobody.

    test_wheels.py PTBUILD [CASE...]
"""

import base64
import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

LIMIT_S = 600
NOBODY = 65534
NAME = "a-1.0-py3-none-manylinux_2_17_x86_64.whl"
INFO = "a-1.0.dist-info"
GOOD = {"a/x.py": b"x = 1\n" * 50}


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def wheel(files, metadata=b"", record=None, method=zipfile.ZIP_DEFLATED, head=b"Metadata-Version: 2.1\nName: a\nVersion: 1.0\n"):
    files = dict(files)
    files.setdefault(f"{INFO}/METADATA", head + metadata)
    files.setdefault(f"{INFO}/WHEEL", b"Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_17_x86_64\n")
    rows = "".join(f"{n},{digest(d)},{len(d)}\n" for n, d in files.items()) + f"{INFO}/RECORD,,\n"
    files[f"{INFO}/RECORD"] = rows.encode() if record is None else record
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            info.compress_type, info.external_attr, info.create_system = method, 0o100644 << 16, 3
            z.writestr(info, data)
    return bytearray(out.getvalue())


def end_of(b):
    return b.rfind(b"PK\5\6")


def rows_of(b):
    """Where the rows of the central directory begin."""
    at, found = struct.unpack_from("<I", b, end_of(b) + 16)[0], []
    while b[at : at + 4] == b"PK\1\2":
        found.append(at)
        at += 46 + sum(struct.unpack_from("<HHH", b, at + 28))
    return found


def put(kind, at, value, where=None):
    """Writes a number into the archive; `where`: of the central directory's first row, or its end."""

    def change(b):
        base = {None: 0, "row": rows_of(b)[0], "end": end_of(b)}[where]
        struct.pack_into("<" + kind, b, base + at, value)
        return b

    return change


def extra(tag, value, central=False, size=None):
    """An extra field for the first file."""

    def change(b):
        more = struct.pack("<HH", tag, len(value) if size is None else size) + value
        rows, end = rows_of(b), end_of(b)
        if central:
            at = rows[0]
            names, old = struct.unpack_from("<HH", b, at + 28)
            struct.pack_into("<H", b, at + 30, old + len(more))
            struct.pack_into("<I", b, end + 12, struct.unpack_from("<I", b, end + 12)[0] + len(more))
            b[at + 46 + names + old : at + 46 + names + old] = more
            return b
        names, old = struct.unpack_from("<HH", b, 26)
        struct.pack_into("<H", b, 28, old + len(more))
        for at in rows[1:]:
            struct.pack_into("<I", b, at + 42, struct.unpack_from("<I", b, at + 42)[0] + len(more))
        struct.pack_into("<I", b, end + 16, struct.unpack_from("<I", b, end + 16)[0] + len(more))
        b[30 + names + old : 30 + names + old] = more
        return b

    return change


def both(*changes):
    def change(b):
        for c in changes:
            b = c(b)
        return b

    return change


def library(source="int f(void) { return 1; }", *flags):
    with tempfile.TemporaryDirectory() as top:
        with open(os.path.join(top, "l.c"), "w") as f:
            f.write(source)
        subprocess.run(["cc", "-shared", "-fPIC", "-nostdlib", "-Wl,-z,noexecstack", *flags, "-o", "l.so", "l.c"], cwd=top, check=True)
        with open(os.path.join(top, "l.so"), "rb") as f:
            return bytearray(f.read())


def segments(b, kind):
    start, count = struct.unpack_from("<Q", b, 32)[0], struct.unpack_from("<H", b, 56)[0]
    return [start + 56 * i for i in range(count) if struct.unpack_from("<I", b, start + 56 * i)[0] == kind]


def dynamic(b, tag, value):
    """The first dynamic entry of that tag gets another value."""
    at, size = struct.unpack_from("<Q", b, segments(b, 2)[0] + 8)[0], struct.unpack_from("<Q", b, segments(b, 2)[0] + 32)[0]
    for i in range(at, at + size, 16):
        if struct.unpack_from("<q", b, i)[0] == tag:
            struct.pack_into("<Q", b, i + 8, value)
            return
    raise AssertionError(f"no dynamic entry {tag}")


def elf(change, source="int f(void) { return 1; }", *flags):
    b = library(source, *flags)
    change(b)
    return wheel({**GOOD, "a/l.so": bytes(b)})


def at_segment(kind, offset, value, index=-1):
    return lambda b: struct.pack_into("<Q", b, segments(b, kind)[index] + offset, value)


def hash_chain(b):
    """Buckets that lead far beyond the table."""
    at, size = struct.unpack_from("<Q", b, segments(b, 2)[0] + 8)[0], struct.unpack_from("<Q", b, segments(b, 2)[0] + 32)[0]
    table = next(struct.unpack_from("<Q", b, i + 8)[0] for i in range(at, at + size, 16) if struct.unpack_from("<q", b, i)[0] == 0x6FFFFEF5)
    struct.pack_into("<I", b, table, 0xFFFFFFFF)


def fatbin(header):
    return elf(lambda b: None, f'__asm__(".section .nv_fatbin,\\"a\\"\\n.byte {",".join(map(str, header))}\\n.previous");')


def named(name):
    return lambda: wheel({**GOOD, name: b"y = 1\n"})


MAGIC = list(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 0xFFFFFFFFFFFFFFF0))
UNICODE = b"\1" + struct.pack("<I", zlib.crc32(b"a/x.py")) + b"a/y.py"

# name: (the bytes, the rule, words of the finding); a rule of None: an error before any rule.
CASES = {
    # the archive
    "zip_local_name": (lambda: both(lambda b: b.__setitem__(slice(30, 36), b"a/y.py") or b)(wheel(GOOD)), "zip", "different name"),
    "zip_local_size": (lambda: put("I", 22, 999)(wheel(GOOD)), "zip", "size or checksum"),
    "zip_local_crc": (lambda: put("I", 14, 1)(wheel(GOOD)), "zip", "size or checksum"),
    "zip_local_method": (lambda: put("H", 8, 99)(wheel(GOOD)), "zip", "method"),
    "zip_both_crcs": (lambda: both(put("I", 14, 7), put("I", 16, 7, "row"))(wheel(GOOD)), "zip", "wrong checksum"),
    "zip_encrypted": (lambda: both(put("H", 6, 1), put("H", 8, 1, "row"))(wheel(GOOD)), "zip", "encrypted"),
    "zip_behind": (lambda: wheel(GOOD) + b"PK\3\4 and more", "zip", "extra bytes"),
    "zip_before": (lambda: b"#!/bin/sh\nexec rm -rf .\n" + wheel(GOOD), "zip", "central directory"),
    "zip_cut": (lambda: wheel(GOOD)[:300], "zip", "no end record"),
    "zip_disks": (lambda: put("H", 4, 1, "end")(wheel(GOOD)), "zip", "more than one disk"),
    "zip_count": (lambda: both(put("H", 8, 99, "end"), put("H", 10, 99, "end"))(wheel(GOOD)), "zip", "more entries"),
    "zip_fewer": (lambda: both(put("H", 8, 1, "end"), put("H", 10, 1, "end"))(wheel(GOOD)), "zip", ""),
    "zip_comment": (lambda: put("H", 20, 4, "end")(wheel(GOOD)) + b"PK\5\6", "zip", ""),
    "zip_bzip2": (lambda: wheel(GOOD, method=zipfile.ZIP_BZIP2), "zip", "compression method"),
    "zip_lzma": (lambda: wheel(GOOD, method=zipfile.ZIP_LZMA), "zip", "compression method"),
    "zip_unicode_name": (lambda: extra(0x7075, UNICODE)(wheel(GOOD)), "zip", "second name"),
    "zip_unicode_name_central": (lambda: extra(0x7075, UNICODE, True)(wheel(GOOD)), "zip", "second name"),
    "zip_zip64_central": (lambda: extra(1, struct.pack("<Q", 99), True)(wheel(GOOD)), "zip", "superfluous zip64"),
    "zip_zip64_local": (lambda: extra(1, struct.pack("<QQ", 1 << 60, 1 << 60))(wheel(GOOD)), "zip", "superfluous zip64"),
    "zip_extra_cut": (lambda: extra(0x5455, b"\1", size=5)(wheel(GOOD)), "zip", "truncated extra"),
    "zip_says_huge": (lambda: both(put("I", 22, 0xFFFFFFF0), put("I", 24, 0xFFFFFFF0, "row"))(wheel(GOOD)), "zip", ""),
    "zip_says_small": (lambda: both(put("I", 22, 3), put("I", 24, 3, "row"))(wheel(GOOD)), "zip", "damaged: it inflates to more than its header says"),
    "zip_overlap": (lambda: put("I", 42, 0, "row")(both(lambda b: struct.pack_into("<I", b, rows_of(b)[1] + 42, 0) or b)(wheel(GOOD))), "zip", ""),
    "zip_offset": (lambda: put("I", 42, 0x7FFFFFFF, "row")(wheel(GOOD)), "zip", ""),
    "zip_empty": (lambda: b"", "zip", "too short"),
    "zip_html": (lambda: b"<!DOCTYPE html>" + b" " * 400, "zip", "no end record"),
    "zip_end_alone": (lambda: b"PK\5\6" + bytes(18), "metadata", "0 .dist-info"),
    # names
    "name_dot": (named("./a/y.py"), "zip", "unsafe name"),
    "name_inner_parent": (named("a/../../y.py"), "zip", "unsafe name"),
    "name_double_slash": (named("a//y.py"), "zip", "unsafe name"),
    "name_file_as_directory": (lambda: wheel({**GOOD, "a/x.py/y": b"1"}), "zip", "a file and a directory"),
    "name_newline": (named("a/y\n.py"), "zip", "control bytes"),
    "name_long_path": (named("d/" * 30000 + "y.py"), None, ""),
    # RECORD and metadata
    "record_escape": (lambda: wheel(GOOD, record=f"../../etc/passwd,{digest(b'')},0\n".encode()), "record", "not a path of a file in the wheel"),
    "record_quotes": (lambda: wheel(GOOD, record=b'"' * 100001), "record", "quote"),
    "record_many_rows": (lambda: wheel(GOOD, record=b"".join(b"f%d,,\n" % i for i in range(3000))), "record", "listed in RECORD but not in the wheel"),
    "record_huge_size": (lambda: wheel(GOOD, record=f"a/x.py,{digest(GOOD['a/x.py'])},{'9' * 40}\n".encode()), "record", "size is not a number"),
    "record_zero_byte": (lambda: wheel(GOOD, record=b"a/x.py\0,,\n"), "record", ""),
    "record_digest_of_many": (lambda: wheel(GOOD, record=b"a/x.py,sha256=" + b"A" * 100000 + b",300\n"), "record", "digest"),
    "record_twice": (lambda: wheel(GOOD, record=(f"a/x.py,{digest(GOOD['a/x.py'])},300\n" * 2).encode()), "record", "listed twice"),
    "metadata_two_infos": (lambda: wheel({**GOOD, "b-1.0.dist-info/METADATA": b"Name: b\n"}), "metadata", "2 .dist-info"),
    "metadata_zero_byte": (lambda: wheel(GOOD, head=b"Metadata-Version: 2.1\nName: a\0b\nVersion: 1.0\n"), "metadata", ""),
    "metadata_no_colon": (lambda: wheel(GOOD, head=b"x" * 100000 + b"\n"), "metadata", ""),
    "metadata_long_version": (lambda: wheel(GOOD, head=b"Metadata-Version: 2.1\nName: a\nVersion: " + b"1." * 50000 + b"0\n"), "metadata", "Version"),
    "metadata_folds": (lambda: wheel(GOOD, head=b"Name: a\n" + b" b\n" * 50000), "metadata", ""),
    # ELF
    "elf_segments_beyond": (lambda: elf(lambda b: struct.pack_into("<H", b, 56, 0xFFFE)), "elf", "leave the file"),
    "elf_segment_beyond": (lambda: elf(at_segment(1, 32, 1 << 40)), "elf", "leaves the file"),
    "elf_segment_wraps": (lambda: elf(at_segment(1, 16, 0xFFFFFFFFFFFFF000)), "elf", ""),
    "elf_dynamic_elsewhere": (lambda: elf(at_segment(2, 16, 0x7FFFFFFFFFFF)), "elf", "not what is loaded"),
    "elf_alignment": (lambda: elf(at_segment(1, 48, 0x3000)), "elf", "power of two"),
    "elf_strings_beyond": (lambda: elf(lambda b: dynamic(b, 10, 1 << 62)), "elf", "leaves its segment"),
    "elf_strings_nowhere": (lambda: elf(lambda b: dynamic(b, 5, 1 << 62)), "elf", "in no segment"),
    "elf_symbols_nowhere": (lambda: elf(lambda b: dynamic(b, 6, 1 << 62)), "elf", "in no segment"),
    "elf_hash_chain": (lambda: elf(hash_chain), "elf", "hash table"),
    "elf_soname_beyond": (lambda: elf(lambda b: dynamic(b, 14, 1 << 40), "int f(void) { return 1; }", "-Wl,-soname,l.so"), "elf", "string index"),
    "elf_other_system": (lambda: elf(lambda b: b.__setitem__(7, 9)), "elf", "operating system 9"),
    "elf_header_alone": (lambda: wheel({**GOOD, "a/l.so": bytes(library()[:64])}), "elf", ""),
    "elf_magic_alone": (lambda: wheel({**GOOD, "a/l.so": b"\x7fELF"}), "elf", ""),
    "elf_path_needed": (lambda: elf(lambda b: None, "int f(void) { return 1; }", "-Wl,-rpath,/etc/ld"), None, "looks for libraries in '/etc/ld'"),
    "elf_sections_beyond": (lambda: elf(lambda b: struct.pack_into("<Q", b, 40, (1 << 64) - 64)), "elf", "section headers"),
    # GPU code
    "fatbin_huge": (lambda: fatbin(MAGIC), "gpu-code", ""),
    "fatbin_cut": (lambda: fatbin(MAGIC[:9]), "gpu-code", ""),
}


def judge(program, top, data, user):
    path, tmp = os.path.join(top, NAME), os.path.join(top, "tmp")
    os.mkdir(tmp)
    with open(path, "wb") as f:
        f.write(data)
    for p in (top, tmp, path):
        os.chown(p, user, -1)
    env = {**os.environ, "TMPDIR": tmp, "HOME": tmp}
    r = subprocess.run([program, "verify", "--json", path], capture_output=True, text=True, errors="replace", timeout=LIMIT_S, env=env, cwd=top, **({"user": user} if user != os.getuid() else {}))
    said = json.loads(r.stdout)
    left = sorted(os.path.relpath(os.path.join(d, n), top) for d, dirs, names in os.walk(top) for n in [*dirs, *names])
    assert left == sorted([NAME, "tmp"]), f"left behind: {left}"
    with open(path, "rb") as f:
        assert f.read() == data, "the wheel was changed"
    assert "Sanitizer" not in r.stderr and "runtime error" not in r.stderr, r.stderr[-2000:]
    return r.returncode, said


def one(program, name, data, user):
    _, rule, words = CASES[name]
    with tempfile.TemporaryDirectory() as top:
        code, said = judge(program, top, data, user)
    report = said["wheels"][0]
    lines = [f"{f['level']}[{f['rule']}] {f['file'][:100]}: {f['text'][:300]}" for f in report["findings"]]
    if rule:
        assert code == 5, f"exit {code}"
        assert any(line.startswith(f"error[{rule}]") and words in line for line in lines), "\n".join(lines)
    else:
        assert any(words in line for line in lines), "\n".join(lines)
    if rule in ("zip", "record", "metadata", "elf"):
        assert report["this_machine"]["runs"] != "yes", report["this_machine"]


def nothing_is_made(program, data):
    """Commands that write another wheel refuse it, and write none."""
    for words in (("slim", "--gpu", "sm90"), ("repack", "--metadata-rev", "2")):
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, NAME)
            with open(path, "wb") as f:
                f.write(data)
            r = subprocess.run([program, *words, path, "--out", os.path.join(top, "out")], capture_output=True, text=True, errors="replace", timeout=LIMIT_S, cwd=top)
            left = [n for folder, _, names in os.walk(top) for n in names if n != NAME]
            assert r.returncode in (5, 7) and r.stderr.count("ptbuild: error: ") == 1 and not left, (words[0], r.returncode, left, r.stderr[-500:])
            with open(path, "rb") as f:
                assert f.read() == data, "the wheel was changed"


def may_run(program):
    """Whether nobody reaches the program, which may lie in a home directory."""
    try:
        return subprocess.run([program, "--version"], user=NOBODY, capture_output=True).returncode == 0
    except OSError:
        print("as root alone: nobody cannot run the program")
        return False


def main():
    program, only = os.path.abspath(sys.argv[1]), sys.argv[2:]
    users = [os.getuid()] + ([NOBODY] if os.getuid() == 0 and may_run(program) else [])
    failed, passed = [], 0
    for name in CASES:
        if only and name not in only:
            continue
        data = bytes(CASES[name][0]())
        for user in users:
            try:
                one(program, name, data, user)
                if user == os.getuid():
                    nothing_is_made(program, data)
                passed += 1
            except (AssertionError, KeyError, ValueError, OSError, subprocess.SubprocessError) as ex:
                failed.append(name)
                print(f"[  FAILED  ] {name} as {user}: {type(ex).__name__}: {str(ex)[:1500]}", flush=True)
    print(f"[  PASSED  ] {passed} test(s).")
    if failed:
        print(f"[  FAILED  ] {len(failed)} test(s): {' '.join(failed)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
