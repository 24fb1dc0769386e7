#!/usr/bin/env python3
"""The rows of profiles/bundles.yaml against the Python index: each part's METADATA must have the Requires-Dist lines that name another part, and the Requires-Python, of
its row; the digests of profiles/bundles must be the index's; every application must resolve for every Python that it has. Newer versions are told, not counted.

usage: PYTHON test_bundles.py PTBUILD [--write] (PYTHON: any that has pip; --write: makes the files of profiles/bundles)

Only the index's pages and METADATA are fetched, the latter by pip's own reader of distant archives.
"""
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse
import zipfile

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../..")
PINS = os.path.join(TOP, "profiles/bundles")
HEAD = "ptbuild official 1\n# file, sha256, size, CUDA; made by 'tests/slow/test_bundles.py --write'\n"


def normalized(name):
    return re.sub(r"[-_.]+", "-", name).lower()


class Link:
    def __init__(self, entry, page):
        self.filename, self.sha256, self.size = entry["filename"], entry["hashes"]["sha256"], entry["size"]
        self.url = urllib.parse.urljoin(page, entry["url"])


class Index:
    """The index and the session of pip, and its reader of archives."""

    def __init__(self):
        from pip._internal.commands.install import InstallCommand

        command = InstallCommand("install", "")
        self.context = command.main_context()
        self.context.__enter__()
        options, _ = command.parse_args(["torch"])
        self.session, self.url = command._build_session(options), options.index_url.rstrip("/")
        self.known, self.read = {}, {}

    def links(self, name):
        """Wheels of a distribution by version."""
        from pip._vendor.packaging.version import InvalidVersion, Version

        if name not in self.known:
            answer = self.session.get(f"{self.url}/{name}/", headers={"Accept": "application/vnd.py" "pi.simple.v1+json"})
            answer.raise_for_status()
            self.known[name] = {}
            for entry in answer.json()["files"]:
                if not entry["filename"].endswith(".whl"):
                    continue
                try:
                    version = Version(entry["filename"].split("-")[1])
                except InvalidVersion:
                    continue
                self.known[name].setdefault(version, []).append(Link(entry, answer.url))
        return self.known[name]

    def open(self, link):
        """Requires-Python, the Requires-Dist lines, and the package's version.py."""
        from pip._internal.network.lazy_wheel import LazyZipOverHTTP

        if link.filename not in self.read:
            archive = zipfile.ZipFile(LazyZipOverHTTP(link.url, self.session))
            member = next(n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
            head = archive.read(member).decode().split("\n\n")[0].splitlines()
            version = link.filename.split("-")[0] + "/version.py"
            said = archive.read(version).decode() if version in archive.namelist() else ""
            self.read[link.filename] = *([line.split(": ", 1)[1] for line in head if line.startswith(key + ":")] for key in ("Requires-Python", "Requires-Dist")), said
        return self.read[link.filename]

    def metadata(self, link):
        return self.open(link)[:2]

    def version(self, link):
        return self.open(link)[2]


def machine(filename):
    platform = filename[:-4].split("-")[-1]
    return "any" if platform == "any" else next((m for m in ("x86_64", "aarch64") if "musl" not in platform and "linux" in platform and platform.endswith(m)), None)


def chosen(links, python):
    """One wheel for each Python from the oldest of the application on, ABI and machine: of several the one for the oldest glibc."""
    best = {}
    for link in sorted(links, key=lambda l: l.filename):
        tags = link.filename[:-4].split("-")[-3:]
        version = re.fullmatch(r"cp3(\d+)", tags[0])
        where = machine(link.filename)
        if not where or tags[1].endswith("t") or (version and "abi3" not in tags[1] and not python[0] <= int(version[1]) <= python[1]):
            continue
        best.setdefault((tags[0], tags[1], where), link)
    return [best[k] for k in sorted(best, key=lambda k: (k[2] == "any", k))]


def cuda_of(index, link):
    """"13.0" as the label of a slimmed wheel has it: by version.py, else by what METADATA pins; "-" where nothing says so."""
    said = index.version(link)
    found = re.search(r"^cuda[^\n]*'(\d+\.\d+)'", said, re.M) or re.search(r"\+cu(\d+)(\d)", said)
    if found:
        return ".".join(found.groups())
    pinned = [re.search(r"==(\d+\.\d+)", r) for r in index.metadata(link)[1] if re.match(r"cuda-toolkit\b|nvidia-cuda-runtime\b", r) and "==" in r]
    return pinned[0][1] if pinned and pinned[0] else "-"


def version_of(part):
    from pip._vendor.packaging.version import Version

    return Version(part["wheel"].split("==")[1])


def name_of(part):
    return normalized(part["wheel"].split("==")[0])


def pins(index, row):
    text = HEAD
    own = row["wheels"][0].get("python") or ">=3.10"
    low, high = re.search(r">=3\.(\d+)", own), re.search(r"<3\.(\d+)", own)
    for part in row["wheels"]:
        for link in chosen(index.links(name_of(part))[version_of(part)], (int(low[1]), int(high[1]) - 1 if high else 99)):
            text += f"{link.filename} {link.sha256} {link.size} {cuda_of(index, link) if part['gpus'] else '-'}\n"
    return text


def compare(index, row):
    """What of a row is not what the index has."""
    names, wrong = {name_of(p) for p in row["wheels"]}, []
    for part in row["wheels"]:
        seen = set()
        for link in index.links(name_of(part))[version_of(part)]:
            tags = link.filename[:-4].split("-")
            if not machine(link.filename) or (tags[-3], machine(link.filename)) in seen or len(seen) > 2:
                continue
            seen.add((tags[-3], machine(link.filename)))
            python, lines = index.metadata(link)
            lines = [line for line in lines if normalized(re.match(r"[\w.-]+", line)[0]) in names and "extra ==" not in line]
            if sorted(lines) != sorted(part["requires"]):
                wrong.append(f"{link.filename} requires {lines}")
            if (python or [""])[0] != (part.get("python") or ""):
                wrong.append(f"{link.filename} is for Python {python}")
        newer = [v for v in index.links(name_of(part)) if v > version_of(part) and not v.is_prerelease]
        if newer:
            print(f"    newer than {part['wheel']}: {', '.join(map(str, sorted(newer)))}")
    return wrong


def resolved(ptbuild, row):
    """Pythons, and the longest time that it took."""
    pythons, longest = [], 0.0
    for minor in range(10, 16):
        began = time.monotonic()
        r = subprocess.run([ptbuild, "bundle", row["wheels"][0]["wheel"], "--gpu", "sm90", "--python", f"3.{minor}", "--platform", "x86_64-linux", "--dry-run", "--json", "--profiles", os.path.join(TOP, "profiles")], capture_output=True, text=True)
        longest = max(longest, time.monotonic() - began)
        if r.returncode == 0:
            assert len(json.loads(r.stdout)["wheels"]) == len(row["wheels"]), r.stdout
            pythons.append(f"3.{minor}")
        else:
            assert r.returncode == 7, r.stderr
    return pythons, longest


def main():
    sys.dont_write_bytecode = True
    ptbuild, write = sys.argv[1], "--write" in sys.argv[2:]
    r = subprocess.run([ptbuild, "list", "--bundles", "--json", "--profiles", os.path.join(TOP, "profiles")], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    rows, index, failed = json.loads(r.stdout)["bundles"], Index(), 0
    for row in rows:
        name = f"{row['name']}-{row['version']}"
        text, path = pins(index, row), os.path.join(PINS, name)
        if write:
            os.makedirs(PINS, exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        with open(path, encoding="utf-8") as f:
            same = f.read() == text
        wrong = compare(index, row)
        pythons, longest = resolved(ptbuild, row)
        bad = bool(wrong or not same or not pythons or longest > 5)
        failed += bad
        print(f"{name}: {len(row['wheels'])} parts, {text.count('.whl ')} wheels, Python {', '.join(pythons)}, resolved in at most {longest:.2f} s" + ("" if same else ", OTHER DIGESTS"), flush=True)
        for line in wrong:
            print(f"    {line}")
    print(f"{len(rows)} applications, {failed} failed")
    sys.exit(bool(failed or not rows))


if __name__ == "__main__":
    main()
