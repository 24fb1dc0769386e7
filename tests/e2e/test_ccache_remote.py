"""Compiled objects from elsewhere: a redis server, a web server, the compiler cache of a lower store. Each time a second, empty store builds from there alone, and the build itself has no network."""

import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from toy import main, record

PASSWORD = "not-to-be-seen"
ERA = "setup-py-env"
UNITS = 10  # of the stand-in: nine and the one that calls them


class Redis:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="ptbuild-redis-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--requirepass", PASSWORD, "--save", "", "--appendonly", "no", "--dir", self.dir]
        self.process = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
        for _ in range(6000):
            if self.ask("ping") == "PONG":
                return
            time.sleep(0.05)
        raise AssertionError("redis-server does not start")

    def ask(self, *words):
        command = ["redis-cli", "-p", str(self.port), "-a", PASSWORD, "--no-auth-warning", "-n", "3", *words]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    @property
    def url(self):
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/3"

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.dir)


class Files(http.server.BaseHTTPRequestHandler):
    """As little of a web server as ccache needs: files by their names."""

    def log_message(self, *args):
        pass

    def reply(self, code, body=b""):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        body = self.server.files.get(self.path)
        self.reply(404 if body is None else 200, body or b"")

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["If-None-Match"] == "*" and self.path in self.server.files:
            return self.reply(412)
        self.server.files[self.path] = body
        return self.reply(201)

    do_HEAD = do_GET


def web_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    server.daemon_threads = True
    server.files = {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def build(world, *args, **kw):
    """In a store and an output directory of its own."""
    world.clear()
    result = world.build(ERA, *args, **kw)
    assert result.returncode == 0, result.stderr
    item = record(result)
    assert not item["store_hit"]
    return item["record"], result.stderr


def cached(r):
    return r["build"]["compiler_cache_hits"], r["build"]["compiler_cache_misses"]


def secret_is_nowhere(world, text):
    assert PASSWORD not in text, "the password is in the log"
    for top in (world.cache, world.out):
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    assert PASSWORD.encode() not in open(path, "rb").read(), path


def first_and_second(world, url):
    first, text = build(world, "--keep", "--ccache-remote", url)
    assert cached(first)[1] >= UNITS, cached(first)
    secret_is_nowhere(world, text)
    second, text = build(world, "--keep", "--ccache-remote", url)
    assert cached(second)[1] == 0 and cached(second)[0] == sum(cached(first)), f"{cached(second)} after {cached(first)}"
    assert first["sha256"] == second["sha256"]
    assert first["compile_key"] == second["compile_key"]
    assert f"{sum(cached(first))} on the server" in text or "on the server" in text, text
    secret_is_nowhere(world, text)


def test_redis(world):
    redis = Redis()
    try:
        first_and_second(world, redis.url)
        assert int(redis.ask("dbsize")) >= 2 * UNITS
    finally:
        redis.close()


def test_web_server(world):
    server = web_server()
    first_and_second(world, f"http://user:{PASSWORD}@127.0.0.1:{server.server_address[1]}/cache/")
    assert len(server.files) >= 2 * UNITS and all(re.fullmatch("/cache/default/pytorch/[0-9a-f]{2}/[0-9a-v]+(-[0-9a-f]{16})?", path) for path in server.files), list(server.files)[:3]
    server.shutdown()


def test_lower_store(world):
    first, _ = build(world)
    lower = world.path("lower")
    shutil.rmtree(os.path.join(world.cache, "objects"))  # only what the compilers made
    shutil.rmtree(os.path.join(world.cache, "build"))
    os.rename(world.cache, lower)
    second, text = build(world, "--lower-store", lower)
    assert cached(second) == (sum(cached(first)), 0), f"{cached(second)}: {text}"
    assert first["sha256"] == second["sha256"]


def test_by_the_environment(world):
    server = web_server()
    _, text = build(world, env={**os.environ, "PTBUILD_CCACHE_REMOTE": f"http://127.0.0.1:{server.server_address[1]}/"})
    assert server.files, text
    server.shutdown()


def test_a_dead_server_costs_nothing_but_hits(world):
    for url in ("redis://127.0.0.1:1", "http://127.0.0.1:1/", "redis+unix:/nonexistent"):
        _, text = build(world, "--ccache-remote", url)
        assert text.count("warning: compiler cache: ") == 1, text


def test_a_server_that_talks_nonsense(world):
    listener = socket.create_server(("127.0.0.1", 0))

    def talk():
        while True:
            s, _ = listener.accept()
            s.recv(10)
            s.sendall(b"$99999999999999\r\n*-7 nonsense\r\n" * 50)
            s.close()

    threading.Thread(target=talk, daemon=True).start()
    for kind in ("redis", "http"):
        _, text = build(world, "--ccache-remote", f"{kind}://127.0.0.1:{listener.getsockname()[1]}")
        assert text.count("warning: compiler cache: ") == 1, text
    listener.close()


def test_addresses_that_are_none(world):
    for url in ("memcached://host", "rediss://host", "redis://", "redis://h:port", "redis+unix:relative", f"redis://:{PASSWORD}@host/db", "/tmp"):
        result = world.build(ERA, "--ccache-remote", url)
        assert result.returncode == 2 and "--ccache-remote" in result.stderr, f"{url}: {result.returncode} {result.stderr}"
        assert PASSWORD not in result.stderr


if __name__ == "__main__":
    main(
        [
            test_redis,
            test_web_server,
            test_lower_store,
            test_by_the_environment,
            test_a_dead_server_costs_nothing_but_hits,
            test_a_server_that_talks_nonsense,
            test_addresses_that_are_none,
        ]
    )
