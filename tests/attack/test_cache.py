#!/usr/bin/python3
"""One build against another through the compiler cache: a hostile package changes what it can reach there, and then another package (or the same in another store) is built from what is left.

Each case asserts that the attack ran and what came of it.

    test_cache.py PTBUILD [TEST]
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import test_ccache_remote  # noqa: E402
import toy  # noqa: E402

ERA = "setup-py-env"
FEW = 3  # units of the stand-in
END = "import atexit, hostile_cache\nif '--cmake-only' not in sys.argv:\n    atexit.register(hostile_cache.run, '{how}')\n"


def unit(files, extra=""):
    """Few and quick ones; with `extra` others than those of the good package."""
    files["csrc/unit.cpp.in"] = f"int toy_unit@UNIT@(int n)\n{{\n\tint sum = 0;{extra}\n\tfor (int i = 0; i < n; i++)\n\t\tsum += i * @UNIT@;\n\treturn sum;\n}}\n".encode()


def hostile(world, name, code, extra="", late=None):
    def change(files):
        unit(files, extra)
        files["hostile_cache.py"] = open(os.path.join(HERE, "hostile_cache.py"), "rb").read()
        text = files["setup.py"].decode()
        text = toy.replaced(text, "\nHERE = ", "\nsys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\n" + code + "\nHERE = ")
        if late:
            text = toy.replaced(text, "build_library(configure_only)\nsetup(", "build_library(configure_only)\n" + late + "\nsetup(")
        files["setup.py"] = text.encode()

    world.pin(ERA, change, name)


def tree_of(world, domain=""):
    """All of the shared cache: name to bytes."""
    top = os.path.join(world.cache, "compiled", domain)
    return {os.path.relpath(p, top): open(p, "rb").read() for p in glob.glob(f"{top}/**", recursive=True) if os.path.isfile(p)}


def server_of(redis):
    command = ["redis-cli", "-p", str(redis.port), "-a", test_ccache_remote.PASSWORD, "--no-auth-warning", "-n", "3", "get"]
    return {k: subprocess.run([*command, k], capture_output=True).stdout for k in redis.ask("keys", "*").split()}


def attacks(world, result):
    tree = re.search(r"building \S+ \(tree (.*)\)", result.stderr)[1]
    log = open(os.path.join(tree, "log/build.log")).read()
    return dict(line[len("ATTACK "):].split(": ", 1) for line in log.splitlines() if line.startswith("ATTACK ")), tree


def forget(world):
    """All but what was compiled."""
    for name in ("objects", "build"):
        shutil.rmtree(os.path.join(world.cache, name), ignore_errors=True)


def good(world, *args, release=ERA, **kw):
    result = world.build(release, *args, **kw)
    assert result.returncode == 0, result.stderr
    return result, toy.record(result)["record"]


def counts(record):
    return record["build"]["compiler_cache_hits"], record["build"]["compiler_cache_misses"]


class State:
    """What the tests, which follow each other, hand on."""


def test_a_good_build_fills_both(world):
    world.redis = test_ccache_remote.Redis()
    _, world.first = good(world, "--ccache-remote", world.redis.url)
    world.store, world.server = tree_of(world), server_of(world.redis)
    assert counts(world.first)[1] >= FEW and len(world.store) >= 4 * FEW and len(world.server) >= 4 * FEW
    assert all(n.startswith("default/pytorch/") for n in world.store), sorted(world.store)


def same_as_before(world):
    assert tree_of(world) == world.store
    assert server_of(world.redis) == world.server


def test_a_failed_build_leaves_nothing(world):
    result = world.build("failing", "--ccache-remote", world.redis.url)
    ran, _ = attacks(world, result)
    assert "['/ptbuild/remote']" in ran["reach"] and "Read-only" in ran["reach"], ran
    assert result.returncode == 6 and len(ran) == 6, (result.returncode, ran, result.stderr)
    same_as_before(world)


def test_another_domain(world):
    """It takes what the default has, and all it changes stays in its own; the server likewise."""
    result, record = good(world, "--keep", "--ccache-domain", "pr-17:default", "--ccache-remote", world.redis.url, release="hostile")
    ran, _ = attacks(world, result)
    assert len(ran) == 6 and counts(record)[0] >= FEW, (ran, counts(record))
    assert tree_of(world, "pr-17") and tree_of(world, "default") == {n.removeprefix("default/"): d for n, d in world.store.items()}
    here = server_of(world.redis)
    assert {k: v for k, v in here.items() if ":pr-17/" not in k} == world.server and len(here) > len(world.server)
    forget(world)
    shutil.rmtree(os.path.join(world.cache, "compiled/pr-17"))
    for key in here.keys() - world.server.keys():
        world.redis.ask("del", key)


def test_a_verified_build_replaces_nothing(world):
    result, record = good(world, "--keep", "--ccache-remote", world.redis.url, release="hostile")
    ran, tree = attacks(world, result)
    assert counts(record)[0] >= FEW, counts(record)  # so these are the keys of the good build
    # The attacks: each could be done, where the build may do as it likes.
    assert re.fullmatch(r"(\d+) of \1", ran["results"]) and re.fullmatch(r"(\d+) of \1", ran["manifests"]), ran
    assert re.match(r"\d+ \[b'\+OK\\r\\n'\] b'-ERR", ran["sets"]), ran["sets"]
    assert ran["plant"] == "7" and "ccache.conf" in ran["configure"], ran
    front = os.path.join(tree, "ccache")
    swapped = [p for p in glob.glob(f"{front}/?/?/*R") if os.path.isfile(p)]
    names = {os.path.relpath(p, front)[:-1].replace("/", ""): open(p, "rb").read() for p in swapped}
    theirs = {n: d for n, d in names.items() if f"default/pytorch/{n[:2]}/{n[2:]}" in world.store}
    assert len(theirs) >= FEW and all(world.store[f"default/pytorch/{n[:2]}/{n[2:]}"] != d for n, d in theirs.items())
    # What came of it.
    for before, now in ((world.store, tree_of(world)), (world.server, server_of(world.redis))):
        assert {n: now.get(n) for n in before} == before
        assert not any("poison" in n or d in (b"poison", b"poison\n") for n, d in now.items())
    assert "ran" not in os.listdir(front)


def test_nothing_but_entries(world):
    """Links, a FIFO, a socket, a directory, 1 GiB, and bytes that are none of ccache's under an entry's name."""
    assert max(map(len, tree_of(world).values())) < 1 << 20
    planted = [n for n in tree_of(world) if n.startswith("default/pytorch/ff/0123456789abcdefghijklmnopqrst")]
    assert not planted, planted
    top = os.path.join(world.cache, "compiled")
    assert all(os.path.isdir(p) or os.path.isfile(p) and not os.path.islink(p) for p in glob.glob(f"{top}/**", recursive=True))
    assert not os.path.exists(os.path.join(top, "ccache.conf"))


def test_the_next_build_gets_what_the_first_made(world):
    forget(world)
    result, record = good(world)
    assert counts(record) == (sum(counts(world.first)), 0), (counts(record), result.stderr)
    assert record["sha256"] == world.first["sha256"]


def test_another_store_gets_it_from_the_server(world):
    """And keeps none of it, since it is told so."""
    result, record = good(world, "--ccache-domain", ":default", "--ccache-remote", world.redis.url, cache=world.path("other"))
    assert counts(record) == (sum(counts(world.first)), 0), (counts(record), result.stderr)
    assert record["sha256"] == world.first["sha256"] and record["build"]["compiler_cache"]["remote_hits"] == counts(record)[0]
    assert not glob.glob(world.path("other", "compiled/*"))


def leave_a_command(world, front):
    """Where ccache reads its configuration if nobody says otherwise: here it is read, and the command runs."""
    path = {name: os.path.join(front, name) for name in ("evil", "ccache.conf", "ran")}
    with open(path["evil"], "w") as f:
        f.write('#!/bin/sh\necho ran >>"${0%/*}/ran"\nexec "$@"\n')
    os.chmod(path["evil"], 0o755)
    with open(path["ccache.conf"], "w") as f:
        f.write(f"prefix_command = {path['evil']}\nrecache = true\n")
    with open(world.path("x.c"), "w") as f:
        f.write("int x;\n")
    plain = {k: v for k, v in os.environ.items() if not k.startswith("CCACHE")}
    subprocess.run(["ccache", "gcc", "-c", world.path("x.c"), "-o", world.path("x.o")], check=True, env={**plain, "CCACHE_CONFIGPATH": path["ccache.conf"], "CCACHE_DIR": world.path("own")})
    os.unlink(path["ran"])
    with open(path["ccache.conf"], "w") as f:
        f.write("prefix_command = /ptbuild/ccache/evil\nrecache = true\n")


def test_an_interrupted_build_leaves_nothing_and_goes_on(world):
    """With new units, which a read-only server does not get either."""
    world.store, world.server = tree_of(world), server_of(world.redis)
    options = ("--profile", "cpu-avx2", "--release", "2.9.1-slow", "--json", "--ccache-remote", world.redis.url)
    child = world.start("build", *options)
    until = time.monotonic() + 120
    while not glob.glob(os.path.join(world.cache, "build/*/src/was-here")) and time.monotonic() < until:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, words = child.communicate(timeout=600)
    assert child.returncode not in (0, None) and glob.glob(os.path.join(world.cache, "build/*/src/was-here")), words
    same_as_before(world)
    for path in glob.glob(os.path.join(world.cache, "build/*/src/build/CMakeFiles/torch_toy.dir/csrc/*.o")) + glob.glob(os.path.join(world.cache, "build/*/src/build/.ninja_log")):
        os.unlink(path)
    front = glob.glob(os.path.join(world.cache, "build/*/ccache"))[0]
    leave_a_command(world, front)
    result, record = good(world, "--keep", "--ccache-remote", world.redis.url + "|read-only", release="slow")
    assert not os.path.exists(os.path.join(front, "ran"))
    assert record["build"]["resumed"] and counts(record)[0] >= FEW, (counts(record), result.stderr)
    assert len(tree_of(world)) >= len(world.store) + 2 * FEW and server_of(world.redis) == world.server


def prepare(world):
    world.pin(ERA, unit)
    hostile(world, "hostile", END.format(how="end"))
    hostile(world, "failing", END.format(how="fail"))
    hostile(world, "slow", "import hostile_cache", " sum += 1; sum -= 1;", "hostile_cache.stop_once()")


def test_the_server_goes(world):
    world.redis.close()


if __name__ == "__main__":
    toy.main([t for name, t in sorted(globals().items(), key=lambda i: getattr(getattr(i[1], "__code__", None), "co_firstlineno", 0)) if name.startswith("test_") and callable(t)], prepare)
