"""What a torch says of itself: torch.__config__.show(), the CMake package, ATen/Config.h and version.py, read whole. What is not understood is kept by line, so that no setting of a new release is passed over."""

import ast
import os
import re

TRUE, FALSE = {"1", "ON", "YES", "TRUE", "Y"}, {"", "0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND"}

# The lines of show(): ATen/Version.cpp and CUDAHooks::showConfig.
LINES = [
    ("compiler", r"(?:GCC|clang|MSVC|Clang) \d[\d.]*"),
    ("c++", r"C\+\+ Version: (\d+)"),
    ("mkl", r"Intel\(R\) (?:oneAPI )?Math Kernel Library Version (\d\S*).*|MKL not found"),
    ("mkldnn", r"Intel\(R\) MKL-DNN v([\d.]+) \(Git Hash \w+(?:/A)?\)|MKLDNN not found"),
    ("openmp", r"OpenMP (\d+)(?: \(a\.k\.a\. OpenMP [\d.]+\))?|OpenMP not found"),
    ("lapack", r"LAPACK is enabled \(usually provided by MKL\)"),
    ("nnpack", r"NNPACK is enabled"),
    ("capability", r"CPU capability usage: ([\w ]+)"),
    ("cuda runtime", r"CUDA Runtime ([\d.]+)"),
    ("gpu flags", r"NVCC architecture flags: (.*)"),
    ("cuda built with", r"Built with CUDA Runtime ([\d.]+)"),
    ("cudnn", r"CuDNN ([\d.]+)(?:  \(built against CUDA [\d.]+\))?"),
    ("cudnn built with", r"  Built with CuDNN ([\d.]+)"),
    ("magma", r"Magma ([\d.]+)"),
]
# Build settings that are not options: facts of the build, and names that nothing has set for years.
FACTS = {
    "BLAS_INFO", "LAPACK_INFO", "BUILD_TYPE", "COMMIT_SHA", "CUDA_VERSION", "CUDNN_VERSION", "ROCM_VERSION", "SYCL_COMPILER_VERSION", "CXX_COMPILER", "CXX_FLAGS", "CUDA_FLAGS", "TORCH_VERSION",
    "PERF_WITH_AVX", "PERF_WITH_AVX2", "PERF_WITH_AVX512", "USE_EXCEPTION_PTR", "FORCE_FALLBACK_CUDA_MPI", "HAS_MKL_DNN", "HAS_MKL_SGEMM_PACK", "USE_EIGEN_FOR_BLAS", "USE_ACCELERATE",
}
OPTIONS = {
    "USE_CUDA", "USE_CUDNN", "USE_CUSPARSELT", "USE_GFLAGS", "USE_GLOG", "USE_GLOO", "USE_HIPSPARSELT", "USE_ITT", "USE_LITE_PROTO", "USE_MKL", "USE_MKLDNN", "USE_MPI", "USE_NCCL", "USE_NNPACK", "USE_NVTX",
    "USE_OPENMP", "USE_ROCM", "USE_ROCM_KERNEL_ASSERT", "USE_XCCL", "USE_XPU",
}
# Config.h: the option that each macro is, "" for one that follows from others.
MACROS = {
    "AT_MKLDNN_ENABLED": "USE_MKLDNN", "AT_MKLDNN_ACL_ENABLED": "USE_MKLDNN_ACL", "AT_NNPACK_ENABLED": "USE_NNPACK", "AT_KLEIDIAI_ENABLED": "USE_KLEIDIAI", "AT_BLAS_USE_CBLAS_DOT": "BLAS_USE_CBLAS_DOT",
    "AT_USE_EIGEN_SPARSE": "USE_EIGEN_SPARSE", "AT_MKL_ENABLED": "", "AT_MKL_SEQUENTIAL": "", "AT_POCKETFFT_ENABLED": "", "CAFFE2_STATIC_LINK_CUDA": "", "AT_BUILD_WITH_BLAS": "", "AT_BUILD_WITH_LAPACK": "",
    "AT_PARALLEL_OPENMP": "", "AT_PARALLEL_NATIVE": "", "AT_PARALLEL_NATIVE_TBB": "", "AT_BLAS_F2C": "",
}
GUARDS = re.compile(r'#pragma once|#if !defined\(TORCH_STABLE_ONLY\) && !defined\(TORCH_TARGET_VERSION\)|#else|#endif|#error "This file should not be included when .*"')
# The CMake package has options as literal conditions: what an if() is about shows in the first command inside. "": of no option.
BLOCKS = {
    "include gflags.cmake": "USE_GFLAGS", "include glog.cmake": "USE_GLOG", "include LoadHIP.cmake": "USE_ROCM", "include mkl.cmake": "", "include mkldnn.cmake": "USE_MKLDNN", "set CAFFE2_USE_CUDA": "USE_CUDA",
    "set old_CMAKE_MODULE_PATH": "USE_XPU", "if NOT TARGET protobuf::libprotobuf": "CAFFE2_LINK_LOCAL_PROTOBUF", "if NOT (${Protobuf_VERSION}": "", "message FATAL_ERROR": "",
    "find_package Caffe2": "BUILD_SHARED_LIBS", "find_dependency Caffe2": "BUILD_SHARED_LIBS", "set_target_properties torch": "BUILD_SHARED_LIBS", "find_library C10_CUDA_LIBRARY": "BUILD_SHARED_LIBS",
    "append_wholearchive_lib_if_found torch_cuda": "USE_CUDA", "if MSVC": "USE_CUDA", "append_wholearchive_lib_if_found torch_xpu": "USE_XPU", "append_torchlib_if_found c10_xpu": "USE_XPU",
    "append_torchlib_if_found nnpack": "USE_NNPACK", "append_torchlib_if_found pytorch_qnnpack": "USE_PYTORCH_QNNPACK", "append_torchlib_if_found XNNPACK": "USE_XNNPACK", "append_torchlib_if_found kleidiai": "USE_KLEIDIAI",
    "append_torchlib_if_found fbgemm": "USE_FBGEMM", "append_torchlib_if_found dnnl": "USE_MKLDNN", "append_torchlib_if_found kineto": "USE_KINETO",
}
COMMANDS = {
    "if", "elseif", "else", "endif", "foreach", "endforeach", "macro", "endmacro", "set", "list", "include", "message", "find_library", "find_package", "find_dependency", "get_filename_component", "add_library",
    "set_target_properties", "set_property", "target_compile_features", "find_package_handle_standard_args", "append_torchlib_if_found", "append_wholearchive_lib_if_found",
}
# Caffe2Targets.cmake is what CMake itself writes for torch's users: the libraries with their properties. A public definition that is not there is an option that is off (caffe2/CMakeLists.txt).
EXPORTED = COMMANDS | {"cmake_policy", "file", "return", "string", "unset"}
DEFINITIONS = {
    "torch_cpu": {"USE_DISTRIBUTED", "USE_C10D_GLOO", "USE_C10D_MPI", "USE_C10D_UCC", "USE_RPC", "USE_TENSORPIPE"},
    "torch_cuda": {"USE_C10D_NCCL", "USE_C10D_UCC", "USE_NVSHMEM"},
    "torch_nvshmem": {"USE_NVSHMEM"},
}
LINKED = {"c10", "c10_cuda", "headeronly", "torch", "torch_cpu", "torch_cuda", "torch_cpu_library", "torch_cuda_library", "torch::cudart", "caffe2::mkl", "protobuf::libprotobuf"}
PROPERTIES = {"INTERFACE_INCLUDE_DIRECTORIES", "INTERFACE_SYSTEM_INCLUDE_DIRECTORIES", "IMPORTED_LOCATION_RELEASE", "IMPORTED_SONAME_RELEASE", "IMPORTED_LINK_DEPENDENT_LIBRARIES_RELEASE"}
PACKAGE = ["Torch/TorchConfig.cmake", "Torch/TorchConfigVersion.cmake", "ATen/ATenConfig.cmake", "Caffe2/Caffe2Config.cmake", "Caffe2/Caffe2Targets.cmake", "Caffe2/Caffe2Targets-release.cmake"]
NAMES = {"__all__", "__version__", "debug", "cuda", "git_version", "hip", "rocm", "xpu"}


