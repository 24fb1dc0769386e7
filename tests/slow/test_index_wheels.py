#!/usr/bin/env python3
"""The newest wheels of the Python index on five GPUs with three drivers each: what `ptbuild verify --machine` says, against what their makers say. tests/data/index_wheels.tsv has the wheels and the statements; of GPU code cuobjdump is asked. Beside it pip: where it refuses a wheel for a Python, a C library or a processor, verify must say no.

usage: test_index_wheels.py PTBUILD PYTHON CUOBJDUMP CACHE_DIR [WORD...] (PYTHON: one with pip; CUOBJDUMP: of nvidia-cuda-cuobjdump; WORD: of the projects' names)

Wheels that are in CACHE_DIR are taken, others are downloaded, and removed when they are judged. PTBUILD_KEEP_WHEELS=1 leaves them.
"""
import collections
import fnmatch
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

TABLE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../data/index_wheels.tsv")
GPUS = {"GeForce GTX 1080": 61, "Tesla T4": 75, "A10": 86, "H100": 90, "GeForce RTX 5090": 120}
DRIVERS = {"535.183.01": "12.2", "570.86.16": "12.8", "580.95.05": "13.0"}
FLOORS = {"11": (450,), "12": (525,), "13": (580,)}
FLAGS = "pni ssse3 cx16 sse4_1 sse4_2 popcnt fma movbe aes xsave avx f16c bmi1 avx2 bmi2 abm avx512f avx512dq avx512cd avx512bw avx512vl"
# Pythons, C libraries and processors that pip is asked about
TARGETS = [("3.9", 17, "x86_64"), ("3.13", 41, "x86_64"), ("3.14", 28, "x86_64"), ("3.13", 41, "aarch64")]


def machine(platform, gpu, driver, glibc, python):
    arm = platform == "aarch64"
    cpu = {"cores": ["0x41:0xd4f"], "flags": "fp asimd"} if arm else {"name": "Xeon", "vendor": "GenuineIntel", "family": 6, "model": 143, "stepping": 8, "flags": FLAGS}
    gpus = [{"name": gpu, "capability": f"{GPUS[gpu] // 10}.{GPUS[gpu] % 10}", "memory": "16G"}]
    return {"platform": f"{platform}-linux", "cpu": cpu, "processors": 16, "memory": "64G", "gpus": gpus, "driver": driver, "driver_cuda": DRIVERS[driver], "glibc": f"2.{glibc}", "pythons": python}


def rows(words):
    for line in open(TABLE):
        if not line.startswith("#"):
            name, maker, library, cuda, _ = line.rstrip("\n").split("\t")
            if not words or any(w in name for w in words):
                yield name, maker, library, cuda


def platforms(glibc, processor):
    old = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    for minor in range(glibc, 4, -1):
        yield f"manylinux_2_{minor}_{processor}"
        if minor in old:
            yield f"{old[minor]}_{processor}"
    yield f"linux_{processor}"


def pip_options(python, glibc, processor):
    options = ["--python-version", python, "--implementation", "cp", "--only-binary", ":all:", "--no-deps"]
    options += [a for p in platforms(glibc, processor) for a in ("--platform", p)]
    return options + [a for b in ("cp" + python.replace(".", ""), "abi3", "none") for a in ("--abi", b)]


def wheel_of(python, cache, name):
    """Its path, and whether it was downloaded."""
    stem = re.sub(r"[-_.]+", "_", name).lower()
    for path in glob.glob(os.path.join(cache, "*.whl")):
        if os.path.basename(path).split("-")[0].lower() == stem and ("x86_64" in path or path.endswith("any.whl")):
            return path, False
    with tempfile.TemporaryDirectory(dir=cache) as top:
        subprocess.run([python, "-m", "pip", "download", "-q", "-d", top, *pip_options("3.13", 39, "x86_64"), name], check=True)
        [path] = glob.glob(os.path.join(top, "*.whl"))
        os.rename(path, os.path.join(cache, os.path.basename(path)))
    return os.path.join(cache, os.path.basename(path)), True


def code_of(cuobjdump, wheel, pattern, top):
    """Targets of machine code and of PTX in the files that decide."""
    cubins, ptx = set(), set()
    with zipfile.ZipFile(wheel) as z:
        for entry in z.namelist():
            suffix = re.search(r"\.so(\.\d+)*$", entry)
            if not suffix or not fnmatch.fnmatch(entry, pattern):
                continue
            library = z.extract(entry, top)
            for option, targets in (("-lelf", cubins), ("-lptx", ptx)):
                out = subprocess.run([cuobjdump, option, library], capture_output=True, text=True).stdout
                targets.update(re.findall(r"\.sm_([0-9]+[af]?)\.(?:cubin|ptx)", out))
            os.unlink(library)
    if not cubins | ptx:
        raise AssertionError(f"cuobjdump finds no GPU code in '{pattern}' of '{wheel}'")
    return cubins, ptx


