"""Builds the trial: with CMake where the package does, else with setuptools alone."""

import os
import subprocess
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class CMake(build_ext):
    """As PyTorch's own setup.py: the environment becomes -D options."""

    def build_extension(self, ext):
        out = os.path.dirname(os.path.abspath(self.get_ext_fullpath(ext.name)))
        given = [f"-D{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("CMAKE_") and k != "CMAKE_GENERATOR"]
        names = {"PYTHON_INCLUDE": sysconfig.get_paths()["include"], "SUFFIX": sysconfig.get_config_var("EXT_SUFFIX"), "OUT": out}
        subprocess.check_call(["cmake", "-S", ".", "-B", "build", "-G", "Ninja", *given, *(f"-D{k}={v}" for k, v in names.items())])
        subprocess.check_call(["cmake", "--build", "build"])


class Plain(build_ext):
    """As torch.utils.cpp_extension: a build.ninja that runs the compiler."""

    def build_extension(self, ext):
        out = os.path.abspath(self.get_ext_fullpath(ext.name))
        os.makedirs(os.path.dirname(out), exist_ok=True)
        os.makedirs("build", exist_ok=True)
        env = {k: os.environ.get(k, "") for k in ("CXX", "CXXFLAGS", "LDFLAGS")}
        with open("build/build.ninja", "w") as f:
            f.write(f"cflags = {env['CXXFLAGS']} -O2 -fPIC -fopenmp -I{sysconfig.get_paths()['include']}\n")
            f.write(f"rule compile\n  command = {env['CXX']} $cflags -c $in -o $out\n")
            f.write(f"rule link\n  command = {env['CXX']} -shared $in -fopenmp {env['LDFLAGS']} -o $out\n")
            f.write(f"build {os.getcwd()}/build/trial.o: compile {os.getcwd()}/trial.cpp\nbuild {out}: link {os.getcwd()}/build/trial.o\n")
        subprocess.check_call(["ninja", "-C", "build"])


setup(
    name="buildtrial",
    version="1",
    packages=["buildtrial"],
    ext_modules=[Extension("buildtrial._C", ["trial.cpp"])],
    cmdclass={"build_ext": CMake if "CMAKE_TOOLCHAIN_FILE" in os.environ else Plain},
)
