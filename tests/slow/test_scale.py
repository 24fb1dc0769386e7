#!/usr/bin/env python3
"""A matrix of ten thousand jobs: the forms of 'ptbuild matrix' and --status take at most 10 seconds of CPU time and 500 MB each.

usage: test_scale.py PTBUILD
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

PTBUILD = os.path.abspath(sys.argv[1])
SECONDS, BYTES, JOBS = 10, 500 << 20, 10000
GPUS = "sm75 sm80 sm86 sm89 sm90 sm100 sm120".split()
ISAS = "avx, avx2, avx512, avx512bf16, avx512vnni, armv8_2, armv9, neoverse_v1"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TOOLKITS = ("12.8", "12.9", "13.0")


def matrix(path):
    lists = ["+".join(some) for n in range(1, 6) for some in itertools.combinations(GPUS, n)]
    quoted = [", ".join(f'"{word}"' for word in words) for words in (PYTHONS, TOOLKITS)]
    rows = [f'  - {{gpus: ["{one}"], toolkits: [{quoted[1]}], isas: [{ISAS}]}}\n' for one in lists]
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"note: many\nrelease: 2.9.1\npythons: [{quoted[0]}]\nrows:\n" + "".join(rows[: JOBS // 96 + 1]))


def measure(name, *arguments, to):
    """Seconds are those of the processor: other programs of this machine are not meant."""
    begun = time.monotonic()
    with open(to, "w", encoding="utf-8") as f:
        process = subprocess.Popen([PTBUILD, "matrix", *arguments], stdout=f, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
    seconds, size = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    print(f"{name}: {seconds:.1f} s of CPU time, {time.monotonic() - begun:.1f} s, {size >> 20} MiB of memory", flush=True)
    assert status == 0, name
    assert seconds <= SECONDS and size <= BYTES, name


def main():
    with tempfile.TemporaryDirectory(prefix="ptbuild-scale-") as top:
        file, run = os.path.join(top, "many.yaml"), os.path.join(top, "run")
        os.mkdir(run)
        os.mkdir(os.path.join(run, "state"))
        matrix(file)
        measure("json", file, "--format", "json", to=os.path.join(run, "jobs.json"))
        measure("slurm", file, "--format", "slurm", to=os.path.join(top, "slurm"))
        measure("kubernetes", file, "--format", "kubernetes", "--image", "example.org/ptbuild:1", to=os.path.join(top, "kubernetes"))
        with open(os.path.join(run, "jobs.json"), encoding="utf-8") as f:
            jobs = json.load(f)["jobs"]
        with open(os.path.join(top, "kubernetes"), encoding="utf-8") as f:
            assert len(json.load(f)["items"]) == len(jobs) + 1
        assert len(jobs) >= JOBS, len(jobs)
        for job in jobs[::2]:
            with open(os.path.join(run, "state", job["id"]), "w", encoding="utf-8") as f:
                f.write("state done\nnode n1\nattempt 1\nstarted 1700000000\nended 1700000100\n")
        measure("status", "--status", run, to=os.path.join(top, "status"))
        with open(os.path.join(top, "status"), encoding="utf-8") as f:
            assert f"{len(jobs) // 2} done" in f.readline(), "the states are not read"
    print(f"test_scale: {len(jobs)} jobs")


main()
