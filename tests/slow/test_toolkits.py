#!/usr/bin/env python3
"""A small CUDA extension in the world of each toolkit: a kernel by nvcc, the module by the world's g++ for the world's Python, and its import there; nothing runs on a GPU. And C++ in a world for
another processor, by that world's own compiler.

usage: test_toolkits.py PTBUILD STORE [WORLD...] [--qemu PROGRAM]

Worlds that are not in the store are made: some 2 GB to download and 4 GB each. WORLD is one name as 'ptbuild world make' takes it (default: those whose files the index and the archive have).
PROGRAM is qemu-aarch64 (user mode, static): with it debian12 and debian13_lean for aarch64-linux are made and used, too. Prints a row for each: seconds to make and to compile, bytes, what came out.
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

WORLDS = ("debian13+cuda12_4", "debian13_lean+cuda13_0", "debian13_lean+cuda13_1", "debian13_lean+cuda13_2", "debian13_lean+cuda13_3", "debian13_lean+cuda13_4", "debian13_lean+cuda13_5")
KERNEL = """#include <cub/block/block_reduce.cuh>
#include <cuda_runtime.h>
__global__ void total_kernel(const int *in, int *out)
{
	typedef cub::BlockReduce<int, 128> reduce;
	__shared__ typename reduce::TempStorage storage;
	int sum = reduce(storage).Sum(in[threadIdx.x]);
	if (threadIdx.x == 0)
		*out = sum;
}
extern "C" int launch_total(const int *in, int *out)
{
	total_kernel<<<1, 128>>>(in, out);
	return cudaGetLastError();
}
"""
MODULE = """#include <Python.h>
#include <cuda_runtime.h>
extern "C" int launch_total(const int *, int *);
static PyObject *launch(PyObject *, PyObject *) { return PyLong_FromLong(launch_total(nullptr, nullptr)); }
static PyObject *runtime(PyObject *, PyObject *) { int v = 0; cudaRuntimeGetVersion(&v); return PyLong_FromLong(v); }
static PyMethodDef methods[] = {{"launch", launch, METH_NOARGS, ""}, {"runtime", runtime, METH_NOARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "proof", "", -1, methods};
PyMODINIT_FUNC PyInit_proof() { return PyModule_Create(&module); }
"""
PLAIN = """#include <algorithm>
#include <iostream>
#include <vector>
int main() { std::vector<int> v{3, 1, 2}; std::sort(v.begin(), v.end()); std::cout << v[0] << v[1] << v[2] << " " << sizeof(void *) << "\\n"; }
"""


def run(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise SystemExit(f"{shlex.join(words)[:600]}\nends with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done


def make(program, store, name, platform):
    start = time.monotonic()
    made = json.loads(run(program, "world", "make", name, "--platform", platform, "--cache", store, "--json").stdout)
    return made, time.monotonic() - start


def inside(root, here, *words):
    return run("bwrap", "--ro-bind", root, "/", "--bind", here, "/home", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--unshare-all", "--clearenv", "--setenv", "PATH",
               "/usr/local/bin:/usr/bin:/bin:/usr/local/cuda/bin", "--setenv", "HOME", "/tmp", "--chdir", "/home", *words)


def toolkit(root, here, name):
    """What came out, in words."""
    for file, text in (("kernel.cu", KERNEL), ("module.cpp", MODULE)):
        with open(os.path.join(here, file), "w", encoding="utf-8") as out:
            out.write(text)
    debian = not os.path.exists(os.path.join(root, "usr/local/cuda/bin/nvcc"))
    host, top = ("cuda-g++", "/usr") if debian else ("g++", "/usr/local/cuda")
    newest = "90" if debian else "100"
    start = time.monotonic()
    inside(root, here, "nvcc", "-ccbin", host, "-std=c++17", "-O2", "-Xcompiler", "-fPIC", "-gencode", "arch=compute_90,code=sm_90", "-gencode", f"arch=compute_{newest},code=[sm_{newest},compute_{newest}]",
           "-c", "kernel.cu", "-o", "kernel.o")
    kernel = time.monotonic() - start
    include = inside(root, here, "python3", "-c", "import sysconfig; print(sysconfig.get_paths()['include'])").stdout.strip()
    libraries = f"/usr/lib/{os.uname().machine}-linux-gnu" if debian else f"{top}/lib64"
    start = time.monotonic()
    inside(root, here, host, "-O2", "-shared", "-fPIC", f"-I{include}", f"-I{top}/include", "module.cpp", "kernel.o", f"-L{libraries}", "-lcudart", f"-Wl,-rpath,{libraries}", "-o", "proof.so")
    module = time.monotonic() - start
    said = inside(root, here, "python3", "-c", "import proof; print(proof.runtime(), proof.launch())").stdout.split()
    want = re.search(r"cuda(\d+)_(\d+)", name)
    assert int(said[0]) // 10 == int(want[1]) * 100 + int(want[2]), (name, said)
    assert said[1] in ("35", "100"), said  # no driver, or one without a GPU
    with open(os.path.join(here, "kernel.o"), "rb") as file:
        data = file.read()
    # fat binaries: a cubin has the number of its GPU in the ELF header, behind the machine 190: in the second byte from version 8 of its ABI on (CUDA 13), else in the first
    found = {f"sm_{flags >> (8 if data[at + 8] > 7 else 0) & 0xff}" for at, flags in ((m.start(), int.from_bytes(data[m.start() + 48:m.start() + 52], "little")) for m in re.finditer(rb"\x7fELF\x02\x01.{12}\xbe\x00", data, re.S))}
    return f"nvcc {kernel:.1f} s, g++ {module:.1f} s, runtime {said[0]}, {' '.join(sorted(found)) or 'compressed'}, cudaError {said[1]}"


def foreign(root, here, qemu):
    """C++ in a world of AArch64: what g++ would run, each program by QEMU, as it cannot start one of another processor itself."""
    with open(os.path.join(here, "plain.cpp"), "w", encoding="utf-8") as out:
        out.write(PLAIN)
    start = time.monotonic()
    gxx = os.path.realpath(os.path.join(root, "usr/bin/g++"))
    loader = (qemu, "-L", root)
    steps = run(*loader, gxx, f"--sysroot={root}", "-###", "-O2", "-march=armv8.2-a+fp16+dotprod", "-no-canonical-prefixes", "plain.cpp", "-o", "plain", cwd=here).stderr
    for line in (x for x in steps.splitlines() if x.startswith(" ") and "COLLECT" not in x):
        words = shlex.split(line)
        program = words[0]
        if program.endswith("/collect2"):  # which starts the linker
            program = os.path.join(root, "usr/bin/ld")
            words = [w for w in words if "plugin" not in w]
        elif os.sep not in program:
            program = os.path.join(root, "usr/bin", program)
        run(*loader, os.path.realpath(program), *words[1:], cwd=here)
    said = run(*loader, os.path.join(here, "plain")).stdout.strip()
    assert said == "123 8", said
    return f"g++ by QEMU {time.monotonic() - start:.1f} s, the program says '{said}'"


def main():
    words = sys.argv[1:]
    qemu = words.pop(words.index("--qemu") + 1) if "--qemu" in words else None
    words = [w for w in words if w != "--qemu"]
    if len(words) < 2:
        raise SystemExit(__doc__)
    program, store, names = words[0], os.path.abspath(words[1]), words[2:] or ([] if qemu else WORLDS)
    todo = [(name, f"{os.uname().machine}-linux") for name in names] + ([("debian12", "aarch64-linux"), ("debian13_lean", "aarch64-linux")] if qemu else [])
    for name, platform in todo:
        made, seconds = make(program, store, name, platform)
        with tempfile.TemporaryDirectory() as here:
            os.chmod(here, 0o777)
            what = foreign(made["dir"], here, qemu) if platform == "aarch64-linux" and os.uname().machine != "aarch64" else toolkit(made["dir"], here, name)
        print(f"{name} {platform}: made in {seconds:.0f} s ({made['downloaded_bytes'] / 1e6:.0f} MB of it downloaded), {made['bytes'] / 1e9:.2f} GB; {what}", flush=True)


if __name__ == "__main__":
    main()
