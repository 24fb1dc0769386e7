"""The stand-in for PyTorch with GPU code, compiled by the toolkit that this machine has."""

import glob
import os
import re
import subprocess

GPUS = ("75", "90")  # both are targets of every toolkit in the tables

CMAKE = """
if(USE_CUDA)
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  enable_language(CUDA)
  string(APPEND CMAKE_CUDA_FLAGS " $ENV{TORCH_NVCC_FLAGS}")
  foreach(arch ${TORCH_CUDA_ARCH_LIST})
    string(REPLACE "." "" sm ${arch})
    string(APPEND gencode " -gencode arch=compute_${sm},code=sm_${sm}")
  endforeach()
  set(kernels csrc/one.cu csrc/two.cu)
  set_source_files_properties(csrc/one.cu PROPERTIES COMPILE_FLAGS "${gencode} @ONE@")
  set_source_files_properties(csrc/two.cu PROPERTIES COMPILE_FLAGS "@TWO@")
  add_library(toy_cuda SHARED ${kernels})
  install(TARGETS toy_cuda LIBRARY DESTINATION ${TOY_PREFIX}lib)
endif()
"""
KERNEL = """
#include <cuda_runtime.h>
namespace {
template <class T> __global__ void scale(T *p, T by) { p[blockIdx.x * blockDim.x + threadIdx.x] *= by; }
}
extern "C" int toy_@NAME@(float *p) { scale<<<1, 32>>>(p, 2.0f); int version = 0; cudaRuntimeGetVersion(&version); return version; }
"""
IMPORT = """
import ctypes as _ctypes, os as _os

cuda_version = _ctypes.CDLL(_os.path.join(_os.path.dirname(__file__), "lib", "libtoy_cuda.so")).toy_one(None)
"""


def toolkit():
    """The version of the newest toolkit here, as the tables name it."""
    for nvcc in sorted(glob.glob("/usr/local/cuda*/bin/nvcc"), reverse=True) + ["/usr/bin/nvcc"]:
        if os.path.exists(nvcc):
            text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
            return re.search(r"release (\d+\.\d+)", text).group(1)
    raise AssertionError("no CUDA toolkit on this machine: neither /usr/local/cuda*/bin/nvcc nor /usr/bin/nvcc")


def pin(world, name, one="", two="${gencode}"):
    def change(files):
        files["CMakeLists.txt"] += CMAKE.replace("@ONE@", one).replace("@TWO@", two).encode()
        for kernel in ("one", "two"):
            files[f"csrc/{kernel}.cu"] = KERNEL.replace("@NAME@", kernel).encode()
        files["torch/__init__.py"] += IMPORT.encode()

    world.pin("setup-py-env", change, name)
    with open(world.release(name), encoding="utf-8") as f:
        text = f.read()
    with open(world.release(name), "w", encoding="utf-8") as f:
        text = text.replace('toolkits: ["12.8", "12.9"]', f'toolkits: ["{toolkit()}"]')
        f.write(text.replace("  python_requires:", '  cuda_requires: [{requirement: "triton==3.5.1"}]\n  python_requires:', 1))
