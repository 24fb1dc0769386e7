"""ptbuild world, on an archive of 130 small packages of this machine: the lock, the root, what is refused, and drift."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from debsite import Archive, Keys
from toy import main

COUNT = 130
GONE = ("p010", "p020", "p030")
PART = """sources: made for a test
part: {name}
kind: base
suite: toy
components: [main]
python: "3.13"
glibc: "2.41"
packages: [all]
exclude: ["usr/share/man/*"]
keep: []
links:
  - {{path: usr/bin/first, to: p000, why: a test}}
made:
  - {{path: etc/copy, kind: copy, from: usr/share/p001, why: a test}}
"""


class Site:
    """Tables, an archive that is served, and words for the program."""

    def __init__(self, world):
        self.world, self.top = world, world.path("site")
        self.profiles = os.path.join(self.top, "profiles")
        os.makedirs(os.path.join(self.profiles, "worlds"))
        self.keys, self.others = Keys(self.path("keys")), Keys(self.path("others"))
        self.archive = Archive(self.path("debian"), self.keys)
        names = [f"p{i:03}" for i in range(COUNT)]
        for name in names:
            self.archive.put(name, "1.0", self.files(name, "1.0"))
        self.archive.put("all", "1", {"usr/": None}, f"Depends: {', '.join(names)}\n")
        self.locked = time.time() - 3600
        self.archive.publish(self.locked)
        self.url = self.archive.serve()
        self.table("toy")

    @staticmethod
    def files(name, version):
        return {"usr/": None, "usr/bin/": None, f"usr/bin/{name}": f"{name} {version}\n".encode(), "usr/share/": None, f"usr/share/{name}": b"x" * 3000, "usr/share/man/": None, f"usr/share/man/{name}": b"left out"}

    def path(self, *parts):
        path = os.path.join(self.top, *parts)
        os.makedirs(path, exist_ok=True)
        return path

    def table(self, name, text=PART):
        with open(os.path.join(self.profiles, "worlds", f"{name}.yaml"), "w") as f:
            f.write(text.format(name=name))

    def lock(self, name="toy"):
        return glob.glob(os.path.join(self.profiles, "worlds", f"{name}.*.lock"))[0]

    def start(self, *words, cache="first", archive=True, keyring=True, env=None):
        command = [self.world.ptbuild, "world", *words, "--profiles", self.profiles, "--cache", os.path.join(self.top, cache)]
        command += ["--archive", f"debian={self.url}"] if archive else []
        command += ["--keyring", self.keys.ring] if keyring and words[0] in ("make", "lock") else []
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PTBUILD_ARCHIVE") and k != "PTBUILD_LOWER_STORE"}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**clean, "no_proxy": "*", **(env or {})})

    def run(self, *words, **kw):
        with self.start(*words, **kw) as process:
            out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def json(self, *words, **kw):
        done = self.run(*words, "--json", **kw)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


site = None


def prepare(world):
    global site
    site = Site(world)


def refused(done, code, *words):
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    for word in words:
        assert word in done.stderr, (word, done.stderr)


def test_lock_is_made_from_the_signed_index(world):
    done = site.run("lock", "toy")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\+ deb   p007 1\.0, \d+ B$", done.stdout, re.M) and f"{COUNT + 1} added, 0 removed, 0 changed" in done.stdout, done.stdout
    assert not glob.glob(os.path.join(site.profiles, "worlds", "*.lock"))
    doc = site.json("lock", "toy", "--write")
    assert doc["added"] == doc["files"] == COUNT + 1 and doc["written"] == site.lock(), doc
    before = os.stat(site.lock()).st_mtime_ns
    doc = site.json("lock", "toy", "--write")
    assert doc["changes"] == [] and doc["written"] is None and os.stat(site.lock()).st_mtime_ns == before


def test_list_and_show(world):
    row = site.json("list", archive=False)["parts"][0]
    assert (row["part"], row["files"], row["dir"]) == ("toy", COUNT + 1, None), row
    text = site.run("list", archive=False).stdout
    assert re.search(rf"^toy +base .* {COUNT + 1} ", text, re.M), text
    doc = site.json("show", "toy", archive=False)
    part = doc["parts"][0]
    assert len(part["files"]) == COUNT + 1 and part["table"]["links"][0]["path"] == "usr/bin/first" and doc["dir"] is None
    text = site.run("show", "toy", archive=False).stdout
    assert re.search(f"p{COUNT - 1} +1.0 +all\n", text) and "usr/bin/first -> p000 (a test)" in text, text


def test_make_then_hit(world):
    site.archive.connections = 0
    done = site.run("make", "toy")
    assert done.returncode == 0 and f"{COUNT + 1} downloaded" in done.stdout and "drift" not in done.stdout + done.stderr, (done.stdout, done.stderr)
    # 16 threads, and a connection again only where the server let one go
    assert site.archive.connections <= 20, site.archive.connections
    doc = site.json("make", "toy")
    assert doc["hit"] and doc["drift"] == [], doc
    with open(os.path.join(doc["dir"], "usr/bin/p123")) as f:
        assert f.read() == "p123 1.0\n"
    assert os.readlink(os.path.join(doc["dir"], "usr/bin/first")) == "p000"
    assert os.path.exists(os.path.join(doc["dir"], "etc/copy")) and not os.path.exists(os.path.join(doc["dir"], "usr/share/man/p123"))
    assert site.json("list", archive=False)["parts"][0]["dir"] == doc["dir"] == site.json("show", "toy", archive=False)["dir"]
    assert site.json("make", "toy", "--offline", archive=False)["dir"] == doc["dir"]


def test_downloads_that_a_job_keeps_are_enough(world):
    """Jobs of a CI service keep these two parts of a store (CI_FILES_PATHS in driver/core/ci/ci_caches.h)."""
    kept = site.path("kept")
    shutil.copytree(os.path.join(site.top, "first", "objects", "source"), os.path.join(kept, "objects", "source"))
    shutil.copy(os.path.join(site.top, "first", "format"), kept)
    doc = site.json("make", "toy", "--offline", archive=False, cache="kept")
    assert not doc["hit"] and doc["drift"] == [], doc


def test_a_copy_is_the_users_own(world):
    copy = os.path.join(site.top, "copies", "mine")
    doc = site.json("make", "toy", "--copy", copy)
    assert doc["copy"] == copy and doc["copy_differs"] is None and doc["hit"] and os.listdir(os.path.dirname(copy)) == ["mine"], doc
    same = subprocess.run(["diff", "-r", "--no-dereference", doc["dir"], copy], capture_output=True, text=True)
    assert same.returncode == 0, same.stdout
    for path in ("usr/bin/p123", "usr"):
        had, has = os.lstat(os.path.join(doc["dir"], path)), os.lstat(os.path.join(copy, path))
        assert (had.st_mode, had.st_mtime_ns) == (has.st_mode, has.st_mtime_ns) and had.st_ino != has.st_ino, path
    done = site.run("make", "toy", "--copy", copy)
    assert f"  copy      {copy}: it already existed\n" in done.stdout and site.json("make", "toy", "--copy", copy)["copy_differs"] == 0, done
    # it may be changed, and the same command leaves it as it is, and says so
    with open(os.path.join(copy, "usr/bin/p123"), "w") as f:
        f.write("mine\n")
    done = site.run("make", "toy", "--copy", copy, "--quiet")
    assert done.returncode == 0 and done.stdout == copy + "\n", done
    with open(os.path.join(copy, "usr/bin/p123")) as f:
        assert f.read() == "mine\n"
    os.unlink(os.path.join(copy, "usr/bin/first"))
    with open(os.path.join(copy, "usr/bin/more"), "w"):
        pass
    done = site.run("make", "toy", "--copy", copy)
    assert f"{copy}: it already existed and stays, with 2 of the world's files missing or changed, first 'usr/bin/first'; remove it" in done.stdout, done
    assert site.json("make", "toy", "--copy", copy)["copy_differs"] == 2 and not os.path.lexists(os.path.join(copy, "usr/bin/first"))
    assert site.run("verify", "toy", archive=False).returncode == 0


def test_what_is_there_is_not_copied_over(world):
    there = site.path("copies", "there")
    refused(site.run("make", "toy", "--copy", there, archive=False, cache="none"), 2, "'" + there + "' already exists, and is not a copy of a world", "--copy")
    assert os.listdir(there) == []
    stamp = os.path.join(site.path("copies", "there", "etc"), "ptbuild-world")
    for name, key, says in (("other", "0" * 64, "the world 'other'"), ("toy", "0" * 64, "with other packages")):
        with open(stamp, "w") as f:
            f.write(f"{name} x86_64-linux {key}\n")
        refused(site.run("make", "toy", "--copy", there), 2, says)
    file = os.path.join(site.top, "copies", "file")
    with open(file, "w") as f:
        f.write("kept")
    refused(site.run("make", "toy", "--copy", file), 2, "'" + file + "' already exists")
    refused(site.run("list", "--copy", file, archive=False), 2, "world list does not support --copy")


def test_places_where_no_copy_may_be(world):
    store = os.path.join(site.top, "none")
    by_link, dangling = os.path.join(site.top, "by-link"), os.path.join(site.top, "dangling")
    os.symlink(site.top, by_link)
    os.symlink("/nowhere/at/all", dangling)
    for copy in (os.path.join(store, "worlds", "mine"), store, os.path.join(by_link, "none", "mine")):
        refused(site.run("make", "toy", "--copy", copy, archive=False, cache="none"), 2, "'" + copy + "' is in the store '" + store, "--copy")
    for copy in (dangling, os.path.join(dangling, "mine")):
        refused(site.run("make", "toy", "--copy", copy, archive=False, cache="none"), 2, "'" + dangling + "' is a link that leads nowhere", "--copy")
    assert not os.path.exists(store) and os.readlink(dangling) == "/nowhere/at/all" and not glob.glob(site.top + "/*.ptbuild-*")
    inside = os.path.join(site.top, "first", "mine")
    refused(site.run("make", "toy", "--copy", inside), 2, "is in the store")
    assert not os.path.exists(inside)
    os.unlink(by_link)
    os.unlink(dangling)


def test_what_a_kill_left_of_a_copy_goes(world):
    copy = os.path.join(site.top, "copies", "again")
    os.makedirs(os.path.join(copy + ".ptbuild-part", "usr"))
    with open(copy + ".ptbuild-lock", "w"):
        pass
    assert site.run("make", "toy", "--copy", copy).returncode == 0
    assert sorted(os.listdir(os.path.dirname(copy))) == ["again", "file", "mine", "there"]
    assert os.path.exists(os.path.join(copy, f"usr/bin/p{COUNT - 1}"))


def test_verify_names_what_changed(world):
    done = site.run("verify", "toy", archive=False)
    assert done.returncode == 0, done.stderr
    copy = world.path("site", "damaged")
    shutil.copytree(os.path.join(site.top, "first"), copy, symlinks=True)
    dir = site.json("show", "toy", archive=False, cache="damaged")["dir"]
    path = os.path.join(dir, "usr/bin/p123")
    stat = os.stat(path)
    os.chmod(path, 0o644)
    with open(path, "r+") as f:
        f.write("q")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    os.chmod(path, stat.st_mode)
    refused(site.run("verify", "toy", archive=False, cache="damaged"), 5, "usr/bin/p123")
    shutil.rmtree(copy)


def test_a_killed_make_leaves_no_broken_world(world):
    """At twenty moments of a make, each with a fresh store, half of them by the signal that cannot be caught."""
    begin = time.monotonic()
    whole = site.json("make", "toy", cache="whole")
    took = time.monotonic() - begin
    manifest = read_bytes(os.path.dirname(whole["dir"]), "manifest")
    killed = 0
    for i in range(20):
        cache = f"killed{i}"
        process = site.start("make", "toy", cache=cache)
        time.sleep(took * (i + 0.5) / 20)
        process.send_signal(signal.SIGKILL if i % 2 else signal.SIGTERM)
        process.communicate(timeout=600)
        killed += process.returncode != 0
        made = glob.glob(os.path.join(site.top, cache, "worlds", "*"))
        shown = site.json("show", "toy", archive=False, cache=cache)["dir"] if os.path.isdir(os.path.join(site.top, cache)) else None
        assert (shown is not None) == (made != []), (i, made, shown)
        if made:
            done = site.run("verify", "toy", archive=False, cache=cache)
            assert done.returncode == 0, (i, done.stderr)
        again = site.json("make", "toy", cache=cache)
        assert again["key"] == whole["key"] and read_bytes(os.path.dirname(again["dir"]), "manifest") == manifest, i
        assert os.listdir(os.path.join(site.top, cache, "tmp")) == [], i
        shutil.rmtree(os.path.join(site.top, cache))
    # How long a make takes changes with what else runs: the earliest kills are sure to hit one.
    assert killed >= 4, (killed, took)
    shutil.rmtree(os.path.join(site.top, "whole"))


def read_bytes(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def test_changed_package_in_the_store_is_refused_and_named(world):
    doc = site.json("make", "toy", cache="bytes")
    shutil.rmtree(os.path.dirname(doc["dir"]))
    (path,) = glob.glob(os.path.join(site.top, "bytes", "objects", "source", "**", "p050_1.0_all.deb"), recursive=True)
    os.chmod(path, 0o644)
    with open(path, "r+b") as f:
        f.seek(200)
        byte = f.read(1)
        f.seek(200)
        f.write(bytes([byte[0] ^ 1]))
    refused(site.run("make", "toy", "--offline", archive=False, cache="bytes"), 4, "p050_1.0_all.deb", "--offline forbids")
    done = site.run("make", "toy", cache="bytes")
    assert done.returncode == 0 and "p050" in done.stderr and "1 downloaded" in done.stdout, (done.stdout, done.stderr)
    shutil.rmtree(os.path.join(site.top, "bytes"))


def lose(site):
    """Three packages get new versions; the archive keeps no older ones."""
    snapshot = os.path.join(site.top, "snapshot")
    if not os.path.exists(snapshot):
        shutil.copytree(site.archive.top, snapshot)
        for name in GONE:
            site.archive.put(name, "1.1", site.files(name, "1.1"))
    site.archive.publish()
    return snapshot


def test_drift_is_told_recorded_and_keyed(world):
    locked = site.json("make", "toy")["key"]
    lose(site)
    refused(site.run("make", "toy", "--no-drift", cache="second"), 4, "3 packages", *GONE, "--no-drift forbids", "ptbuild world lock toy")
    doc = site.json("make", "toy", cache="second")
    assert doc["drift"] == [f"{name} 1.0 1.1" for name in GONE] and doc["key"] != locked and not doc["hit"], doc
    with open(os.path.join(doc["dir"], "usr/bin/p010")) as f:
        assert f.read() == "p010 1.1\n"
    with open(os.path.join(doc["dir"], "etc/ptbuild-world")) as f:
        assert f.read().split()[2] == doc["key"]
    done = site.run("make", "toy", cache="second")
    assert done.returncode == 0 and all(line.startswith("drift: ") for line in done.stdout.splitlines()), done.stdout
    for name in GONE:
        assert f"drift: '{name}' 1.0 is no longer in the archive; using 1.1" in done.stderr, done.stderr
    # With the pinned ones at hand there is no drift, whatever the archive has.
    assert site.json("make", "toy", cache="first")["drift"] == []


def test_snapshot_and_mirror_come_before_drift(world):
    snapshot = lose(site)
    for words in (["--archive", f"debian-snapshot={snapshot}"], ["--mirror", mirror(snapshot)]):
        doc = site.json("make", "toy", "--no-drift", *words, cache="third")
        assert doc["drift"] == [] and doc["downloaded"] == COUNT + 1, doc
        shutil.rmtree(os.path.join(site.top, "third"))
    doc = site.json("make", "toy", "--no-drift", "--lower-store", os.path.join(site.top, "first"), cache="third")
    assert doc["drift"] == []
    shutil.rmtree(os.path.join(site.top, "third"))


def mirror(snapshot):
    flat = os.path.join(site.top, "flat")
    if not os.path.exists(flat):
        os.mkdir(flat)
        for name in GONE:
            shutil.copy(glob.glob(os.path.join(snapshot, "pool/main/p", name, "*.deb"))[0], flat)
    return flat


def test_bad_indexes_are_refused(world):
    lose(site)
    fill = ["make", "toy"]
    shutil.copytree(os.path.join(site.top, "second"), os.path.join(site.top, "fourth"), symlinks=True)
    try:
        site.archive.publish(keys=site.others)
        refused(site.run(*fill, cache="fourth"), 5, "signature of 'InRelease' is not good")
        site.archive.publish(site.locked - 86400)
        refused(site.run(*fill, cache="fourth"), 5, "older than that of the lock")
        site.archive.publish(until=time.time() - 60)
        refused(site.run(*fill, cache="fourth"), 5, "expired")
        site.archive.publish(suite="other")
        refused(site.run(*fill, cache="fourth"), 5, "'toy'", "'other'")
        os.unlink(os.path.join(site.archive.top, "dists", "toy", "InRelease"))
        for words in ([], ["--no-drift"]):
            refused(site.run(*fill, *words, cache="fourth"), 4, "packages of 'toy' cannot be had: no index of 'toy'", "404", "--archive debian=URL")
        site.archive.publish()
        refused(site.run(*fill, "--keyring", "/nonexistent", keyring=False, cache="fourth"), 2, "--keyring", "does not exist")
        refused(site.run("lock", "toy", "--offline", cache="fourth"), 4, "--offline forbids")
    finally:
        site.archive.publish()


def age(dir, seconds):
    """A world was last used so long ago."""
    old = time.time() - seconds
    os.utime(os.path.join(os.path.dirname(dir), "world.json"), (old, old))


def test_a_place_that_is_no_archive_is_named(world):
    """Not drift: nothing has left an archive that never was one."""
    done = site.run("make", "toy", "--archive", f"debian={site.url}/nothing", archive=False, cache="none")
    refused(done, 4, "what is named as 'debian' is not an archive of Debian", "nothing/dists/toy/InRelease", "--archive debian=URL")
    assert "have left" not in done.stderr and done.stderr.count("warning") == 4, done.stderr
    assert f"and {COUNT + 1 - 4} more files could not be fetched" in done.stderr, done.stderr


def test_gc_removes_what_no_table_names(world):
    drifted = site.json("make", "toy", cache="second")
    site.table("other", PART.replace("usr/bin/first", "usr/bin/second"))
    shutil.copy(site.lock(), site.lock().replace("toy.", "other."))
    with open(site.lock("other")) as f:
        text = f.read()
    with open(site.lock("other"), "w") as f:
        f.write(re.sub(r"^part toy ", "part other ", text, flags=re.M))
    doc = site.json("make", "other", cache="first")
    kept = site.json("make", "toy", cache="first")["dir"]
    for path in glob.glob(os.path.join(site.profiles, "worlds", "other.*")):
        os.unlink(path)
    # What was used within the last hour stays.
    said = site.json("gc", archive=False, cache="first")
    assert said["removed"] == [] and os.path.isdir(doc["dir"]), said
    age(doc["dir"], 3500)
    assert site.json("gc", archive=False, cache="first")["removed"] == []
    age(doc["dir"], 3700)
    said = site.json("gc", "--dry-run", archive=False, cache="first")
    assert [r["key"] for r in said["removed"]] == [doc["key"]] and os.path.isdir(doc["dir"]), said
    said = site.json("gc", archive=False, cache="first")
    assert [r["key"] for r in said["removed"]] == [doc["key"]] and not os.path.exists(doc["dir"]) and os.path.isdir(kept), said
    # One with drift has a key that no table names.
    age(drifted["dir"], 3700)
    said = site.json("gc", archive=False, cache="second")
    assert [r["key"] for r in said["removed"]] == [drifted["key"]], said
    assert site.json("gc", archive=False, cache="first")["removed"] == []
    age(kept, 3 * 86400)
    assert site.json("gc", "--keep-days", "4", archive=False, cache="first")["removed"] == []
    assert [r["dir"] for r in site.json("gc", "--keep-days", "2", archive=False, cache="first")["removed"]] == [os.path.dirname(kept)]


def test_refusals(world):
    refused(site.run("mak", "toy", archive=False), 2, "not an action of world: 'mak'", "'make'")
    refused(site.run("list", "toy", archive=False), 2, "has no name")
    done = site.run("list", "--platform", "aarch64-linux", archive=False)
    assert done.returncode == 0 and "no lock" in done.stdout and "x86_64-linux" not in done.stdout, done
    refused(site.run("show", archive=False), 2, "needs one name, not 0")
    refused(site.run("show", "toyy", archive=False), 3, "unknown part of a world: 'toyy'", "'toy'")
    refused(site.run("show", "toy", "--platform", "arm64-linux", archive=False), 2, "arm64-linux", "aarch64-linux")
    refused(site.run("show", "toy", "--no-drift", archive=False), 2, "world show does not support --no-drift")
    refused(site.run("lock", "toy", "--base", "toy"), 2, "--base toy does not apply")
    refused(site.run("gc", "--keep-days", "x", archive=False), 2, "'--keep-days'")
    refused(site.run("make", "toy", "--archive", "debian", archive=False, cache="none"), 2, "not NAME=URL")
    refused(site.run("verify", "toy", archive=False, cache="none"), 3, "is not made", "ptbuild world make toy", f"--profiles {site.profiles} --cache {site.top}/none")
    empty = tempfile.mkdtemp(dir=site.top)
    done = site.run("make", "toy", archive=False, cache="none", env={"PATH": empty})
    refused(done, 4, "no address of the archive 'debian' is known", "PTBUILD_ARCHIVE_DEBIAN", "--archive debian=URL")
    done = site.run("lock", "toy", archive=False, cache="none", env={"PATH": empty, "PTBUILD_ARCHIVE_DEBIAN": site.url})
    refused(done, 8, "no apt-get is on this machine", "install the package 'apt'", "--archive debian-snapshot=URL")


def test_a_part_that_is_not_for_a_platform(world):
    site.table("sums", "sources: a test\npart: {name}\nkind: library\nplatforms: [x86_64-linux]\nprefix: usr/sums\nwheels: [a==1]\nplaces: [{{wheel: a, from: a, to: usr/sums}}]\n")
    refused(site.run("lock", "sums", "--platform", "aarch64-linux"), 3, "part 'sums' is not for aarch64-linux", "'ptbuild world list --platform aarch64-linux'")
    listed = {platform: [r["part"] for r in site.json("list", "--platform", platform, archive=False)["parts"]] for platform in ("x86_64-linux", "aarch64-linux")}
    assert listed == {"x86_64-linux": ["sums", "toy"], "aarch64-linux": ["toy"]}, listed


def test_keys_are_closed(world):
    site.keys.close()
    site.others.close()


if __name__ == "__main__":
    # Thousands of files that are made durable: in memory, this waits for no disk.
    if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 1 << 29:
        tempfile.tempdir = "/dev/shm"
    main([t for n, t in list(globals().items()) if n.startswith("test_")], prepare)