def truth(word):
    """CMake's own reading of a boolean; None for any other word."""
    return True if word.upper() in TRUE else False if word.upper() in FALSE else None


class Said:
    def __init__(self):
        self.options = {}  # name: [(value, where it stands)]
        self.facts = {}
        self.lines = 0  # understood
        self.unknown = []  # "where: line"

    def option(self, name, value, where):
        self.options.setdefault(name, []).append((value, where))

    def show(self, text):
        where = "torch.__config__.show()"
        for line in text.splitlines():
            if not line.strip() or line == "PyTorch built with:":
                continue
            said = line.removeprefix("  - ") if line.startswith("  - ") else re.sub(r"^    - ", "  ", line)
            if said.startswith("Build settings: "):
                self.settings(re.findall(r"(?:^|, )([A-Z][A-Z0-9_]*)=(.*?)(?=, [A-Z][A-Z0-9_]*=|, *$|$)", said.removeprefix("Build settings: ")), where)
                continue
            for name, pattern in LINES:
                found = re.fullmatch(pattern, said)
                if found:
                    self.facts[name] = next((g for g in found.groups() if g), found.group(0))
                    self.lines += 1
                    break
            else:
                self.unknown.append(f"{where}: {line.strip()}")

    def settings(self, pairs, where):
        for name, value in pairs:
            if name in FACTS:
                self.facts[name] = value
            elif name in OPTIONS and truth(value) is not None:
                # One that is empty was never set: it says nothing.
                if value:
                    self.option(name, value, where)
            else:
                self.unknown.append(f"{where}: {name}={value}")
                continue
            self.lines += 1

    def macros(self, text):
        """caffe2/core/macros.h has the build settings as pairs."""
        start = text.find("#define CAFFE2_BUILD_STRINGS {")
        if start >= 0:
            self.settings([(n, raw or v) for n, raw, v in re.findall(r'\{"(\w+)", (?:R"PYT\((.*?)\)PYT"|"(.*?)")\}', text[start:])], "caffe2/core/macros.h")

    def header(self, text):
        where = "ATen/Config.h"
        for line in re.sub(r"//.*|/\*.*?\*/", "", text).splitlines():
            found = re.fullmatch(r"#define (\w+)(?:\(\))? (\d)", line.strip())
            if found and found.group(1) in MACROS:
                self.facts[found.group(1)] = found.group(2)
                if MACROS[found.group(1)]:
                    self.option(MACROS[found.group(1)], found.group(2), where)
            elif line.strip() and not GUARDS.fullmatch(line.strip()):
                self.unknown.append(f"{where}: {line.strip()}")
                continue
            self.lines += bool(line.strip())

    def version(self, text):
        for node in ast.parse(text).body:
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else node.target if isinstance(node, ast.AnnAssign) else None
            if isinstance(target, ast.Name) and target.id in NAMES:
                self.facts[f"version.{target.id}"] = ast.literal_eval(node.value)
            elif not (isinstance(node, ast.ImportFrom) and node.module == "typing") and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                self.unknown.append(f"version.py: {ast.unparse(node)}")
                continue
            self.lines += 1

    def cmake(self, text, where):
        literal = None  # the condition whose first command comes next
        for name, words in cmake_commands(text):
            if name not in COMMANDS or any(re.search(r"@\w+@", w) for w in words):
                self.unknown.append(f"{where}: {name}({' '.join(words)})")
                continue
            self.lines += 1
            if literal is not None:
                self.block(literal, name, words, where)
                literal = None
            if name in ("if", "elseif"):
                negated = words[:1] == ["NOT"]
                literal = truth(words[negated] if len(words) > negated else "")
                if words[1::2] and set(words[1::2]) == {"OR"}:
                    literal = any(map(truth, words[::2]))
            elif name == "set" and words[:1] in (["TORCH_CXX_FLAGS"], ["PACKAGE_VERSION"]):
                self.facts[words[0]] = " ".join(words[1:]).strip('"')

    def block(self, value, name, words, where):
        if name in ("else", "endif"):
            return
        first = " ".join(words[:3] if name == "if" else words[:1])
        first = " ".join(words[:2]) if first.startswith("NOT (") else os.path.basename(first.strip('"')) if name == "include" else first
        option = BLOCKS.get(f"{name} {first}")
        if option is None:
            self.unknown.append(f"{where}: if({'ON' if value else 'OFF'}) {name}({' '.join(words)})")
            self.lines -= 1
        elif option:
            self.option(option, "ON" if value else "OFF", where)

    def package(self, part, text):
        """One file of PACKAGE."""
        where = os.path.basename(part)
        (self.targets if "Targets" in where else self.cmake)(text, where)

    def targets(self, text, where):
        for name, words in cmake_commands(text):
            if name not in EXPORTED:
                self.unknown.append(f"{where}: {name}({' '.join(words)})")
            elif name == "set_target_properties":
                self.properties(words[0], dict(zip(words[2::2], words[3::2])), where)
            self.lines += name in EXPORTED

    def properties(self, target, given, where):
        # What is asked of another target by a generator expression says nothing of its own.
        own = {name: [v for v in value.strip('"').split(";") if not v.startswith(("\\$<TARGET_PROPERTY:", "-Wl,"))] for name, value in given.items()}
        defined = own.pop("INTERFACE_COMPILE_DEFINITIONS", [])
        known = DEFINITIONS.get(target, set())
        if any("RELEASE" not in name for name in own):
            for name in sorted(known):
                self.option(name, "ON" if name in defined else "OFF", where)
        strange = [v for v in defined if v not in known] + [v for v in own.pop("INTERFACE_LINK_LIBRARIES", []) if v not in LINKED]
        strange += [name for name, values in own.items() if name not in PROPERTIES and values]
        self.unknown += [f"{where}: {target}: {v}" for v in strange]

    def differences(self, asked):
        """What was asked for and is said to be otherwise, for options that are on or off."""
        found = []
        for name, value in sorted(asked.items()):
            for got, where in self.options.get(name, ()):
                if truth(value) is not None and truth(got) != truth(value):
                    found.append(f"{name}: asked {value}, got {got} in {where}")
        return found


