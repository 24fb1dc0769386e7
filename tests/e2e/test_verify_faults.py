"""Verifying a wheel on a disk that cannot be read: each read fails once, and none of those may pass for a fault of the wheel."""

import json
import os
import subprocess
import sys
import zipfile

from toy import main, sanitizers
from wheelsite import clean_env, make_wheel

SHIM = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "tests", "libfaulty.so")


def verify(world, wheel, **settings):
    env = clean_env() | {"LD_PRELOAD": " ".join([*sanitizers(world.ptbuild), SHIM]), "FAULTY_UNDER": f"{world.path('wheels')}:{world.path('tmp')}"}
    env |= {"FAULTY_CALLS": "read,map", "TMPDIR": world.path("tmp"), **{f"FAULTY_{k.upper()}": str(v) for k, v in settings.items()}}
    return subprocess.run([world.ptbuild, "verify", "--profiles", world.profiles, wheel], capture_output=True, text=True, env=env, timeout=120)


def wheel_and_reads(world):
    for name in ("wheels", "tmp"):
        os.makedirs(world.path(name), exist_ok=True)
    wheel, count = make_wheel(world.path("wheels"), "torch", "2.6.0+cpu.avx2"), world.path("count")
    fine = verify(world, wheel, count=count)
    assert fine.returncode == 0, fine.stderr + fine.stdout
    with open(count) as f:
        calls = int(f.read())
    assert calls >= 10, calls
    return wheel, calls, fine.stdout


def test_a_disk_that_cannot_be_read_is_no_fault_of_the_wheel(world):
    wheel, calls, _ = wheel_and_reads(world)
    for at in range(1, calls + 1):
        result = verify(world, wheel, at=at, errno=5, **{"for": 1})
        assert result.returncode == 8 and "Input/output error" in result.stderr, (at, result.returncode, result.stdout, result.stderr)
        assert os.listdir(world.path("tmp")) == [], at


def test_reads_that_end_early_are_read_on(world):
    wheel, calls, said = wheel_and_reads(world)
    for at in range(1, calls + 1):
        result = verify(world, wheel, at=at, errno=0, **{"for": 1})
        assert result.returncode == 0 and result.stdout == said, (at, result.returncode, result.stdout, result.stderr)


def test_a_decoder_newer_than_the_tables_is_an_error_of_ptbuild(world):
    """A set of the decoder without a row: no verdict, on a good wheel and on a bad one."""
    good, bad = wheel_and_reads(world)[0], world.path("wheels", "other-1.0-py3-none-any.whl")
    with open(bad, "w") as f:
        f.write("no archive")
    assert verify(world, bad).returncode == 5
    world.change("extensions.yaml", r"\bCMOV, ", "")
    for wheel in (good, bad):
        for options in ([], ["--json"], ["--ci"]):
            done = subprocess.run([world.ptbuild, "verify", "--profiles", world.profiles, wheel, *options], capture_output=True, text=True, timeout=120)
            assert done.returncode == 3, (wheel, options, done)
            # The error is a document where documents are asked for.
            assert (list(json.loads(done.stdout)) == ["schema", "error"]) if "--json" in options else done.stdout == "", done
            assert "has no row for the decoder's set 'CMOV'" in done.stderr and "an error of ptbuild, not of a wheel" in done.stderr, done.stderr


def test_an_environment_has_what_a_wheel_needs(world):
    site, work = world.path("env/lib/python3.13/site-packages"), world.path("wheels")
    for name in (f"{site}/f", f"{site}/F_Lib-1.dist-info", work):
        os.makedirs(name, exist_ok=True)
    with open(f"{site}/F_Lib-1.dist-info/METADATA", "w") as f:
        f.write("Name: F.Lib\n")

    def library(path, text, *flags):
        subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-o", path, "-xc", "-", "-xnone", *flags], input=text, text=True, check=True)

    library(f"{site}/f/libf.so.1", "int f(void) { return 1; }", "-Wl,-soname,libf.so.1")
    library(f"{work}/c.so", "int f(void); int g(void) { return f(); }", f"{site}/f/libf.so.1")
    wheel = make_wheel(work, "c", "1", requires=["f.lib"])
    with zipfile.ZipFile(wheel, "a") as z:
        z.write(f"{work}/c.so", "c/c.so")

    def said(*options):
        done = subprocess.run([world.ptbuild, "verify", "--profiles", world.profiles, "--ci", *options, wheel], capture_output=True, text=True, timeout=120)
        return [line.split(": ")[1] for line in done.stdout.splitlines() if "[needed]" in line or "[undefined]" in line]

    assert said() == ["note[needed]"]
    assert said("--with", world.path("env")) == []
    library(f"{site}/f/libf.so.1", "int h(void) { return 1; }", "-Wl,-soname,libf.so.1")
    assert said("--with", world.path("env")) == ["error[undefined]"]


if __name__ == "__main__":
    main(
        [
            test_a_disk_that_cannot_be_read_is_no_fault_of_the_wheel,
            test_reads_that_end_early_are_read_on,
            test_an_environment_has_what_a_wheel_needs,
            test_a_decoder_newer_than_the_tables_is_an_error_of_ptbuild,
        ]
    )
