#!/usr/bin/env python3
"""What every official torch wheel from 2.6 on says of itself must be understood to the last line: the macros, the CMake package and version.py of each wheel of the index for Linux on x86_64 and aarch64 and for macOS.

usage: PYTHON test_official.py [DIR] (any that has pip; DIR: the wheels there in the place of the index's)

Only these members are fetched, a few kilobytes of each wheel, by pip's own reader of distant archives. From 2.8 on a header has the build settings as well; the text of show() itself is in tests/data/official, which must agree
with the wheels.
"""
import os
import re
import sys
import zipfile

HERE = os.path.dirname(os.path.realpath(__file__))
HEADER, MACROS, VERSION, CMAKE = "torch/include/ATen/Config.h", "torch/include/caffe2/core/macros.h", "torch/version.py", "torch/share/cmake/"
# Files of the CMake package that are copies of the source's: no setting changes them.
COPIES = re.compile(r"Caffe2/(Find(CUDAToolkit|CUDSS|CUSPARSELT|SYCLToolkit)\.cmake|Modules_CUDA_fix/.*|public/(LoadHIP|cuda|gflags|glog|mkl|mkldnn|protobuf|utils|xpu)\.cmake)|Tensorpipe/TensorpipeTargets(-release)?\.cmake")


def wheels(machine):
    """Version and distant archive, the oldest first."""
    from pip._internal.commands.install import InstallCommand
    from pip._internal.models.target_python import TargetPython
    from pip._internal.network.lazy_wheel import LazyZipOverHTTP

    command = InstallCommand("install", "")
    with command.main_context():
        options, _ = command.parse_args(["torch"])
        session = command._build_session(options)
        systems = ("macosx_11_0", "macosx_14_0") if machine == "arm64" else ("manylinux1", "manylinux2014", "manylinux_2_28")
        target = TargetPython(platforms=[f"{s}_{machine}" for s in systems], py_version_info=(3, 11), abis=["cp311"], implementation="cp")
        found = {c.version: c.link for c in command._build_package_finder(options, session, target_python=target).find_all_candidates("torch") if c.link.is_wheel and not c.version.is_prerelease}
        for version in sorted(v for v in found if v.release >= (2, 6)):
            yield version, zipfile.ZipFile(LazyZipOverHTTP(found[version].url_without_fragment, session))


def local(folder):
    for name in sorted(os.listdir(folder)):
        if name.startswith("torch-") and name.endswith(".whl"):
            yield name.split("-")[1], zipfile.ZipFile(os.path.join(folder, name))


def read(archive, check_config):
    said, names = check_config.Said(), archive.namelist()
    text = {m: archive.read(m).decode() for m in (HEADER, MACROS, VERSION) if m in names}
    said.header(text[HEADER])
    said.macros(text.get(MACROS, ""))
    said.version(text[VERSION])
    for name in sorted(n.removeprefix(CMAKE) for n in names if n.startswith(CMAKE) and not n.endswith("/")):
        if name in check_config.PACKAGE:
            said.package(name, archive.read(CMAKE + name).decode())
        elif not COPIES.fullmatch(name):
            said.unknown.append(f"{CMAKE}{name}")
    return said, text


def agrees(version, text):
    """The kept text of a release holds the wheel's own macros and version.py."""
    path = os.path.join(HERE, "../data/official", f"{version}.txt")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        _, header, names = file.read().split("---\n")
    macros = [line for line in text[HEADER].splitlines() if line.startswith("#")]
    return header.splitlines() == macros and names.strip() == text[VERSION].strip()


def main():
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(HERE, "../../profiles/checks"))
    import check_config

    failed = kept = seen = 0
    given = sys.argv[1:]
    for machine in given or ("x86_64", "aarch64", "arm64"):
        for version, archive in local(machine) if given else wheels(machine):
            said, text = read(archive, check_config)
            same = agrees(version, text) if machine == "x86_64" else None
            seen += 1
            kept += same is True
            failed += bool(said.unknown) or same is False
            print(f"{said.facts['version.__version__']:14} {machine:8} {said.lines:4} lines, {len(said.options):2} options, {len(said.unknown)} not understood" + {True: ", as kept", False: ", NOT AS KEPT", None: ""}[same], flush=True)
            for line in said.unknown:
                print(f"    {line}")
    kept_files = len(os.listdir(os.path.join(HERE, "../data/official")))
    print(f"{seen} wheels, {failed} failed, {kept} of {kept_files} kept texts agree")
    sys.exit(bool(failed or not seen or not given and (kept != kept_files or seen < 40)))


if __name__ == "__main__":
    main()
