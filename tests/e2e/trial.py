"""Before all tests with a stand-in: the trial of this machine, once. The place that PTBUILD_TEST_TRIALS names is made anew: what another build of ptbuild passed says nothing."""

import os
import shutil
import sys

from toy import World

shutil.rmtree(os.environ["PTBUILD_TEST_TRIALS"], ignore_errors=True)
world = World(sys.argv[1])
try:
    done = world.run("doctor", "--profile", "cpu-avx2", "--release", "2.9.1-setup-py-env")
    world.share_trials("doctor", world.cache)
finally:
    world.close()
print(done.stdout + done.stderr)  # where it does not pass, each test finds that out
