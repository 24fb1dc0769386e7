#!/usr/bin/env python3
"""What every official torch wheel from 2.6 on says of itself must be understood to the last line: the macros, the CMake package and version.py of each wheel of the index for x86_64 and aarch64.

usage: PYTHON test_official.py (any that has pip)

Only these members are fetched, a few kilobytes of each wheel, by pip's own reader of distant archives. From 2.8 on a header has the build settings as well; the text of show() itself is in tests/data/official, which must agree
with the wheels.
"""
import os
import sys
import zipfile

HERE = os.path.dirname(os.path.realpath(__file__))
MEMBERS = ["torch/include/ATen/Config.h", "torch/include/caffe2/core/macros.h", "torch/version.py", "torch/share/cmake/Torch/TorchConfig.cmake", "torch/share/cmake/Caffe2/Caffe2Config.cmake"]


def wheels(machine):
    """Version and distant archive, the oldest first."""
    from pip._internal.commands.install import InstallCommand
    from pip._internal.models.target_python import TargetPython
    from pip._internal.network.lazy_wheel import LazyZipOverHTTP

    command = InstallCommand("install", "")
    with command.main_context():
        options, _ = command.parse_args(["torch"])
        session = command._build_session(options)
        target = TargetPython(platforms=[f"{t}_{machine}" for t in ("manylinux1", "manylinux2014", "manylinux_2_28")], py_version_info=(3, 11), abis=["cp311"], implementation="cp")
        found = {c.version: c.link for c in command._build_package_finder(options, session, target_python=target).find_all_candidates("torch") if c.link.is_wheel and not c.version.is_prerelease}
        for version in sorted(v for v in found if v.release >= (2, 6)):
            yield version, zipfile.ZipFile(LazyZipOverHTTP(found[version].url_without_fragment, session))


def read(archive, check_config):
    said, names = check_config.Said(), set(archive.namelist())
    text = {m: archive.read(m).decode() for m in MEMBERS if m in names}
    said.header(text[MEMBERS[0]])
    said.macros(text.get(MEMBERS[1], ""))
    said.version(text[MEMBERS[2]])
    for member in MEMBERS[3:]:
        said.cmake(text[member], os.path.basename(member))
    return said, text


def agrees(version, text):
    """The kept text of a release holds the wheel's own macros and version.py."""
    path = os.path.join(HERE, "../data/official", f"{version}.txt")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        _, header, names = file.read().split("---\n")
    macros = [line for line in text[MEMBERS[0]].splitlines() if line.startswith("#")]
    return header.splitlines() == macros and names.strip() == text[MEMBERS[2]].strip()


def main():
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(HERE, "../../profiles/checks"))
    import check_config

    failed = kept = seen = 0
    for machine in ("x86_64", "aarch64"):
        for version, archive in wheels(machine):
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
    sys.exit(bool(failed or kept != kept_files or seen < 20))


if __name__ == "__main__":
    main()
