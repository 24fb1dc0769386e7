#!/usr/bin/python3
"""Stores that others wrote: wheels without a record or with a wrong one, in the store itself, in a fallback store and on a web server. Each case asserts that ptbuild met it, and that the wheel was
made all the same, with the bytes that it had before.

    test_stores.py PTBUILD [TEST]
"""

import functools
import glob
import hashlib
import http.server
import json
import os
import shutil
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import toy  # noqa: E402

ERA = "setup-py-env"


def prepare(world):
    result = world.build(ERA)
    assert result.returncode == 0, result.stderr
    world.first = toy.record(result)["record"]["sha256"]
    world.number = 0


def store(world):
    """A copy of the first store, and its wheel."""
    world.number += 1
    dir = world.path(f"store-{world.number}")
    shutil.copytree(world.cache, dir, symlinks=True)
    shutil.rmtree(os.path.join(dir, "stamps"))
    os.mkdir(os.path.join(dir, "stamps"))
    (wheel,) = glob.glob(os.path.join(dir, "objects/wheel/*"))
    return dir, wheel


def write(path, data):
    with open(path, "w") as f:
        f.write(data)


def seal(wheel):
    """The manifest that such an object would have: by its own rules nothing is wrong."""
    path = os.path.join(wheel, ".manifest.json")
    with open(path) as f:
        document = json.load(f)
    files = []
    for folder, _, names in os.walk(wheel):
        for name in names:
            if name != ".manifest.json":
                with open(os.path.join(folder, name), "rb") as f:
                    data = f.read()
                files.append({"path": os.path.relpath(os.path.join(folder, name), wheel), "size": len(data), "sha256": hashlib.sha256(data).hexdigest()})
    document["files"] = sorted(files, key=lambda row: row["path"])
    write(path, json.dumps(document))


def no_record(wheel):
    os.unlink(os.path.join(wheel, "build.json"))
    seal(wheel)


def record(change):
    def apply(wheel):
        path = os.path.join(wheel, "build.json")
        with open(path) as f:
            text = change(f.read())
        write(path, text)
        seal(wheel)

    return apply


def renamed(text):
    document = json.loads(text)
    document["wheel"] = "../../../../../../etc/hostname"
    return json.dumps(document)


def another(text):
    """The key of the object is its directory's name; the record says another one."""
    document = json.loads(text)

    def walk(node):
        for key, value in node.items() if isinstance(node, dict) else ():
            if key == "output_key":
                node[key] = "0" * 64
            walk(value)

    walk(document)
    assert json.dumps(document) != text
    return json.dumps(document)


def linked(wheel):
    """No manifest can name a link."""
    path = os.path.join(wheel, "build.json")
    os.unlink(path)
    os.symlink("/etc/hostname", path)


def piped(wheel):
    path = os.path.join(wheel, "build.json")
    os.unlink(path)
    os.mkfifo(path)


def built(world, dir, *args, again=True):
    """The wheel, made anew, and what was said."""
    shutil.rmtree(world.out, ignore_errors=True)
    start = time.monotonic()
    result = world.run("build", "--profile", "cpu-avx2", "--release", f"2.9.1-{ERA}", "--json", *args, cache=dir, timeout=120)
    assert result.returncode == 0 and time.monotonic() - start < 120, result.stderr[-2000:]
    item = toy.record(result)
    assert item["record"]["sha256"] == world.first, item
    assert ("building pytorch" in result.stderr) == again, result.stderr[-2000:]
    return result.stderr


def own(world, change):
    dir, wheel = store(world)
    change(wheel)
    said = built(world, dir)
    assert glob.glob(os.path.join(dir, "quarantine/wheel-*")), said[-2000:]
    return said


def test_untouched_it_is_used(world):
    dir, _ = store(world)
    built(world, dir, again=False)


def test_no_record(world):
    own(world, no_record)


def test_a_record_of_another_wheel(world):
    own(world, record(another))


