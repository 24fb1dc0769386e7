"""Killed with SIGKILL at a random moment of any step, again and again: the next run always ends well and the store is never damaged."""

import random
import shutil
import subprocess
import time

from toy import main, record

ROUNDS = 20


def test_twenty_kills(world):
    rng = random.Random(20)
    start = time.monotonic()
    first = world.build("setup-py-env")
    assert first.returncode == 0, first.stderr
    whole = time.monotonic() - start
    digest = record(first)["record"]["sha256"]
    killed, fresh = 0, True
    for i in range(ROUNDS):
        if i % 5 == 0:
            world.clear()  # a fifth of the kills start from nothing, the others meet what the ones before left
            fresh = True
        start = time.monotonic()
        p = world.start("build", "--profile", "cpu-avx2", "--release", "2.9.1-setup-py-env", "--jobs", "1")
        try:
            p.communicate(timeout=rng.uniform(0.01, whole))
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            killed += 1
        ended = p.returncode == 0
        if ended and fresh:
            whole = min(whole, time.monotonic() - start)  # the first one may have run beside other tests
        fresh = ended
        check = world.run("cache", "verify")
        assert check.returncode == 0, check.stderr
        if ended:
            world.clear()
    assert killed >= ROUNDS // 2, f"only {killed} of {ROUNDS} runs were still going when killed"
    last = world.build("setup-py-env")
    assert last.returncode == 0, last.stderr
    assert record(last)["record"]["sha256"] == digest, "what came out after the kills is another wheel"
    assert world.run("cache", "verify").returncode == 0
    shutil.rmtree(world.cache)


if __name__ == "__main__":
    main([test_twenty_kills])
