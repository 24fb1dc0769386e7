"""An installed ptbuild builds the stand-in with the data files of its installation, the test extension first. ci/check-release runs it.

usage: try_installed.py PTBUILD SHARE [OPTION...]     SHARE: PREFIX/share/ptbuild
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "e2e"))
from toy import World, record  # noqa: E402

PTBUILD, SHARE = sys.argv[1:3]
world = World(PTBUILD, tables=os.path.join(SHARE, "profiles"))
try:
    got = world.build("setup-py-env", "--jobs", "2", *sys.argv[3:])
    if got.returncode:
        sys.exit(f"try_installed: the build gave {got.returncode}: {got.stderr}")
    passed = [name for name in os.listdir(os.path.join(world.cache, "stamps")) if name.startswith("trial-")]
    assert len(passed) == 1 and world.wheels() == [os.path.basename(record(got)["wheel"])], (passed, world.wheels())
finally:
    world.close()
