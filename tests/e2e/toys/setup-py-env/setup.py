"""As PyTorch up to 2.11 does it: this script turns the environment into -D options, and an existing cache is not configured again."""

import os
import subprocess
import sys

if "--cmake-only" not in sys.argv:
    try:
        from packing import Extension, setup
    except ImportError:
        from setuptools import Extension, setup

HERE = os.path.dirname(os.path.abspath(__file__))
PASSED_ON = {"BLAS", "ATEN_THREADING", "INSTALL_TEST", "ONNX_ML", "ONNX_NAMESPACE", "TORCH_CUDA_ARCH_LIST", "WERROR"}


def options():
    for name, value in sorted(os.environ.items()):
        if name.startswith(("BUILD_", "USE_", "CMAKE_")) or name in PASSED_ON:
            if name != "CMAKE_GENERATOR":
                yield f"-D{name}={value}"


def build_library(configure_only):
    if not os.path.exists("build/CMakeCache.txt"):
        os.makedirs("build", exist_ok=True)
        command = ["cmake", "-GNinja", f"-DCMAKE_INSTALL_PREFIX={HERE}/torch", *options(), HERE]
        print(" ".join(command), flush=True)
        subprocess.check_call(command, cwd="build")
    if configure_only:
        sys.exit(0)
    subprocess.check_call(["cmake", "--build", ".", "--target", "install", "--", "-j", os.environ["MAX_JOBS"]], cwd="build")


os.chdir(HERE)
configure_only = "--cmake-only" in sys.argv
sys.argv = [a for a in sys.argv if a != "--cmake-only"]
build_library(configure_only)
setup(
    name="torch",
    version=os.environ["PYTORCH_BUILD_VERSION"],
    packages=["torch"],
    package_data={"torch": ["lib/*.so"]},
    install_requires=["typing-extensions"],
    ext_modules=[Extension("torch._C", ["csrc/module.c"], include_dirs=["csrc"], library_dirs=["torch/lib"], libraries=["torch_toy"])],
)
