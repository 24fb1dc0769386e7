"""A package from a source of the user's own, with a release as the base: a folder, a git checkout, an archive and a URL with its digest."""

import glob
import hashlib
import http.server
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from toy import archive, main, record  # noqa: E402

ERA = "setup-py-env"
RELEASE = f"2.9.1-{ERA}"
GIT = ["git", "-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "init.defaultBranch=main"]


def checkout(world, name="own"):
    """The stand-in's files, with a version of their own."""
    top = world.path(name)
    shutil.rmtree(top, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(archive(ERA))) as tar:
        for member in tar.getmembers():
            path = os.path.join(top, member.name.partition("/")[2])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(tar.extractfile(member).read())
    write(f"{top}/version.txt", "2.9.2a0+gitabc\n")
    return top


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def git(top, *words):
    subprocess.run([*GIT, "-C", top, *words], check=True, capture_output=True)


def own(world, command, source, *args, **kw):
    return world.run(command, "--source", source, "--profile", "cpu-avx2", "--release", RELEASE, "--json", *args, **kw)


def plan(world, source, *args):
    r = own(world, "plan", source, *args)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout), r.stderr


def test_a_checkout_is_built_and_marked(world):
    top = checkout(world)
    git(top, "init", "-q")
    git(top, "add", ".")
    git(top, "commit", "-qm", "all")
    p, told = plan(world, top)
    sha256 = p["sources"][0]["sha256"]
    assert p["version"] == "2.9.2a0" and p["local_label"] == f"cpu.avx2.own{sha256[:8]}", p
    assert f"git checkout '{top}', commit " in told and "without changes" in told, told
    r = own(world, "build", top)
    assert r.returncode == 0, r.stderr
    item = record(r)
    assert os.path.basename(item["wheel"]).startswith(f"torch-2.9.2a0+cpu.avx2.own{sha256[:8]}-cp"), item["wheel"]
    assert any(top in note and "without changes" in note for note in item["record"]["notes"]), item["record"]["notes"]
    again = own(world, "build", top, "--offline")
    assert again.returncode == 0 and record(again)["store_hit"], again.stderr
    # A change is told, and is another wheel; what git knows nothing of counts as well.
    write(f"{top}/extra.py", "x = 1\n")
    other, told = plan(world, top)
    assert "with 1 file changed or added" in told and other["local_label"] != p["local_label"], (told, other["local_label"])
    # The official source's wheel keeps its name.
    official = json.loads(world.run("plan", "--profile", "cpu-avx2", "--release", RELEASE, "--json").stdout)
    assert official["local_label"] == "cpu.avx2" and official["version"] == "2.9.1", official


def test_what_git_is_configured_to_run_is_not_run(world):
    top = checkout(world, "configured")
    git(top, "init", "-q")
    git(top, "add", ".")
    git(top, "commit", "-qm", "all")
    mark = world.path("ran")
    git(top, "config", "core.fsmonitor", f"touch {mark}; false")
    plan(world, top)
    assert not os.path.exists(mark)
    git(top, "status")  # it would have been
    assert os.path.exists(mark)


