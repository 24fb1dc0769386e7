"""ci/new-release against a wheel made here: what the row takes from it, what it leaves to a person, and that 'ptbuild plan' takes the row.

usage: test_new_release.py PTBUILD
"""

import contextlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.machinery import SourceFileLoader

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def wheel(generator, bindings):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as z:
        for name, text in (
            ("torch/version.py", "from typing import Optional\ncuda: Optional[str] = '13.2'\n"),
            ("torch-2.16.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nGenerator: {generator}\n"),
            ("torch-2.16.0.dist-info/METADATA", f'Name: torch\nRequires-Dist: typing-extensions>=4.14.0\nRequires-Dist: triton~=3.10.0; x\nRequires-Dist: nvidia-cudnn-cu13==9.30.0.1; x\nRequires-Dist: cuda-bindings{bindings}; x\n'),
        ):
            z.writestr(zipfile.ZipInfo(name, (2027, 1, 20, 0, 0, 0)), text)
    return zipfile.ZipFile(data)


def fill(new, profiles, like, archive, vision, *words):
    """The row as text, what is said, and what is warned of."""
    new.RELEASES = os.path.join(profiles, "releases")
    new.wheel_of = lambda project, version: (archive, ["3.13", "3.14"])
    new.companion = lambda project, version: vision
    sys.argv = ["new-release", "2.16.0", "--like", like, *words]
    said, warned = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(warned):
        new.main()
    with open(os.path.join(new.RELEASES, "2.16.0.yaml"), encoding="utf-8") as file:
        return file.read(), said.getvalue(), warned.getvalue()


def main():
    sys.dont_write_bytecode = True
    loader = SourceFileLoader("new_release", os.path.join(TOP, "ci/new-release"))
    new = importlib.util.module_from_spec(importlib.util.spec_from_loader("new_release", loader))
    loader.exec_module(new)
    with tempfile.TemporaryDirectory() as top:
        profiles = os.path.join(top, "profiles")
        shutil.copytree(os.path.join(TOP, "profiles"), profiles)
        vision = ("0.30.0", "0.30.0 is the newest that takes it: torch>=2.14.0, by the stable ABI")
        text, said, warned = fill(new, profiles, "2.13.0", wheel("scikit-build-core 1.1.0", "<14,>=13.0.3"), vision, "--sha256", "ab" * 32)
        for line in ('name: 2.16.0', 'pythons: ["3.13", "3.14"]', "source_date_epoch: 1800403200 # 2027-01-20", "asked: no build of it was seen", "  backend: scikit-build-core", '  cudnn: "9.30.0.1" # with CUDA 13.2',
                     '    - {requirement: "triton~=3.10.0"}', f"      sha256: {'ab' * 32}", "  version: 0.30.0", "    - name: vision-0.30.0.tar.gz", "      unproven: nobody looked for it yet"):
            assert f"\n{line}" in text, line
        assert '"typing-extensions>=4.14.0"' in text and "requirements: skbuild.txt" in text and "shared.txt" not in text, text
        assert text.count("unproven") == 1 and "2.13.0" not in re.sub(r"(?m)^  metadata of the wheel.*", "", text), text
        assert "by the stable ABI" in said and "packed by scikit-build-core 1.1.0" in said and not warned, (said, warned)
        done = subprocess.run([PROGRAM, "--profiles", profiles, "plan", "--profile", "cpu-avx2", "--release", "2.16.0", "--json"], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and '"release": "2.16.0"' in done.stdout, done.stderr
        os.unlink(os.path.join(profiles, "releases", "2.16.0.yaml"))

        # What the row that it is like has otherwise is told, and what cannot be found stays for a person.
        text, said, warned = fill(new, profiles, "2.15.0", wheel("setuptools (80.9.0)", ">=14.0.1,<15"), (None, "none of the index takes it; --torchvision names one"))
        assert "the wheel requires cuda-bindings>=14.0.1,<15" in warned and "none of the index takes it" in said, (warned, said)
        assert "\n  version: 0.29.2" in text and text.count("unproven: nobody looked for it yet") + text.count("unproven: no recipe") == 2, text
        try:
            fill(new, profiles, "2.13.0", None, None)
        except SystemExit as e:
            assert "is there" in str(e), e
        else:
            raise AssertionError("a row that is there was written over")


PROGRAM = os.path.abspath(sys.argv[1])
main()
