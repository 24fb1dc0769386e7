#!/usr/bin/python3
"""check_config.py, which reads what a torch says of itself: on what official wheels say, and on lines that it must not pass over.

tests/data/official has a file for each release: the text of show(), asked on a machine with a GPU's libraries, then a line ---, the macros of ATen/Config.h and the names of version.py.
"""
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../profiles/checks"))
sys.dont_write_bytecode = True
import check_config  # noqa: E402

OFFICIAL = os.path.join(HERE, "../data/official")
RELEASES = ["2.6.0", "2.7.0", "2.7.1", "2.8.0", "2.9.0", "2.9.1", "2.10.0", "2.11.0", "2.12.0", "2.12.1", "2.13.0", "2.14.0", "2.14.1", "2.15.0"]

TORCH_CONFIG = """
# if(@COMMENT@) of no use
if(EXISTS "${PREFIX}/a (b) # c")
  set(TORCH_INCLUDE_DIRS ${PREFIX}/include)
endif()
if(ON)
  find_package(Caffe2 REQUIRED PATHS ${CMAKE_CURRENT_LIST_DIR}/../Caffe2)
else()
  if(0)
    append_torchlib_if_found(nnpack)
  endif()
  if(ON)
    append_torchlib_if_found(XNNPACK)
    append_torchlib_if_found(microkernels-prod)
  endif()
endif()
if(OFF AND ON)
    append_torchlib_if_found(c10_xpu torch_xpu)
endif()
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=1")
endif()
if(NOT ON)
  set_target_properties(torch PROPERTIES
      IMPORTED_LOCATION "${TORCH_LIBRARY}"
  )
endif()
"""
CAFFE2_CONFIG = """
if(OFF)
  include("${CMAKE_CURRENT_LIST_DIR}/public/gflags.cmake")
endif()
if ()
  include("${CMAKE_CURRENT_LIST_DIR}/public/LoadHIP.cmake")
endif()
if(1)
  set(CAFFE2_USE_CUDA 1)
  if(1 AND NOT CAFFE2_USE_CUDA)
    message(FATAL_ERROR "Your installed Caffe2 version uses CUDA but ...")
  endif()
endif()
"""

# As CMake writes it: what a user of torch gets, and options as public definitions.
TARGETS = """
cmake_policy(PUSH)
foreach(_cmake_expected_target IN ITEMS c10 torch_cpu torch_cpu_library)
  unset(_cmake_expected_target)
endforeach()
add_library(torch_cpu SHARED IMPORTED)
set_target_properties(torch_cpu PROPERTIES
  INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO;USE_RPC"
  INTERFACE_INCLUDE_DIRECTORIES "${_IMPORT_PREFIX}/include"
  INTERFACE_LINK_LIBRARIES "protobuf::libprotobuf;c10"
)
set_target_properties(torch_cpu_library PROPERTIES
  INTERFACE_COMPILE_DEFINITIONS "\\$<TARGET_PROPERTY:torch_cpu,INTERFACE_COMPILE_DEFINITIONS>"
  INTERFACE_LINK_LIBRARIES "-Wl,--no-as-needed,\\"\\$<TARGET_FILE:torch_cpu>\\" -Wl,--as-needed;\\$<TARGET_PROPERTY:torch_cpu,INTERFACE_LINK_LIBRARIES>"
)
message(FATAL_ERROR "The imported target \\"${_cmake_target}\\" (of CMake) references the file")
"""
RELEASE = """
set_target_properties(torch_cpu PROPERTIES
  IMPORTED_LINK_DEPENDENT_LIBRARIES_RELEASE "DNNL::dnnl"
  IMPORTED_LOCATION_RELEASE "${_IMPORT_PREFIX}/lib/libtorch_cpu.so"
  )
"""