def serves(pattern, cuobjdump, wheel, gpus, top):
    """The GPUs that the wheel is for: '-', '>=75' as its maker says, or by the code of the files that decide."""
    if pattern[0] in "->":
        return {g for g in gpus if pattern == "-" or gpus[g] >= int(pattern[2:])}
    cubins, ptx = code_of(cuobjdump, wheel, pattern, top)
    return {g for g in gpus if runs(cubins, ptx, gpus[g])}


def runs(cubins, ptx, gpu):
    def one(target, newer):
        number, letter = int(target.rstrip("af")), target[-1]
        if number == gpu:
            return True
        same = number // 10 == gpu // 10
        return number < gpu and letter != "a" and (same or (newer and letter != "f"))
    return any(one(t, False) for t in cubins) or any(one(t, True) for t in ptx)


def judge(program, wheel, top):
    """The verdict for each simulated machine: of GPUs with drivers, and of pip's targets."""
    files, keys = [], []
    every = [((g, d), machine("x86_64", g, d, 41, "3.13")) for g in GPUS for d in DRIVERS]
    every += [(t, machine(t[2], "H100", "580.95.05", t[1], t[0])) for t in TARGETS]
    for key, described in every:
        files.append(os.path.join(top, f"machine{len(files)}.json"))
        keys.append(key)
        json.dump(described, open(files[-1], "w"))
    out = subprocess.run([program, "verify", "--json", "--machine", ",".join(files), wheel], capture_output=True, text=True).stdout
    return dict(zip(keys, json.loads(out)["wheels"][0]["machines"]))


def refusals(python, wheel, top):
    """Of TARGETS those that pip refuses, by the name and METADATA: all other files are left out. 'pip install' would compare Requires-Python with its own Python."""
    stub = os.path.join(top, os.path.basename(wheel))
    with zipfile.ZipFile(wheel) as z, zipfile.ZipFile(stub, "w") as out:
        for entry in z.namelist():
            if re.match(r"[^/]*\.dist-info/[^/]+$", entry):
                out.writestr(entry, z.read(entry))
    commands = [["download", "-q", "--no-index", "--disable-pip-version-check", "-d", os.path.join(top, "taken"), *pip_options(*t), stub] for t in TARGETS]
    program = "import json, sys; from pip._internal.cli.main import main; print('refusals', json.dumps([main(c) != 0 for c in json.load(sys.stdin)]))"
    done = subprocess.run([python, "-c", program], input=json.dumps(commands), capture_output=True, text=True, check=True)
    return dict(zip(TARGETS, json.loads(done.stdout.split("refusals")[1])))


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    program, python, cuobjdump, cache, *words = sys.argv[1:]
    count, makers, failed = collections.Counter(), set(), []
    for name, maker, pattern, cuda in rows(words):
        wheel, fetched = wheel_of(python, cache, name)
        makers.add(maker)
        with tempfile.TemporaryDirectory(dir=cache) as top:
            verdicts = judge(program, wheel, top)
            gpus = serves(pattern, cuobjdump, wheel, GPUS, top)
            pip = refusals(python, wheel, top)
        said = []
        for (gpu, driver) in [(g, d) for g in GPUS for d in DRIVERS]:
            fits = gpu in gpus and (cuda == "-" or int(driver.split(".")[0]) >= FLOORS[cuda][0])
            tags = not pip[("3.13", 41, "x86_64")]
            verdict = verdicts[(gpu, driver)]["runs"]
            kind = {"no": "false error", "perhaps": "false warning"}.get(verdict) if fits and tags else "missed" if verdict == "yes" else None
            count["judged"] += 1
            count[kind or "right"] += 1
            said += [f"{kind}: {gpu}, {driver}: {'; '.join(verdicts[(gpu, driver)]['lacks'])[:150]}"] if kind else []
        for target, no in pip.items():
            count["asked of pip"] += 1
            count["refused by pip"] += no
            if no and verdicts[target]["runs"] != "no":
                count["refusal of pip missed"] += 1
                said.append(f"refusal of pip missed: {target}")
        print(f"{name} ({maker}): {os.path.basename(wheel)}{''.join(chr(10) + '    ' + s for s in said)}", flush=True)
        count["wheels"] += 1
        if fetched and not os.environ.get("PTBUILD_KEEP_WHEELS"):
            os.unlink(wheel)
    count["makers"] = len(makers)
    print(", ".join(f"{v} {k}" for k, v in sorted(count.items())))
    failed = [k for k, most in (("false error", 0.01), ("false warning", 0.02), ("refusal of pip missed", 0)) if count[k] > most * count["judged"]]
    print(f"[  {'FAILED' if failed else 'PASSED'}  ] {', '.join(failed)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