def test_empty_submodules_are_named(world):
    top = checkout(world, "modules")
    write(f"{top}/.gitmodules", '[submodule "x"]\n\tpath = third_party/x\n\turl = ../x\n')
    os.makedirs(f"{top}/third_party/x")
    _, told = plan(world, top)
    assert "has empty git submodules" in told and "third_party/x" in told, told
    write(f"{top}/third_party/x/file", "")
    a, told = plan(world, top)
    assert "submodules" not in told, told
    # What git keeps in a submodule is not of the source.
    write(f"{top}/third_party/x/.git", "gitdir: ../../.git/modules/x\n")
    b, _ = plan(world, top)
    assert a["compile_key"] == b["compile_key"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def test_an_archive_and_a_url_with_its_digest(world):
    top = checkout(world, "packed")
    path = shutil.make_archive(world.path("served", "packed"), "gztar", world.dir, "packed")
    with open(path, "rb") as f:
        sha256 = hashlib.sha256(f.read()).hexdigest()
    p, _ = plan(world, path)
    assert p["sources"][0]["sha256"] == sha256 and p["version"] == "2.9.2a0", p
    assert p["local_label"] != plan(world, top)[0]["local_label"]
    assert plan(world, f"{path}={sha256}")[0]["compile_key"] == p["compile_key"]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: Quiet(*a, directory=os.path.dirname(path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/packed.tar.gz"
    env = {**os.environ, "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
    r = own(world, "plan", f"{url}={sha256}", env=env)
    assert r.returncode == 0 and json.loads(r.stdout)["compile_key"] == p["compile_key"], r.stderr
    r = own(world, "plan", f"{url}={'0' * 64}", env=env)
    assert r.returncode == 5 and sha256 in r.stderr, (r.returncode, r.stderr)
    server.shutdown()
    r = own(world, "build", f"{url}={sha256}", "--offline", env=env)  # it is in the store
    assert r.returncode == 0, r.stderr
    assert own(world, "plan", f"{path}={'0' * 64}").returncode == 5


def test_what_is_refused(world):
    top = checkout(world, "refused")
    silent = checkout(world, "silent")
    os.remove(f"{silent}/version.txt")
    cases = [
        ([silent], 2, "does not say its version"),
        ([top, "--version", "1+x"], 2, "not a version without a label"),
        ([top, "--package", "torchaudio"], 2, "is a source of pytorch, and torchaudio is built"),
        ([world.path("nowhere")], 2, "does not exist"),
        (["http://127.0.0.1:1/x.tar.gz"], 2, "a URL needs the digest of its file"),
        (["http://127.0.0.1:1/x.tar.gz=12"], 2, "not a sha256"),
        ([top, "--source", silent, "--version", "3.0"], 2, "names two sources of pytorch"),
    ]
    for words, status, text in cases:
        r = own(world, "plan", *words)
        assert r.returncode == status and text in r.stderr, (words, r.returncode, r.stderr)
    p, _ = plan(world, silent, "--version", "2.10.0.dev20261128")
    assert p["version"] == "2.10.0.dev20261128" and p["local_label"].startswith("cpu.avx2.own"), p
    # Without a release, the version says which.
    r = world.run("plan", "--source", top, "--profile", "cpu-avx2")
    assert r.returncode == 2 and "no release has pytorch 2.9.2" in r.stderr, r.stderr


def test_a_release_with_another_digest_is_marked(world):
    """A row that looks like the official one: the table of known sources says that it is not."""
    (row,) = glob.glob(world.release(ERA))
    with open(row) as f:
        sha256 = re.search(r"sha256: ([0-9a-f]{64})", f.read())[1]
    known = os.path.join(world.profiles, "known_sources")
    words = ("plan", "--profile", "cpu-avx2", "--release", RELEASE, "--json")

    def label():
        r = world.run(*words)
        assert r.returncode == 0, r.stderr
        return json.loads(r.stdout)["local_label"]

    assert label() == "cpu.avx2"
    write(known, f"# a test\npytorch 2.9.1 {sha256}\n")
    assert label() == "cpu.avx2"
    write(known, f"pytorch 2.9.1 {'1' * 64}\n")
    marked = label()
    assert re.fullmatch(r"cpu\.avx2\.own[0-9a-f]{8}", marked), marked
    write(known, "pytorch 2.9.1 12\n")
    r = world.run(*words)
    assert r.returncode == 3 and "known_sources: not PACKAGE VERSION SHA256" in r.stderr, r.stderr
    os.remove(known)
    assert label() == "cpu.avx2"


main([test_a_checkout_is_built_and_marked, test_what_git_is_configured_to_run_is_not_run, test_empty_submodules_are_named, test_an_archive_and_a_url_with_its_digest, test_what_is_refused, test_a_release_with_another_digest_is_marked])
