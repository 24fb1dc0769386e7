#!/usr/bin/env python3
"""An official torch and every GPU of the tables: slim makes a wheel exactly where cuobjdump lists code for it in libtorch_cuda.so.

usage: test_slim_gpus.py [--dry-run] PTBUILD CUOBJDUMP WHEEL...

cuobjdump is in the PyPI package nvidia-cuda-cuobjdump. One library and one wheel for each processor go below TMPDIR. For each wheel it prints the row of
data/official_gpus.tsv: release, machine, the targets of most fat binaries in libtorch_cuda, the GPUs of gpu.yaml that have code there. With --dry-run slim
judges and plans, and writes nothing: a fifth of the time.
"""
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

GPUS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../profiles/gpu.yaml")


def numbers(version):
    return tuple(map(int, version.split(".")))


def gpus():
    """All, those that are systems on a chip, and of these the last CUDA of a number that newer ones replaced."""
    rows = re.findall(r'(?ms)^  - \{sm: "(\d+)"(.*?)\}$', open(GPUS).read())
    chips = {int(sm): rest for sm, rest in rows if "tegra: true" in rest}
    last = {sm: re.search(r'cuda_max: "([\d.]+)"', rest) for sm, rest in chips.items() if "note: " in rest}
    return [int(sm) for sm, _ in rows], set(chips), {sm: numbers(m[1]) for sm, m in last.items() if m}


def held(cuobjdump, library):
    """How many fat binaries' images of each target: the listing has one line for each."""
    # Both lists in one call: each call reads and unpacks the whole library.
    done = subprocess.run([cuobjdump, "-all", "-lelf", "-lptx", library], capture_output=True, text=True)
    lines = re.findall(r"(?m)^(ELF|PTX) file +\d+: .*\.sm_([0-9a-z]+)\.(?:cubin|ptx)$", done.stdout)
    if done.returncode or not lines:
        sys.exit(f"FAILED {cuobjdump} of {library}: exit code {done.returncode}, {len(lines)} images\n{done.stderr}")
    return collections.Counter(("-lelf" if kind == "ELF" else "-lptx", target) for kind, target in lines)


def truth(count, gpu, chips):
    cubins = [int(t) for (kind, t), _ in count.items() if kind == "-lelf" and t.isdigit()]
    ptx = [int(t) for (kind, t), _ in count.items() if kind == "-lptx" and t.isdigit()]
    same = [c for c in cubins if c == gpu or (c < gpu and c // 10 == gpu // 10 and c not in chips)]
    return bool(same) or any(p <= gpu for p in ptx)


def row(wheel, count, fit):
    """As data/official_gpus.tsv has it."""
    _, version, *_, platform = os.path.basename(wheel).removesuffix(".whl").split("-")
    machine = re.search("x86_64|aarch64", platform)[0]
    most = max(count.values())
    held_by = sorted(int(t) for (kind, t), n in count.items() if kind == "-lelf" and t.isdigit() and n > most / 2)
    return "\t".join([version, machine, " ".join(map(str, held_by)), " ".join(map(str, fit))])


def slim(command, wheel, gpus, out):
    """Of these GPUs, a wheel each: the exit code, and the GPUs that a wheel was made for. Nothing stays."""
    words = ",".join(f"sm{gpu}" for gpu in gpus)
    done = subprocess.run(command + [wheel, "--gpu", words, "--out", out, "--json"], capture_output=True, text=True)
    made = [w["gpu"] for w in json.loads(done.stdout).get("wheels", [])] if done.stdout else []
    files = [os.path.join(out, n) for n in os.listdir(out)] if os.path.isdir(out) else []
    wheels = sum(path.endswith(".whl") for path in files)
    if wheels != (0 if "--dry-run" in command else len(made)):
        print(f"FAILED {os.path.basename(wheel)}: {wheels} files for {len(made)} wheels", flush=True)
        made = None
    for path in files:
        os.unlink(path)
    return done.returncode, made


def main():
    dry = sys.argv[1:2] == ["--dry-run"]
    program, cuobjdump, *wheels = sys.argv[1 + dry:] if len(sys.argv) > 3 + dry else sys.exit(__doc__)
    command, failed = [program, "slim"] + dry * ["--dry-run"], 0
    known, chips, replaced = gpus()
    for wheel in wheels:
        with tempfile.TemporaryDirectory() as top:
            with zipfile.ZipFile(wheel) as z:
                library = z.extract("torch/lib/libtorch_cuda.so", top)
                cuda = numbers(re.search(r"(?m)^cuda.*'([\d.]+)'", z.read("torch/version.py").decode())[1])
            count = held(cuobjdump, library)
            os.unlink(library)
            fit = [g for g in known if truth(count, g, chips) and cuda <= replaced.get(g, cuda)]
            print(row(wheel, count, fit), flush=True)
            # Those that fit in one pass, and one by one if that fails; those that do not one by one.
            together = slim(command, wheel, fit, os.path.join(top, "out")) == (0, [f"sm{g}" for g in fit])
            alone = [g for g in known if not (together and g in fit)]
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                results = pool.map(lambda g: slim(command, wheel, [g], os.path.join(top, str(g))), alone)
                got = {g: (0, [f"sm{g}"]) for g in known} | dict(zip(alone, results))
            for gpu in known:
                right = got[gpu] == ((0, [f"sm{gpu}"]) if gpu in fit else (7, []))
                failed += not right
                print(f"{'ok' if right else 'FAILED'} {os.path.basename(wheel)} sm{gpu}: {'a wheel' if got[gpu][1] else 'refused'}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