def test_a_record_that_is_no_json(world):
    own(world, record(lambda text: text[: len(text) // 2]))


def test_a_record_nested_deep(world):
    own(world, record(lambda text: "[" * 200000))


def test_a_record_that_names_a_file_elsewhere(world):
    own(world, record(renamed))


def test_a_record_that_is_a_link(world):
    own(world, linked)


def test_a_record_that_is_a_pipe(world):
    own(world, piped)


def test_a_fallback_store_without_a_record(world):
    """It is passed over, and stays as it is."""
    dir, wheel = store(world)
    no_record(wheel)
    before = sorted(os.listdir(wheel))
    built(world, world.path(f"above-{world.number}"), "--lower-store", dir)
    assert sorted(os.listdir(wheel)) == before


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def remote(world, change):
    dir, wheel = store(world)
    change(wheel)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=dir))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    mine = world.path(f"mine-{world.number}")
    try:
        said = built(world, mine, "--store-url", f"http://127.0.0.1:{server.server_address[1]}")
    finally:
        server.shutdown()
    return mine, said


def manifest(change):
    def apply(wheel):
        path = os.path.join(wheel, ".manifest.json")
        with open(path) as f:
            document = json.load(f)
        change(document["files"])
        write(path, json.dumps(document))

    return apply


def test_a_remote_store_without_a_record(world):
    remote(world, no_record)


def test_a_remote_store_with_another_record(world):
    remote(world, record(another))


def test_a_remote_store_that_writes_elsewhere(world):
    mine, said = remote(world, manifest(lambda files: files[0].update(path="../../../../planted")))
    assert "remote store is not asked again" in said, said
    assert not glob.glob(world.path("**/planted"), recursive=True)


def test_a_remote_store_with_a_file_below_a_file(world):
    """What cannot be right is the server's mistake, and stops nothing."""

    def change(files):
        files.append({**files[0], "path": files[0]["path"] + "/below"})

    _, said = remote(world, manifest(change))
    assert "remote store is not asked again" in said, said


def test_a_remote_store_with_other_bytes(world):
    def change(wheel):
        (path,) = glob.glob(os.path.join(wheel, "*.whl"))
        with open(path, "r+b") as f:
            f.seek(100)
            f.write(b"X" * 16)

    _, said = remote(world, change)
    assert "remote store is not asked again" in said, said


def test_cache_verify_finds_them(world):
    for change in (linked, piped, lambda wheel: os.unlink(os.path.join(wheel, ".manifest.json")), lambda wheel: os.unlink(os.path.join(wheel, "build.json")), no_record, record(another), record(renamed)):
        dir, wheel = store(world)
        change(wheel)
        result = world.run("cache", "verify", cache=dir, timeout=600)
        assert result.returncode == 5 and os.path.basename(wheel)[:12] in result.stdout + result.stderr, (result.returncode, result.stdout, result.stderr)
        assert glob.glob(os.path.join(dir, "quarantine/wheel-*"))


def repacked(world, out):
    """Root repacks in a directory of another user; an ordinary user in its own."""
    (mine,) = glob.glob(os.path.join(world.out, "*.whl"))
    return world.run("repack", mine, "--metadata-rev", "2", "--out", out, timeout=600)


def of_another(path):
    os.mkdir(path)
    if os.getuid() == 0:
        os.chown(path, 65534, 65534)
    return path


def test_repack_writes_through_nothing(world):
    """What lies where the new wheel goes, and what is named so beside it."""
    built(world, world.cache, again=False)
    out, secret = of_another(world.path("theirs")), world.path("secret")
    first = repacked(world, out)
    assert first.returncode == 0, first.stderr
    (made,) = [n for n in os.listdir(out) if n.endswith(".whl")]
    with open(os.path.join(out, made), "rb") as f:
        right = f.read()
    os.unlink(os.path.join(out, made))
    for plant in (lambda p: os.symlink(secret, p), lambda p: os.link(secret, p), os.mkfifo, lambda p: os.symlink("nowhere", p), lambda p: write(p, "short"), os.mkdir):
        write(secret, "swordfish")
        path = os.path.join(out, made)
        plant(path)
        was = os.lstat(path).st_ino
        done = repacked(world, out)
        assert done.returncode in (0, 5, 7, 8) and (done.returncode == 0 or done.stderr.count("ptbuild: error: ") == 1), (done.returncode, done.stderr)
        assert open(secret).read() == "swordfish" and not os.path.exists(os.path.join(out, "nowhere")), done.stderr
        if done.returncode == 0:
            with open(path, "rb") as f:
                assert f.read() == right and not os.path.islink(path), done.stderr
        else:
            assert os.lstat(path).st_ino == was, done.stderr
        os.rmdir(path) if os.path.isdir(path) else os.unlink(path)


def test_repack_of_what_is_no_file(world):
    out = of_another(world.path("mine"))
    for plant in (os.mkfifo, os.mkdir, lambda p: os.symlink("/dev/zero", p), lambda p: os.symlink("nowhere", p)):
        path = os.path.join(of_another(world.path(f"in-{time.monotonic_ns()}")), os.path.basename(glob.glob(os.path.join(world.out, "*.whl"))[0]))
        plant(path)
        result = world.run("repack", path, "--metadata-rev", "2", "--out", out, timeout=600)
        assert result.returncode in (2, 5, 8) and not os.listdir(out), (result.returncode, result.stderr, os.listdir(out))


if __name__ == "__main__":
    toy.main([t for name, t in sorted(globals().items(), key=lambda i: getattr(getattr(i[1], "__code__", None), "co_firstlineno", 0)) if name.startswith("test_") and callable(t)], prepare)
