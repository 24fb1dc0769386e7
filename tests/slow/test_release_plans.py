#!/usr/bin/env python3
"""The plan of each release against the wheel that its makers published: every option of which the wheel says how it was built is planned the same, or tests/data/official_differences.tsv has the difference with its reason.

usage: PYTHON test_release_plans.py PTBUILD (any Python that has pip)

Prints the table. Only a few members of each wheel of the index are fetched (see test_official.py): macros, the CMake package, what the wheel requires; the rest is the kept text of torch.__config__.show(). A row of the file that no
wheel shows any more fails as well.
"""
import csv
import json
import os
import re
import subprocess
import sys

import test_official

HERE = os.path.dirname(os.path.realpath(__file__))
RELEASES = ("2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
PROFILES = {("x86_64", True): "sm90-avx2", ("aarch64", True): "sm90-armv9", ("aarch64", False): "cpu-armv8_2"}
# A library of its own package that the wheel requires is one that it is built with.
REQUIRED = {"USE_CUFILE": "cufile", "USE_CUDSS": "cudss", "USE_CUSPARSELT": "cusparselt", "USE_NVSHMEM": "nvshmem"}
# What PyTorch derives from another option (CMakeLists.txt, caffe2/CMakeLists.txt).
DERIVED = {"CAFFE2_LINK_LOCAL_PROTOBUF": "BUILD_CUSTOM_PROTOBUF", "USE_RPC": "USE_DISTRIBUTED"}
DEFINED = ("USE_FBGEMM", "USE_FBGEMM_GENAI", "USE_MSLK", "USE_XNNPACK", "USE_KINETO", "USE_PYTORCH_QNNPACK")


def word(value, truth):
    known = truth(value) if isinstance(value, str) else None
    return value or "-" if known is None else "ON" if known else "OFF"


def wheel_says(version, machine, archive, check_config):
    """Options, each with one value; those that contradict each other have both."""
    said, _ = test_official.read(archive, check_config)
    kept = os.path.join(HERE, "../data/official", f"{version}.txt")
    if machine == "x86_64":
        with open(kept, encoding="utf-8") as file:
            said.show(file.read().split("---\n")[0])
    found = {name: {word(v, check_config.truth) for v, _ in values} for name, values in said.options.items()}
    facts = said.facts
    if facts.get("version.cuda"):
        names = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        requires = " ".join(re.findall(r"^Requires-Dist: (.*)", archive.read(names[0]).decode(), re.M))
        for name, package in REQUIRED.items():
            found.setdefault(name, {"ON" if re.search(rf"\b{package}\b", requires) else "OFF"})
        if machine == "x86_64":
            found["USE_MAGMA"] = {"ON" if "magma" in facts else "OFF"}
    installed = archive.namelist()
    found.setdefault("BUILD_TEST", {"ON" if "torch/bin/test_api" in installed else "OFF"})
    if facts.get("version.cuda"):
        found.setdefault("BUILD_BUNDLE_PTXAS", {"ON" if "torch/bin/ptxas" in installed else "OFF"})
    if "CXX_FLAGS" in facts:
        for name in DEFINED:
            found.setdefault(name, {"ON" if f"-D{name}" in facts["CXX_FLAGS"].split() else "OFF"})
    if "BLAS_INFO" in facts:
        found["BLAS"] = {facts["BLAS_INFO"]}
    return {name: "/".join(sorted(values)) for name, values in found.items()}, facts.get("version.cuda")


def planned(program, version, machine, cuda, truth):
    command = [program, "plan", "--json", "--release", version, "--profile", PROFILES[machine, bool(cuda)]] + (["--cuda", cuda] if cuda else [])
    plan = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    asked = {name: word(value, truth) for name, value in {**plan["env"], **plan["cmake"]}.items() if isinstance(value, str)}
    asked["BLAS"] = {"openblas": "open"}.get(plan["blas"], plan["blas"])
    return asked


def known():
    with open(os.path.join(HERE, "../data/official_differences.tsv"), encoding="utf-8") as file:
        for option, plan, wheel, where, why in csv.reader((line for line in file if not line.startswith("#")), delimiter="\t"):
            for place in where.split():
                version, machine = place.split(":")
                yield (option, plan, wheel, version, machine), why


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(HERE, "../../profiles/checks"))
    import check_config

    reasons, seen, compared, failed = dict(known()), set(), 0, 0
    for machine in ("x86_64", "aarch64"):
        for version, archive in test_official.wheels(machine):
            version = str(version)
            if version not in RELEASES:
                continue
            says, cuda = wheel_says(version, machine, archive, check_config)
            asks = planned(sys.argv[1], version, machine, cuda, check_config.truth)
            print(f"{version} {machine} {'CUDA ' + cuda if cuda else 'CPU'}: {len(says)} options", flush=True)
            for option, wheel in sorted(says.items()):
                plan = asks.get(DERIVED.get(option, option), "-")
                if (plan, wheel) == ("-", "OFF"):  # no option of this release
                    continue
                row = (option, plan, wheel, version, machine)
                compared += 1
                if plan != wheel:
                    seen.add(row)
                    failed += row not in reasons
                    print(f"    {option}: planned {plan}, the wheel has {wheel}: {reasons.get(row, 'NO REASON')}", flush=True)
    for row in sorted(reasons.keys() - seen):
        failed += 1
        print(f"    no wheel shows any more: {' '.join(row)}")
    print(f"{compared} options compared, {len(seen)} differ, {failed} without a reason or a wheel")
    sys.exit(bool(failed or compared < 300))


if __name__ == "__main__":
    main()
