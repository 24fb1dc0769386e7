#!/usr/bin/env python3
"""Each NVIDIA wheel that pip may take beside one of ours has the libraries that profiles/cuda.yaml says, where it says: every version of the index for Linux on x86_64.

usage: PYTHON test_cuda_wheels.py [PACKAGE...] (any Python that has pip and PyYAML)

A wheel asks for a range of versions (">=12.4,<12.9"), and pip takes the newest: what NVIDIA publishes tomorrow decides whether the wheel of today still loads. Only the list of members is fetched of each.
"""
import fnmatch
import os
import sys
import unittest
import zipfile

import yaml

TABLE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../profiles/cuda.yaml")
PLATFORMS = [f"manylinux{tag}_x86_64" for tag in ("1", "2010", "2014", "_2_17", "_2_25", "_2_27", "_2_28")]


class Index:
    def __init__(self):
        from pip._internal.commands.install import InstallCommand
        from pip._internal.models.target_python import TargetPython

        command = InstallCommand("install", "")
        with command.main_context():
            self.options, _ = command.parse_args(["torch"])
            self.session = command._build_session(self.options)
            target = TargetPython(platforms=PLATFORMS, py_version_info=(3, 13), abis=["cp313"], implementation="cp")
            self.finder = command._build_package_finder(self.options, self.session, target_python=target)

    def wheels(self, package):
        """Version and link of each wheel that pip would consider, the oldest first."""
        found = {c.version: c.link for c in self.finder.find_all_candidates(package) if c.link.is_wheel and not c.version.is_prerelease}
        return sorted(found.items())

    def members(self, link):
        from pip._internal.network.lazy_wheel import LazyZipOverHTTP

        return zipfile.ZipFile(LazyZipOverHTTP(link.url_without_fragment, self.session)).namelist()


def numbers(text):
    return tuple(int(n) for n in text.split("."))


class CudaWheels(unittest.TestCase):
    ONLY = []

    def check(self, index, layout, row, where):
        """The package of a part has versions of its own, all of this line if its name says so; the toolkit's own have those of the line."""
        major = int(layout["name"].removeprefix("cu"))
        seen = 0
        for version, link in index.wheels(row["package"]):
            if (not row.get("part") and version.major != major) or ("below" in row and version.release >= numbers(row["below"])):
                continue
            names = index.members(link)
            for pattern in row["names"]:
                found = [n for n in names if os.path.dirname(n) in where and fnmatch.fnmatch(os.path.basename(n), pattern)]
                self.assertTrue(found, f"{link.filename} has no {pattern}: it has {[n for n in names if '.so' in os.path.basename(n)]}")
            seen += 1
        self.assertTrue(seen, f"the index has no wheel of {row['package']} for this line")
        print(f"{layout['name']}: {row['package']}: {seen} versions", flush=True)

    def test_every_version_that_may_be_taken(self):
        with open(TABLE, encoding="utf-8") as f:
            layouts = yaml.safe_load(f)["layouts"]
        index = Index()
        for layout in layouts:
            # What lies in the directory of another package of the line is found as well: that of the runtime is always searched.
            shared = {os.path.join("nvidia", row["dir"]) for row in layout["libraries"] if row["package"].startswith("nvidia-cuda-runtime")}
            for row in layout["libraries"]:
                if not self.ONLY or row["package"] in self.ONLY:
                    with self.subTest(package=row["package"]):
                        self.check(index, layout, row, shared | {os.path.join("nvidia", row["dir"])} | ({row["older"]} if "older" in row else set()))


if __name__ == "__main__":
    CudaWheels.ONLY = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
