#!/usr/bin/python3
"""cmake-package-alone.patch and headers-inside.patch, on the lines of PyTorch that they change: CMake itself reads them before and after."""
import os
import re
import subprocess
import tempfile
import unittest

PATCHES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../patches/pytorch/2.6.0-debian")
NAME = "cmake-package-alone.patch"
PROTOBUF = """endif()

# Protobuf
if(@CAFFE2_LINK_LOCAL_PROTOBUF@)
  if(NOT TARGET protobuf::libprotobuf)
    # Define protobuf::libprotobuf as a dummy target to resolve references to
    add_library(protobuf::libprotobuf INTERFACE IMPORTED)
  endif()
else()
  message(FATAL_ERROR "protobuf is not there")
endif()
"""
APP = """cmake_minimum_required(VERSION 3.18)
project(app NONE)
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
include(${CMAKE_CURRENT_LIST_DIR}/Caffe2Config.cmake)
set(TORCH_INSTALL_PREFIX ${CMAKE_CURRENT_LIST_DIR}/wheel)
include(${CMAKE_CURRENT_LIST_DIR}/TorchConfig.cmake)
append_torchlib_if_found(c10)
message(STATUS "torch=${TORCH_LIBRARY} libraries=${TORCH_LIBRARIES}")
"""


def before(path, patch=NAME):
    """What the patch's hunks of a file say stands there."""
    with open(os.path.join(PATCHES, patch), encoding="utf-8") as file:
        part = re.split(r"^--- a/", file.read(), flags=re.M)
    part = next(p for p in part if p.startswith(path))
    return ["".join(line[1:] + "\n" for line in hunk.splitlines()[1:] if line[:1] in " -") for hunk in re.split(r"^@@", part, flags=re.M)[1:]]


def torch_config():
    ends = ["    endif()\n  endforeach()\nendmacro()\n", "      endif()\n    endif()\n  endforeach()\nendmacro()\n", "  endif()\nendif()\n", "if(FALSE)\n", "endif()\n"]
    """The hunks with what ends the blocks that they begin."""
    hunks = before("cmake/TorchConfig.cmake.in")
    assert len(hunks) == len(ends)
    # The fourth begins inside the if() of CUDA, and the fifth behind one.
    return hunks[0] + ends[0] + hunks[1] + ends[1] + hunks[2] + ends[2] + "if(FALSE)\n" + hunks[3] + "endif()\nif(FALSE)\n" + hunks[4]


class Package(unittest.TestCase):
    def configure(self, patched, protobuf="OFF"):
        with tempfile.TemporaryDirectory() as d:
            os.makedirs(f"{d}/cmake")
            for prefix in ("wheel", "system"):
                os.makedirs(f"{d}/{prefix}/lib")
                for name in ("c10", "torch"):
                    open(f"{d}/{prefix}/lib/lib{name}.so", "wb").close()
            for name, text in (("Caffe2Config", "if(FALSE)\n" + PROTOBUF), ("TorchConfig", torch_config())):
                with open(f"{d}/cmake/{name}.cmake.in", "w", encoding="utf-8") as file:
                    file.write(text)
            if patched:
                subprocess.run(["patch", "-p1", "-F0", "-s", "-i", os.path.join(PATCHES, NAME)], cwd=d, check=True)
            for name in ("Caffe2Config", "TorchConfig"):
                with open(f"{d}/cmake/{name}.cmake.in", encoding="utf-8") as file:
                    text = file.read()
                with open(f"{d}/{name}.cmake", "w", encoding="utf-8") as file:
                    file.write(text.replace("@CAFFE2_LINK_LOCAL_PROTOBUF@", protobuf).replace("@BUILD_SHARED_LIBS@", "ON").replace("@USE_CUDA@", "OFF"))
            with open(f"{d}/CMakeLists.txt", "w", encoding="utf-8") as file:
                file.write(APP)
            done = subprocess.run(["cmake", "-G", "Ninja", "-S", d, "-B", f"{d}/out", f"-DCMAKE_LIBRARY_PATH={d}/system/lib"], capture_output=True, text=True, check=False)
            return done.returncode, (done.stdout + done.stderr).replace(d, "")

    def test_needs_no_protobuf(self):
        self.assertIn("protobuf is not there", self.configure(False)[1])
        self.assertEqual(self.configure(True)[0], 0, self.configure(True)[1])

    def test_takes_its_own_libraries(self):
        self.assertIn("torch=/system/lib/libtorch.so libraries=/system/lib/libc10.so", self.configure(False, "ON")[1])
        self.assertIn("torch=/wheel/lib/libtorch.so libraries=/wheel/lib/libc10.so", self.configure(True)[1])

    def test_it_is_applied(self):
        with open(os.path.join(PATCHES, "series"), encoding="utf-8") as file:
            self.assertIn(NAME, file.read().split())


