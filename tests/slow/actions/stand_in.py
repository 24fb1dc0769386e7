"""What the generated workflows use of GitHub's actions, which are not at hand here: caches in act's own cache server (ACTIONS_CACHE_URL), artifacts in a directory.

As strict as the services: a key is written once, a name of an artifact too, and a repository has 10 GB of caches. What GitHub only warns of (nothing saved) fails here.
"""

import glob
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request

REPOSITORY_BYTES = 10 << 30
BAD_IN_NAMES = '":<>|*?\r\n\\/'


def lines(name):
    return [line.strip() for line in os.environ[name].splitlines() if line.strip()]


def ask(method, path, data=None, headers=None):
    url = urllib.parse.urljoin(os.environ["ACTIONS_CACHE_URL"], "_apis/artifactcache/" + path)
    headers = {"Content-Type": "application/json", **(headers or {})}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60) as reply:
        return reply.status, reply.read()


def version(paths):
    """Caches of other paths are others, as on GitHub."""
    return hashlib.sha256("|".join(paths).encode()).hexdigest()


def restore():
    """The exact key, else the newest whose name begins with one of the others, in their order."""
    paths = lines("PATHS")
    for key in [os.environ["KEY"], *lines("RESTORE_KEYS")]:
        status, text = ask("GET", "cache?" + urllib.parse.urlencode({"keys": key, "version": version(paths)}))
        if status == 200:
            found = json.loads(text)
            with urllib.request.urlopen(found["archiveLocation"], timeout=60) as reply:
                tarfile.open(fileobj=io.BytesIO(reply.read()), mode="r:").extractall(".", filter="fully_trusted")
            print("cache restored from", found["cacheKey"])
            with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as f:
                f.write("cache-hit=%s\n" % ("true" if found["cacheKey"] == os.environ["KEY"] else "false"))
            return
    print("cache not found for", os.environ["KEY"])


def save():
    paths = lines("PATHS")
    there = [path for path in paths if os.path.exists(path)]
    if not there:
        sys.exit("none of these paths exists: " + " ".join(paths))
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:") as tar:
        for path in there:
            tar.add(path)
    data = raw.getvalue()
    book = os.path.join(os.environ["STAND_IN_KEEPS"], "caches")
    with open(book, "a+", encoding="utf-8") as f:
        f.seek(0)
        if sum(int(line.split()[0]) for line in f) + len(data) > REPOSITORY_BYTES:
            sys.exit("the repository's caches would exceed 10 GB")
        f.write("%d %s\n" % (len(data), os.environ["KEY"]))
    try:
        _, text = ask("POST", "caches", json.dumps({"key": os.environ["KEY"], "version": version(paths), "cacheSize": len(data)}).encode())
    except urllib.error.HTTPError as ex:
        sys.exit("the key '%s' is taken: %s" % (os.environ["KEY"], ex.read().decode(errors="replace")))
    where = "caches/%d" % json.loads(text)["cacheId"]
    ask("PATCH", where, data, {"Content-Type": "application/octet-stream", "Content-Range": "bytes 0-%d/*" % (len(data) - 1)})
    ask("POST", where, json.dumps({"size": len(data)}).encode())
    print("cache saved as", os.environ["KEY"], len(data), "bytes")


def artifacts():
    return os.path.join(os.environ["STAND_IN_KEEPS"], "artifacts", os.environ["GITHUB_RUN_ID"])


def upload():
    name, found = os.environ["NAME"], []
    if set(name) & set(BAD_IN_NAMES):
        sys.exit("an artifact cannot be called '%s'" % name)
    for pattern in lines("PATHS"):
        for match in glob.glob(pattern):
            found += [os.path.join(top, f) for top, _, files in os.walk(match) for f in files] if os.path.isdir(match) else [match]
    if not found:
        sys.exit("no files were found" if os.environ["NONE"] == "error" else 0)
    top = os.path.commonpath([os.path.dirname(f) for f in found])
    target = os.path.join(artifacts(), name)
    os.makedirs(target) # fails where the name is taken
    for f in found:
        to = os.path.join(target, os.path.relpath(f, top))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(f, to)
    print("artifact", name, *sorted(os.path.relpath(f, top) for f in found))


def download():
    for name in sorted(os.listdir(artifacts())):
        target = os.environ["PATHS"] if os.environ["MERGE"] == "true" else os.path.join(os.environ["PATHS"], name)
        shutil.copytree(os.path.join(artifacts(), name), target, dirs_exist_ok=True)


{"restore": restore, "save": save, "upload": upload, "download": download}[sys.argv[1]]()