def said(show="", header="", version="", torch="", caffe2=""):
    s = check_config.Said()
    s.show(show)
    s.header(header)
    s.version(version)
    s.cmake(torch, "TorchConfig.cmake")
    s.cmake(caffe2, "Caffe2Config.cmake")
    return s


class Official(unittest.TestCase):
    def read(self, release):
        with open(os.path.join(OFFICIAL, release + ".txt"), encoding="utf-8") as file:
            show, header, version = file.read().split("---\n")
        return said(show, header, version)

    def test_every_line_of_every_release_is_understood(self):
        for release in RELEASES:
            with self.subTest(release):
                s = self.read(release)
                self.assertEqual(s.unknown, [])
                self.assertEqual(s.facts["TORCH_VERSION"], release)
                self.assertEqual(s.facts["version.__version__"].split("+")[0], release)
                self.assertEqual((s.facts["BLAS_INFO"], s.facts["LAPACK_INFO"], s.facts["AT_MKL_ENABLED"]), ("mkl", "mkl", "1"))
                self.assertTrue(s.facts["CXX_FLAGS"].endswith("-Wno-stringop-overflow"), s.facts["CXX_FLAGS"])
                self.assertEqual(s.facts["CUDA_VERSION"], s.facts["version.cuda"])
                self.assertIn(s.facts["version.cuda"], (s.facts["cuda runtime"], s.facts.get("cuda built with")))
                for name in ("USE_CUDA", "USE_CUDNN", "USE_GLOO", "USE_MKLDNN", "USE_NCCL", "USE_OPENMP"):
                    self.assertEqual({check_config.truth(v) for v, _ in s.options[name]}, {True}, name)

    def test_no_other_file_is_there(self):
        self.assertEqual(sorted(os.listdir(OFFICIAL)), sorted(r + ".txt" for r in RELEASES))


class Unknown(unittest.TestCase):
    """What no release has is told, each with its place."""

    def test_a_line_of_show(self):
        s = said(show="PyTorch built with:\n  - GCC 14.2\n  - Quantum is enabled\n    - Built with Quantum 3\n")
        self.assertEqual(s.unknown, ["torch.__config__.show(): - Quantum is enabled", "torch.__config__.show(): - Built with Quantum 3"])
        self.assertEqual(s.lines, 1)

    def test_a_build_setting(self):
        s = said(show="  - Build settings: BLAS_INFO=open, USE_QUANTUM=ON, USE_CUDA=maybe, USE_MKL=, USE_MPI=OFF, \n")
        self.assertEqual(s.unknown, ["torch.__config__.show(): USE_QUANTUM=ON", "torch.__config__.show(): USE_CUDA=maybe"])
        self.assertEqual(list(s.options), ["USE_MPI"])

    def test_commas_inside_a_value(self):
        s = said(show="  - Build settings: CUDA_FLAGS= --diag_suppress=a,--diag_suppress=b -DA=1, CXX_FLAGS=-O2 -Wl,-z,now, USE_CUDA=1, \n")
        self.assertEqual(s.facts["CUDA_FLAGS"], " --diag_suppress=a,--diag_suppress=b -DA=1")
        self.assertEqual(s.facts["CXX_FLAGS"], "-O2 -Wl,-z,now")
        self.assertEqual((s.unknown, list(s.options)), ([], ["USE_CUDA"]))

    def test_a_macro(self):
        s = said(header="#pragma once\n// text\n#define AT_MKL_ENABLED() 1\n#define AT_QUANTUM_ENABLED() 1\n#define AT_NNPACK_ENABLED() @X@\n")
        self.assertEqual(s.unknown, ["ATen/Config.h: #define AT_QUANTUM_ENABLED() 1", "ATen/Config.h: #define AT_NNPACK_ENABLED() @X@"])

    def test_a_name_of_the_version(self):
        s = said(version="from typing import Optional\n__version__ = '2.6.0'\ncuda: Optional[str] = None\nquantum: Optional[str] = '1'\nimport os\n")
        self.assertEqual(s.unknown, ["version.py: quantum: Optional[str] = '1'", "version.py: import os"])
        self.assertEqual(s.facts["version.__version__"], "2.6.0")

    def test_of_the_cmake_package(self):
        s = said(torch="if(ON)\n  append_torchlib_if_found(quantum)\nendif()\nquantum_setup(A)\nset(X @Y@)\nif(Z)\n  append_torchlib_if_found(quantum)\nendif()\n")
        self.assertEqual(s.unknown, ["TorchConfig.cmake: if(ON) append_torchlib_if_found(quantum)", "TorchConfig.cmake: quantum_setup(A)", "TorchConfig.cmake: set(X @Y@)"])
        self.assertEqual(said(torch="set(A 1)\n}\n").unknown, ["TorchConfig.cmake: (})"])

    def test_of_what_users_are_linked_with(self):
        s = check_config.Said()
        s.package("Caffe2/Caffe2Targets.cmake", 'set_target_properties(torch_cpu PROPERTIES\n  INTERFACE_COMPILE_DEFINITIONS "USE_RPC;USE_QUANTUM"\n  INTERFACE_LINK_LIBRARIES "c10;quantum::all"\n'
                  '  INTERFACE_LINK_OPTIONS "-z"\n  INTERFACE_COMPILE_OPTIONS "\\$<TARGET_PROPERTY:c10,INTERFACE_COMPILE_OPTIONS>"\n)\nquantum(1)\n')
        self.assertEqual(s.unknown, ["Caffe2Targets.cmake: torch_cpu: USE_QUANTUM", "Caffe2Targets.cmake: torch_cpu: quantum::all", "Caffe2Targets.cmake: torch_cpu: INTERFACE_LINK_OPTIONS", "Caffe2Targets.cmake: quantum(1)"])


