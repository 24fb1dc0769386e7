"""One build shared out: shards compile into the compiler cache, and a whole build takes it from there."""

import json
import os
import shutil
import subprocess
import threading

from toy import main, record

ERA = "setup-py-env"


def ok(result):
    assert result.returncode == 0, f"exit {result.returncode}: {result.stderr[-2000:]}"
    return result


def refused(result, code, *parts):
    assert result.returncode == code, f"exit {result.returncode} instead of {code}: {result.stderr[-2000:]}"
    for part in parts:
        assert part in result.stderr, f"'{part}' is not in: {result.stderr[-2000:]}"


def shard(world, index, count, *more):
    item = json.loads(ok(world.build(ERA, "--shard", f"{index}/{count}", *more)).stdout)[0]
    assert (item["shard"], item["shards"]) == (index, count), item
    return item


def test_shards_give_the_same_wheel(world):
    whole = record(ok(world.build(ERA, cache=world.path("whole"), env={**os.environ, "CCACHE_DISABLE": "1"})))["record"]
    world.clear()
    shards = [shard(world, i, 3) for i in (1, 2, 3)]
    assert sum(s["units"] for s in shards) == shards[0]["of"] >= 10, shards
    assert all(s["compiler_cache_misses"] >= s["units"] > 0 for s in shards), shards
    assert not world.wheels() and not os.listdir(os.path.join(world.cache, "build"))
    assert os.listdir(os.path.join(world.cache, "compiled"))[0].startswith("shards-")
    last = record(ok(world.build(ERA, "--shard", "last")))["record"]
    build = last["build"]
    assert last["sha256"] == whole["sha256"]
    assert build["units"]["from_compiler_cache"] >= shards[0]["of"], build
    left = [d for d in os.listdir(os.path.join(world.cache, "compiled")) if d.startswith("shards-") and os.listdir(os.path.join(world.cache, "compiled", d))]
    assert not left, left


def test_a_lost_shard_costs_its_share(world):
    """And one that is run again finds what it made; a build of another kind does not: nobody verified that."""
    world.clear()
    first = shard(world, 1, 2)
    again = shard(world, 1, 2)
    assert again["compiler_cache_hits"] >= again["units"] > 0, again
    other = record(ok(world.build(ERA, "--out", world.path("other"), "--jobs", "1")))["record"]["build"]
    assert other["units"]["from_compiler_cache"] == 0, other
    shutil.rmtree(os.path.join(world.cache, "objects", "wheel"))
    shutil.rmtree(os.path.join(world.cache, "compiled", "default"))
    build = record(ok(world.build(ERA, "--shard", "last")))["record"]["build"]
    assert build["compiler_cache_hits"] >= first["units"] and build["compiler_cache_misses"] >= first["of"] - first["units"], build


def test_two_at_once_do_not_wait(world):
    world.clear()
    made = {}
    threads = [threading.Thread(target=lambda i=i: made.update({i: shard(world, i, 2)})) for i in (1, 2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(made) == [1, 2] and made[1]["units"] + made[2]["units"] == made[1]["of"], made


def test_a_wheel_that_is_there_is_taken_and_words(world):
    assert record(ok(world.build(ERA)))["record"]
    item = json.loads(ok(world.build(ERA, "--shard", "2/2")).stdout)[0]
    assert item["store_hit"] and item["wheel"], item
    world.clear()
    text = ok(world.run("build", "--profile", "cpu-avx2", "--release", f"2.9.1-{ERA}", "--shard", "2/3")).stdout
    assert text.startswith("shard 2/3 of pytorch-python3") and " of " in text.splitlines()[1] and "compiled" in text, text


def test_refused(world):
    for bad in ("0/3", "4/3", "3", "a/b", "1/2/3", "-1/2", "1/0", "-2/-1", "+1/4", " 1/ 4"):
        refused(world.build(ERA, "--shard", bad), 2, f"'{bad}' is not a shard", "2/3")
    refused(world.build(ERA, "--shard", ""), 2, "'--shard' needs a value, and its value is empty")
    refused(world.build(ERA, "--shard", "1/2", "--check"), 2, "'--shard' and '--check'")
    for package in ("torchvision", "all"):
        words = [world.ptbuild, "build", "--profile", "cpu-avx2", "--release", "2.9.1", "--package", package, "--shard", "1/2", "--cache", world.path("none")]
        refused(subprocess.run(words, capture_output=True, text=True, timeout=600), 2, "one variant of pytorch")
    world.clear()
    refused(world.build("scikit-build-core", "--shard", "1/2"), 7, "cannot be built in shards", "without --shard")
    assert not os.path.isdir(os.path.join(world.cache, "build")) or not os.listdir(os.path.join(world.cache, "build"))


if __name__ == "__main__":
    main(
        [
            test_shards_give_the_same_wheel,
            test_a_lost_shard_costs_its_share,
            test_two_at_once_do_not_wait,
            test_a_wheel_that_is_there_is_taken_and_words,
            test_refused,
        ]
    )
