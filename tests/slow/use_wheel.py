#!/usr/bin/env python3
"""What people do with an installed torch: torch.compile, extensions by torch.utils.cpp_extension and by CMake, and files that go to another torch and back. Takes some minutes and needs a compiler, CMake and ninja, so it is run by
hand.

usage: use_wheel.py PYTHON [OTHER_PYTHON]

PYTHON, an interpreter's path, has the torch to be tried, OTHER_PYTHON another one, such as the official wheel of the same version. Stand where a user does: a bare root with python3-venv, python3-dev, g++, cmake, make and
ninja-build, and an environment with the wheel, numpy and setuptools. In the root that the wheel was built in, headers and libraries are found that a user does not have.
"""
import os
import subprocess
import sys
import tempfile
import time

COMPILE = """
import torch
@torch.compile
def f(x, y):
    return torch.sin(x) * y + torch.relu(x).sum()
a, b = torch.randn(64), torch.randn(64)
torch.testing.assert_close(f(a, b), torch.sin(a) * b + torch.relu(a).sum())
"""
# What it compiles for the processor's vectors; without them it goes on in scalars and says nothing.
VECTORS = """
import torch
from torch._inductor import cpu_vec_isa
from torch._inductor.utils import run_and_get_code
f = torch.compile(lambda x, y: torch.exp(x) * torch.sin(y) + torch.erf(x))
x, y = torch.randn(640), torch.randn(640)
got, code = run_and_get_code(f, x, y)
torch.testing.assert_close(got, torch.exp(x) * torch.sin(y) + torch.erf(x))
assert "Vectorized" in "".join(code), f"no vectors, of {cpu_vec_isa.valid_vec_isa_list()}"
"""
INLINE = """
import torch
from torch.utils.cpp_extension import load_inline
m = load_inline("tiny", cpp_sources="torch::Tensor twice(torch::Tensor x) { return x * 2; }", functions=["twice"])
assert m.twice(torch.ones(3)).tolist() == [2, 2, 2]
"""
SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
setup(name="tiny", ext_modules=[CppExtension("tiny_ext", ["tiny.cpp"])], cmdclass={"build_ext": BuildExtension})
"""
EXTENSION = """
#include <torch/extension.h>
PYBIND11_MODULE(tiny_ext, m) { m.def("twice", [](torch::Tensor x) { return x * 2; }); }
"""
CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(app CXX)
find_package(Torch REQUIRED)
add_executable(app app.cpp)
target_link_libraries(app ${TORCH_LIBRARIES})
set_property(TARGET app PROPERTY CXX_STANDARD 17)
"""
APP = """
#include <torch/script.h>
#include <iostream>
int main(int argc, char **argv)
{
	auto module = torch::jit::load(argv[1]);
	std::cout << module.forward({torch::ones({2, 4})}).toTensor().sum().item<double>() << std::endl;
	return argc != 2;
}
"""
# The same modules, tensors and sums on both sides: types, views, a module's state and one that is compiled.
MAKE = """
import sys, torch
torch.manual_seed(3)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)).double().eval()
types = {str(t): torch.arange(6).to(t) for t in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int64, torch.bool, torch.complex64, torch.complex128)}
base = torch.arange(12.0)
state = {"net": net.state_dict(), "types": types, "base": base, "view": base[::2], "sparse": torch.eye(3).to_sparse(), "quantized": torch.quantize_per_tensor(base, 0.1, 3, torch.quint8), "sum": float(net(torch.ones(2, 4).double()).sum())}
torch.save(state, sys.argv[1] + ".pt")
torch.jit.script(net).save(sys.argv[1] + ".ts")
torch.jit.script(net.float()).save(sys.argv[1] + "-float.ts")
torch.save(net.double(), sys.argv[1] + "-whole.pt")
torch.export.save(torch.export.export(net.double(), (torch.ones(2, 4).double(),)), sys.argv[1] + ".pt2")
"""
TAKE = """
import sys, torch
state = torch.load(sys.argv[1] + ".pt", weights_only=True)
x = torch.ones(2, 4).double()
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)).double().eval()
net.load_state_dict(state["net"])
whole, script = torch.load(sys.argv[1] + "-whole.pt", weights_only=False), torch.jit.load(sys.argv[1] + ".ts")
exported = torch.export.load(sys.argv[1] + ".pt2").module()
for name, module in (("state", net), ("module", whole), ("script", script), ("export", exported)):
    got = float(module(x).sum())
    assert abs(got - state["sum"]) < 1e-12, (name, got, state["sum"])
for name, t in state["types"].items():
    assert str(t.dtype) == name and torch.equal(t, torch.arange(6).to(t.dtype)), name
state["base"][2] = 50
assert state["view"][1] == 50, "a view is no longer one"
assert torch.equal(state["sparse"].to_dense(), torch.eye(3)) and abs(float(state["quantized"].dequantize()[4]) - 4) < 0.06
"""
failed = 0