class Asked(unittest.TestCase):
    def test_the_cmake_package_has_options_as_conditions(self):
        s = said(torch=TORCH_CONFIG, caffe2=CAFFE2_CONFIG)
        self.assertEqual(s.unknown, [])
        self.assertEqual({n: [v for v, _ in l] for n, l in s.options.items()},
                         {"BUILD_SHARED_LIBS": ["ON", "ON"], "USE_NNPACK": ["OFF"], "USE_XNNPACK": ["ON"], "USE_XPU": ["OFF"], "USE_GFLAGS": ["OFF"], "USE_ROCM": ["OFF"], "USE_CUDA": ["ON"]})
        self.assertEqual(s.facts["TORCH_CXX_FLAGS"], "-D_GLIBCXX_USE_CXX11_ABI=1")

    def test_libraries_have_options_as_public_definitions(self):
        s = check_config.Said()
        s.package("Caffe2/Caffe2Targets.cmake", TARGETS)
        s.package("Caffe2/Caffe2Targets-release.cmake", RELEASE)
        self.assertEqual(s.unknown, [])
        self.assertEqual(s.differences({"USE_DISTRIBUTED": "ON", "USE_C10D_GLOO": "ON", "USE_C10D_MPI": "OFF", "USE_NVSHMEM": "ON"}), [])
        self.assertEqual(s.differences({"USE_TENSORPIPE": "ON", "USE_DISTRIBUTED": "OFF"}),
                         ["USE_DISTRIBUTED: asked OFF, got ON in Caffe2Targets.cmake", "USE_TENSORPIPE: asked ON, got OFF in Caffe2Targets.cmake"])

    def test_a_library_without_definitions_has_all_options_off(self):
        s = check_config.Said()
        s.package("Caffe2/Caffe2Targets.cmake", 'set_target_properties(torch_cuda PROPERTIES\n  INTERFACE_LINK_LIBRARIES "torch::cudart"\n)\n')
        self.assertEqual(s.differences({"USE_C10D_NCCL": "ON"}), ["USE_C10D_NCCL: asked ON, got OFF in Caffe2Targets.cmake"])

    def test_one_of_two_options_is_enough(self):
        for condition, want in (("OFF OR ON", "ON"), ("ON OR OFF", "ON"), ("OFF OR OFF", "OFF"), ("OFF", "OFF")):
            s = said(caffe2=f"if({condition})\n  if(NOT TARGET protobuf::libprotobuf)\n  endif()\nendif()\n")
            self.assertEqual((s.unknown, s.options["CAFFE2_LINK_LOCAL_PROTOBUF"]), ([], [(want, "Caffe2Config.cmake")]))

    def test_what_is_otherwise_is_told_with_its_place(self):
        s = said(show="  - Build settings: USE_NCCL=1, USE_MKLDNN=ON, USE_MPI=OFF, \n", header="#define AT_BLAS_USE_CBLAS_DOT() 0\n", torch=TORCH_CONFIG)
        self.assertEqual(s.differences({"USE_NCCL": "ON", "USE_MKLDNN": "1", "USE_MPI": "0", "USE_XNNPACK": "ON", "BLAS": "OpenBLAS", "USE_DISTRIBUTED": "ON", "BUILD_SHARED_LIBS": "ON"}), [])
        self.assertEqual(s.differences({"USE_NCCL": "OFF", "BLAS_USE_CBLAS_DOT": "ON", "USE_XNNPACK": "OFF"}),
                         ["BLAS_USE_CBLAS_DOT: asked ON, got 0 in ATen/Config.h", "USE_NCCL: asked OFF, got 1 in torch.__config__.show()", "USE_XNNPACK: asked OFF, got ON in TorchConfig.cmake"])

    def test_the_build_settings_of_a_header(self):
        s = check_config.Said()
        s.macros('#define CAFFE2_BUILD_STRINGS { \\\n  {"TORCH_VERSION", "2.15.0"}, \\\n  {"CXX_FLAGS", R"PYT( -O2 -DA="b")PYT"}, \\\n  {"USE_NCCL", "ON"}, \\\n  {"USE_NVTX", ""}, \\\n  {"NEW", "x"}, \\\n}\n')
        self.assertEqual((s.facts, s.unknown), ({"TORCH_VERSION": "2.15.0", "CXX_FLAGS": ' -O2 -DA="b"'}, ["caffe2/core/macros.h: NEW=x"]))
        self.assertEqual(s.options, {"USE_NCCL": [("ON", "caffe2/core/macros.h")]})

    def test_an_installed_package_is_read_whole(self):
        with tempfile.TemporaryDirectory() as d:
            for path, text in (("include/ATen/Config.h", "#define AT_MKLDNN_ENABLED() 1\n"), ("version.py", "debug = False\n"), ("share/cmake/Torch/TorchConfig.cmake", TORCH_CONFIG), ("share/cmake/Caffe2/Caffe2Config.cmake", CAFFE2_CONFIG),
                               ("share/cmake/Caffe2/Caffe2Targets.cmake", TARGETS), ("share/cmake/Torch/TorchConfigVersion.cmake", 'set(PACKAGE_VERSION "2.6.0")')):
                os.makedirs(os.path.dirname(os.path.join(d, path)), exist_ok=True)
                with open(os.path.join(d, path), "w", encoding="utf-8") as file:
                    file.write(text)
            s = check_config.read(d, "  - GCC 14.2\n")
        self.assertEqual(s.unknown, [])
        self.assertEqual((s.options["USE_MKLDNN"], s.facts["version.debug"], s.facts["compiler"]), ([("1", "ATen/Config.h")], False, "GCC 14.2"))
        self.assertIn("USE_CUDA", s.options)
        self.assertEqual((s.facts["PACKAGE_VERSION"], s.options["USE_RPC"]), ("2.6.0", [("ON", "Caffe2Targets.cmake")]))


if __name__ == "__main__":
    unittest.main()
