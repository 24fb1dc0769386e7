#!/usr/bin/python3
"""Names, URLs and files of others that must not become code, options, addresses or words for the terminal."""

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import toy  # noqa: E402
from wheelsite import index, make_wheel  # noqa: E402

SECRET = "swordfish"
HIDDEN = "\x7f\u009b\u202e\u2066\U000e0041"
# A Python that says its version and has no pip.
PYTHON = '#!/bin/sh\ncase "$2" in -c) exec /usr/bin/python3 "$@";; esac\necho "$@" >"$0.words"\nexit 3\n'


class Listing:
    """A server that has the listing of an index at any address."""

    def __init__(self, folder):
        with open(os.path.join(folder, "simple", "ptbuild.json"), "rb") as f:
            data = f.read()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self.httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.httpd.server_address[1]
        threading.Thread(target=self.httpd.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.httpd.shutdown()
        self.httpd.server_close()


def served(world):
    out = world.path("served")
    if not os.path.exists(out):
        os.makedirs(out)
        make_wheel(out, "torch", "2.6.0+cpu", marked=True)
        index(world.ptbuild, out)
    return out


def python(world):
    path = world.path("python")
    with open(path, "w") as f:
        f.write(PYTHON)
    os.chmod(path, 0o755)
    return path


def run(world, *args, env=None, **kw):
    return subprocess.run(world.command(*args), capture_output=True, text=True, timeout=300, env={**os.environ, **(env or {})}, **{"cwd": world.dir, **kw})


def planted(world):
    """A directory with modules of the names that Python and pip look for."""
    here = world.path("planted")
    os.makedirs(here, exist_ok=True)
    for name in ("pip", "venv", "sysconfig", "json"):
        with open(os.path.join(here, f"{name}.py"), "w") as f:
            f.write(f"open({here + '/ran'!r}, 'w').close()\n")
    return here


def test_install_runs_no_module_of_the_current_directory(world):
    here = planted(world)
    done = run(world, "install", served(world), "--python", "/usr/bin/python3", "--", "--dry-run", "--no-deps", "--no-index", cwd=here, env={"PYTHONPATH": here})
    assert done.returncode in (0, 8), done.stderr
    assert "/usr/bin/python3 -I -m pip install" in done.stderr, done.stderr
    assert not os.path.exists(f"{here}/ran"), done.stderr


def test_pin_runs_no_module_of_the_current_directory(world):
    here, tools = planted(world), world.path("tools")
    os.makedirs(tools)
    for name in ("python3", "env"):
        os.symlink(f"/usr/bin/{name}", f"{tools}/{name}")
    env = {n: v for n, v in os.environ.items() if not n.startswith("PIP_")}
    done = subprocess.run(world.command("slim", "--release", "9.9.9", "--pin", "torch==9.9.9"), capture_output=True, text=True, timeout=300, cwd=here, env={**env, "PATH": tools, "PYTHONPATH": here, "PIP_INDEX_URL": ""})
    assert done.returncode == 4, (done.returncode, done.stderr)
    assert not os.path.exists(f"{here}/ran"), done.stderr


def test_password_of_an_index_is_not_printed(world):
    with Listing(served(world)) as server:
        url = f"http://me:{SECRET}@127.0.0.1:{server.port}/"
        for words in ((), ("--", f"--index-url=http://you:{SECRET}@127.0.0.1/x", f"http://you:{SECRET}@127.0.0.1/y.whl")):
            done = run(world, "install", url, "--python", python(world), *words, env={"no_proxy": "127.0.0.1"})
            assert done.returncode == 8, done.stderr
            assert SECRET not in done.stdout + done.stderr, done.stderr
            assert f"//127.0.0.1:{server.port}/" in done.stderr, done.stderr
            with open(world.path("python.words")) as f:
                assert f.read().count(SECRET) == 1 + 2 * bool(words), "the installer needs it"


def test_trusted_host_is_the_host(world):
    with Listing(served(world)) as server:
        for path in ("?x=@evil", "#@evil", "/a@evil/", "/?@evil:1/"):
            done = run(world, "install", f"http://127.0.0.1:{server.port}{path}", "--print", "--json", env={"no_proxy": "127.0.0.1"})
            assert done.returncode == 0, done.stderr
            words = json.loads(done.stdout)["command"]
            assert words[words.index("--trusted-host") + 1] == f"127.0.0.1:{server.port}", words


def test_json_escapes_what_is_not_seen(world):
    for cache in (world.path(f"cache{HIDDEN}"), world.path("cache-ä€😀")):
        done = subprocess.run([world.ptbuild, "cache", "info", "--json", "--cache", cache], capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr
        text = done.stdout.decode()
        assert cache in json.dumps(json.loads(text), ensure_ascii=False), text
        assert not any(c in text for c in HIDDEN), text
        assert ("ä€😀" in text) == ("ä" in cache)


def test_extension_name_is_one_of_a_package(world):
    for name in ("/tmp/x", "a/b", "..", "-x", "a b", "x\x1b[31m"):
        folder = world.path("extension")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        with open(f"{folder}/setup.py", "w") as f:
            f.write(f'from setuptools import setup\nsetup(name="{name}", version="1.0")\n')
        done = run(world, "plan", "--extension", folder, "--profile", "cpu-avx2", "--release", "2.9.1-setup-py-env", "--root", "/")
        assert done.returncode == 5 and "not a valid package name" in done.stderr, (name, done.returncode, done.stderr)
        assert "\x1b" not in done.stderr


def test_base_url_runs_nothing(world):
    out = served(world)
    before = sorted(os.walk(out))
    for url in ("javascript:alert(1)//", " javascript:alert(1)//", "java\tscript:alert(1)//", "\x01javascript:x", "DATA:text/html,x", "vbscript:x", "ftp://host/", "x:y"):
        done = run(world, "index", out, "--base-url", url)
        assert done.returncode == 2 and "--base-url" in done.stderr, (url, done.stderr)
        assert "javascript" not in open(f"{out}/simple/torch/index.html").read()
    assert sorted(os.walk(out)) == before
    for url in ("https://host/wheels", "HTTP://host", "file:///srv/dist", "//host/x", "../../", "wheels/a:b"):
        done = run(world, "index", out, "--base-url", url)
        assert done.returncode == 0, (url, done.stderr)
    index(world.ptbuild, out)


def test_set_name_with_new_line_is_refused(world):
    out = world.path("set-out")
    for name in ("a\nRUN touch evil.yaml", "a\rb.yaml", "\x1b[31m.yaml"):
        path = world.path(name)
        with open(path, "w") as f:
            f.write("profile: sm90-avx2\ntorch: official==2.9.1\ncompanions: [torchvision]\n")
        done = run(world, "bundle", path, "--out", out, "--offline")
        assert done.returncode == 2 and "control characters" in done.stderr, done.stderr
        assert not os.path.exists(out)


if __name__ == "__main__":
    toy.main([f for n, f in sorted(globals().items()) if n.startswith("test_")])