def cmake_commands(text):
    """The commands of a CMake file: name and words. Comments are left out; quoted words keep their quotes."""
    text = re.sub(r'("(?:[^"\\]|\\.)*")|#[^\n]*', lambda m: m.group(1) or "", text, flags=re.S)
    at = 0
    while found := re.compile(r"\s*(\w+)\s*\(").match(text, at):
        depth, end, quoted = 1, found.end(), False
        while depth and end < len(text):
            c = text[end]
            quoted = quoted != (c == '"')
            depth += 0 if quoted else (c == "(") - (c == ")")
            end += 1
        yield found.group(1).lower(), re.findall(r'"(?:[^"\\]|\\.)*"|[^\s"]+', text[found.end() : end - 1])
        at = end
    if text[at:].strip():
        yield "", text[at:].split()


def read(torch_dir, show=""):
    """All that the torch package in this directory says, with the text of show() where it can be imported."""
    said = Said()
    said.show(show)
    for part, read_part in (("include/caffe2/core/macros.h", said.macros), ("include/ATen/Config.h", said.header), ("version.py", said.version)):
        path = os.path.join(torch_dir, part)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                read_part(file.read())
    for part in PACKAGE:
        path = os.path.join(torch_dir, "share/cmake", part)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                said.package(part, file.read())
    return said