class Headers(unittest.TestCase):
    PATCH = "headers-inside.patch"
    # What stands before and after each hunk: the blocks that it ends and begins.
    AROUND = {
        "aten/src/ATen/CMakeLists.txt": [("add_library(sleef UNKNOWN IMPORTED)\nif(TRUE)\nif(FALSE)\n", "")],
        "cmake/Dependencies.cmake": [("add_library(cpuinfo UNKNOWN IMPORTED)\nif(TRUE)\nif(FALSE)\n", "endif()\n"), ("if(TRUE)\nif(FALSE)\n", "endif()\n")],
        "torch/_inductor/cpp_builder.py": [("def flags(SHARED_FLAG=None):\n    if True:\n        if False:\n", "")],
    }
    APP = "cmake_minimum_required(VERSION 3.18)\nproject(app NONE)\nset(pybind11_INCLUDE_DIR ${CMAKE_CURRENT_LIST_DIR}/system)\n" + "".join(f"include({path})\n" for path in AROUND if not path.endswith(".py"))
    NAMES = ["cpuinfo.h", "pybind11/detail/common.h", "pybind11/pybind11.h", "sleef.h"]

    def made(self, patched):
        """The headers that CMake installs, and the linker's flags of torch.compile."""
        with tempfile.TemporaryDirectory() as d:
            for path, around in self.AROUND.items():
                hunks = before(path, self.PATCH)
                self.assertEqual(len(hunks), len(around))
                os.makedirs(os.path.dirname(f"{d}/{path}"))
                with open(f"{d}/{path}", "w", encoding="utf-8") as file:
                    file.write("".join(begin + hunk + end for (begin, end), hunk in zip(around, hunks)))
            for name in self.NAMES:
                os.makedirs(os.path.dirname(f"{d}/system/{name}"), exist_ok=True)
                open(f"{d}/system/{name}", "wb").close()
            if patched:
                subprocess.run(["patch", "-p1", "-F0", "-s", "-i", os.path.join(PATCHES, self.PATCH)], cwd=d, check=True)
            with open(f"{d}/CMakeLists.txt", "w", encoding="utf-8") as file:
                file.write(self.APP)
            for argv in (["-G", "Ninja", "-S", d, "-B", f"{d}/out", f"-DCMAKE_INCLUDE_PATH={d}/system"], ["--install", f"{d}/out", "--prefix", f"{d}/torch"]):
                subprocess.run(["cmake", *argv], capture_output=True, check=True)
            made = {}
            with open(f"{d}/torch/_inductor/cpp_builder.py", encoding="utf-8") as file:
                exec(file.read(), made)
            return [name for name in self.NAMES if os.path.exists(f"{d}/torch/include/{name}")], made["flags"]()

    def test_they_are_installed(self):
        self.assertEqual(self.made(False), ([], ["shared", "fPIC"]))
        self.assertEqual(self.made(True), (self.NAMES, ["shared", "fPIC", "Wl,--no-as-needed"]))

    def test_it_is_applied(self):
        with open(os.path.join(PATCHES, "series"), encoding="utf-8") as file:
            self.assertIn(self.PATCH, file.read().split())


if __name__ == "__main__":
    unittest.main()