def run(*argv, env=None, cwd=None):
    try:
        return subprocess.run(argv, capture_output=True, text=True, env=env, cwd=cwd, check=False)
    except FileNotFoundError as ex:
        return subprocess.CompletedProcess(argv, 127, "", str(ex))


def tell(name, ok, start, why=""):
    global failed
    failed += not ok
    print(f"{'ok    ' if ok else 'FAILED'} {name}, {time.monotonic() - start:.1f} s" + ("" if ok else f": {why.strip()[-900:]}"), flush=True)


def attempt(name, *argv, **options):
    start = time.monotonic()
    done = run(*argv, **options)
    tell(name, done.returncode == 0, start, done.stderr + done.stdout)
    return done


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def no_compiler(python, d, env):
    """A machine without a compiler, and without a cache of what was compiled before."""
    start = time.monotonic()
    empty = os.path.join(d, "bin")
    os.makedirs(empty)
    done = run(python, f"{d}/compile.py", env={**env, "PATH": empty, "TORCHINDUCTOR_CACHE_DIR": os.path.join(d, "none")})
    tell("torch.compile without a compiler says so", done.returncode != 0 and "No working C++ compiler" in done.stderr, start, done.stderr or "it worked")


def extensions(python, d, env):
    attempt("cpp_extension.load_inline", python, "-c", INLINE, env=env)
    write(f"{d}/setup.py", SETUP)
    write(f"{d}/tiny.cpp", EXTENSION)
    attempt("cpp_extension in a setup.py", python, "setup.py", "build_ext", "--inplace", env=env, cwd=d)
    attempt("the extension works", python, "-c", "import torch, tiny_ext; assert tiny_ext.twice(torch.ones(2)).tolist() == [2, 2]", env=env, cwd=d)
    prefix = run(python, "-c", "import torch; print(torch.utils.cmake_prefix_path)", env=env).stdout.strip()
    os.makedirs(f"{d}/app")
    write(f"{d}/app/CMakeLists.txt", CMAKE)
    write(f"{d}/app/app.cpp", APP)
    done = attempt("CMake finds the package", "cmake", "-S", f"{d}/app", "-B", f"{d}/out", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_DISABLE_FIND_PACKAGE_Protobuf=ON", env=env)
    found = [line for line in done.stdout.splitlines() if "Found Torch" in line]
    tell("it is this torch's", bool(found) and os.path.dirname(os.path.dirname(prefix)) in found[0], time.monotonic(), f"{found} for {prefix}")
    attempt("CMake builds a program", "cmake", "--build", f"{d}/out", env=env)
    attempt("the program loads TorchScript", f"{d}/out/app", f"{d}/own-float.ts", env=env)


def main():
    python, *other = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as d:
        env = {**os.environ, "TORCH_EXTENSIONS_DIR": f"{d}/ext", "TORCHINDUCTOR_CACHE_DIR": f"{d}/inductor", "PYTHONDONTWRITEBYTECODE": "1"}
        theirs = {k: v for k, v in env.items() if k != "PYTHONPATH"}
        write(f"{d}/compile.py", COMPILE)
        attempt("torch.compile", python, f"{d}/compile.py", env=env)
        attempt("torch.compile in vectors", python, "-c", VECTORS, env=env)
        no_compiler(python, d, env)
        attempt("files are written and read", python, "-c", MAKE, f"{d}/own", env=env)
        attempt("files of its own", python, "-c", TAKE, f"{d}/own", env=env)
        for p in other:
            attempt("the other torch reads them", p, "-c", TAKE, f"{d}/own", env=theirs)
            attempt("the other torch writes", p, "-c", MAKE, f"{d}/other", env=theirs)
            attempt("files of the other torch", python, "-c", TAKE, f"{d}/other", env=env)
        extensions(python, d, env)
    print(f"{failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
