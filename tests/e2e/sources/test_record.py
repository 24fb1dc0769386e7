"""A release whose sources have no verified digest: what the user's machine downloads is recorded for it, and a file that has changed is refused."""

import hashlib
import http.server
import json
import os
import re
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from toy import main, record, replaced  # noqa: E402

ERA = "setup-py-env"
RELEASE = f"2.9.1-{ERA}"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def serve(world):
    """The archive on a server, and the release's row without its digest."""
    os.makedirs(world.path("served"), exist_ok=True)
    archive = world.path("served", f"toy-{ERA}.tar.gz")
    os.replace(world.path(f"{ERA}.tar.gz"), archive)
    world.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: Quiet(*a, directory=world.path("served")))
    threading.Thread(target=world.server.serve_forever, daemon=True).start()
    with open(world.release(ERA)) as f:
        text = f.read()
    text = re.sub(r"sha256: [0-9a-f]{64}", "unproven: nobody recorded it", text)
    text = re.sub(r'urls: \[".*"\]', f'urls: ["http://127.0.0.1:{world.server.server_port}/toy-{ERA}.tar.gz"]', text)
    with open(world.release(ERA), "w") as f:
        f.write(text)
    world.archive = archive
    world.config = world.path("config")
    world.env = {**os.environ, "XDG_CONFIG_HOME": world.config, "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


def run(world, command, *args, **kw):
    return world.run(command, *args, "--json", env=world.env, **kw)


def build(world, command="build", **kw):
    return run(world, command, "--profile", "cpu-avx2", "--release", RELEASE, **kw)


def test_a_digest_is_recorded_and_holds(world):
    file = os.path.join(world.config, "ptbuild", "recorded.yaml")
    with open(world.archive, "rb") as f:
        data = f.read()
    sha256 = hashlib.sha256(data).hexdigest()
    plan = json.loads(build(world, "plan").stdout)
    assert plan["sources"][0]["sha256"] in (None, ""), plan["sources"]
    r = build(world, "fetch")
    assert r.returncode == 3 and f"'ptbuild fetch --release {RELEASE} --record' downloads it" in r.stderr, r.stderr
    r = run(world, "fetch", "--record")
    assert r.returncode == 2 and "--record needs a release" in r.stderr, r.stderr
    r = run(world, "fetch", "--record", "--release", RELEASE, "--package", "pytorch")
    assert r.returncode == 0, r.stderr
    doc = json.loads(r.stdout)
    assert doc["file"] == file and [(s["name"], s["bytes"], s["sha256"]) for s in doc["recorded"]] == [(f"toy-{ERA}.tar.gz", len(data), sha256)], doc
    # Plan, fetch and build follow; the label is the release's own.
    plan = json.loads(build(world, "plan").stdout)
    assert plan["sources"][0]["sha256"] == sha256 and plan["local_label"] == "cpu.avx2", plan
    assert any("recorded on 2" in note for note in plan["notes"]), plan["notes"]
    assert build(world, "fetch").returncode == 0
    r = build(world)
    assert r.returncode == 0, r.stderr
    assert record(r)["record"]["inputs"]["sources"] == [{"name": f"toy-{ERA}.tar.gz", "sha256": sha256}]
    # Once more there is nothing to record.
    r = run(world, "fetch", "--record", "--release", RELEASE)
    assert r.returncode == 0 and json.loads(r.stdout)["recorded"] == [], (r.stdout, r.stderr)
    # Whoever else serves other bytes is refused, and not recorded.
    with open(world.archive, "ab") as f:
        f.write(b"more")
    r = build(world, "fetch", cache=world.path("fresh"))
    assert r.returncode == 5 and sha256 in r.stderr, (r.returncode, r.stderr)
    r = run(world, "fetch", "--record", "--release", RELEASE, cache=world.path("fresh"))
    assert json.loads(r.stdout)["recorded"] == []
    with open(file) as f:
        text = f.read()
    assert text.count("sha256") == 1 and sha256 in text, text


def test_a_table_goes_before_what_was_recorded(world):
    with open(world.release(ERA)) as f:
        was = f.read()
    with open(world.release(ERA), "w") as f:
        f.write(replaced(was, "unproven: nobody recorded it", f"sha256: {'2' * 64}"))
    plan = json.loads(build(world, "plan").stdout)
    assert plan["sources"][0]["sha256"] == "2" * 64 and not any("recorded on" in n for n in plan["notes"]), plan
    with open(world.release(ERA), "w") as f:
        f.write(was)


def test_a_damaged_file_is_named(world):
    file = os.path.join(world.config, "ptbuild", "recorded.yaml")
    with open(file) as f:
        was = f.read()
    for text, said in ((was.replace("sha256: \"", "sha256: \"x"), "recorded.yaml:3: 'sha256': not a sha256"), (was + "\nnothing: 1\n", "recorded.yaml:"), (was[: len(was) // 2], "recorded.yaml")):
        with open(file, "w") as f:
            f.write(text)
        r = build(world, "plan")
        assert r.returncode == 3 and said in r.stderr, (text, r.returncode, r.stderr)
    with open(file, "w") as f:
        f.write(was)
    assert build(world, "plan").returncode == 0


def test_what_cannot_be_recorded(world):
    world.server.shutdown()
    world.server.server_close()
    r = run(world, "fetch", "--record", "--release", RELEASE, cache=world.path("other"))
    assert r.returncode == 0, r.stderr  # it is recorded
    os.remove(os.path.join(world.config, "ptbuild", "recorded.yaml"))
    r = run(world, "fetch", "--record", "--release", RELEASE, cache=world.path("other"))
    assert r.returncode == 4 and f"toy-{ERA}.tar.gz" in r.stderr and not os.path.exists(os.path.join(world.config, "ptbuild", "recorded.yaml")), (r.returncode, r.stderr)
    r = run(world, "fetch", "--record", "--release", RELEASE, "--offline", cache=world.path("other"))
    assert r.returncode == 4, (r.returncode, r.stderr)


main([test_a_digest_is_recorded_and_holds, test_a_table_goes_before_what_was_recorded, test_a_damaged_file_is_named, test_what_cannot_be_recorded], serve)
