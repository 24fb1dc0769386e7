"""Several ptbuilds on one store: each variant is built once, whoever comes later takes it; a lock dies with its owner."""

import json
import os
import signal
import subprocess
import time

import faults_kinds
from toy import main

VARIANTS = 5
EACH = 2


def command(world, name, *args):
    return world.command("build", "--profile", "cpu-avx2", "--release", f"2.9.1-{name}", "--json", *args)


def start(world, name, *args, fresh=False):
    """`fresh`: where there is no store yet, it makes one, and tries the machine."""
    if not fresh:
        world.share_trials("build", world.cache)
    return subprocess.Popen(command(world, name, *args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=world.dir)


def ended(p):
    out, err = p.communicate(timeout=300)
    assert p.returncode == 0, f"exit {p.returncode}: {err[-1500:]}"
    return json.loads(out)[0], err


def builds(logs):
    return sum(log.count(": building ") for log in logs)


def one_built(results):
    """Of several that wanted one variant one has built it, and all have the same bytes."""
    hits = [item["store_hit"] for item, _ in results]
    assert hits.count(False) == 1, f"{hits.count(False)} of {len(hits)} built"
    assert builds(log for _, log in results) == 1, "the log tells of more than one build"
    assert len({item["record"]["sha256"] for item, _ in results}) == 1


def tmp_is_empty(world):
    assert os.listdir(os.path.join(world.cache, "tmp")) == []


def test_two_for_one_variant(world):
    world.clear()
    one_built([ended(p) for p in [start(world, "tiny0", fresh=True) for _ in range(2)]])
    tmp_is_empty(world)


def test_ten_for_five_variants(world):
    world.clear()
    running = [(n, start(world, f"tiny{n}", "--out", world.path(f"out{k}"))) for k in range(EACH) for n in range(VARIANTS)]
    results = {n: [] for n in range(VARIANTS)}
    for n, p in running:
        results[n].append(ended(p))
    for n in range(VARIANTS):
        one_built(results[n])
    assert len({r[0][0]["record"]["sha256"] for r in results.values()}) == VARIANTS
    wheels = os.listdir(os.path.join(world.cache, "objects", "wheel"))
    assert len(wheels) == VARIANTS, wheels
    tmp_is_empty(world)
    check = world.run("cache", "verify")
    assert check.returncode == 0, check.stderr


def test_the_waiter_goes_on_when_the_owner_is_killed(world):
    world.clear()
    owner = start(world, "slow", "-v")
    for line in owner.stderr:
        if line.rstrip().endswith(": build"):
            break
    waiter = start(world, "slow")
    for line in waiter.stderr:
        if "waiting for" in line:
            break
    assert f"held by process {owner.pid}" in line, line
    owner.kill()
    owner.communicate()
    killed = time.monotonic()
    item, log = ended(waiter)
    assert not item["store_hit"] and builds([log]) == 1, "the waiter has not built it"
    assert time.monotonic() - killed < 300, "it waited for long"
    assert world.run("cache", "verify").returncode == 0
    tmp_is_empty(world)  # what the dead one left goes when the next one opens the store


def test_a_waiter_can_be_stopped(world):
    world.clear()
    owner = start(world, "slow", "-v")
    for line in owner.stderr:
        if line.rstrip().endswith(": build"):
            break
    waiter = start(world, "slow")
    for line in waiter.stderr:
        if "waiting for" in line:
            break
    owner.send_signal(signal.SIGSTOP)  # whoever waits for it does so for ever
    waiter.terminate()
    waiter.communicate(timeout=120)
    owner.send_signal(signal.SIGCONT)
    assert waiter.returncode == 130, waiter.returncode
    ended(owner)


def test_gc_and_info_beside_a_build(world):
    """What the build holds stays, and nobody is in the other's way."""
    world.clear()
    owner = start(world, "tiny0", "-v")
    for line in owner.stderr:
        if line.rstrip().endswith(": unpack"):
            break
    while owner.poll() is None:
        for action in (["gc", "--max-size", "0"], ["info"], ["verify"]):
            result = world.run("cache", *action)
            assert result.returncode == 0, f"cache {action[0]}: {result.stderr}"
    ended(owner)


def prepare(world):
    for n in range(VARIANTS):
        faults_kinds.pin_tiny(world, f"tiny{n}", b"%d" % n)
    faults_kinds.pin_tiny(world, "slow", b"slow", seconds=3)


if __name__ == "__main__":
    main(
        [
            test_two_for_one_variant,
            test_ten_for_five_variants,
            test_the_waiter_goes_on_when_the_owner_is_killed,
            test_a_waiter_can_be_stopped,
            test_gc_and_info_beside_a_build,
        ],
        prepare,
    )
