"""Writes the provenance of ptbuild's own release: FILE.intoto.json next to each file, SLSA v1 in an in-toto statement.

usage: provenance.py COMMIT TREE EPOCH FILE... <SOURCES, "DIGEST PATH" a line
"""
import hashlib
import json
import os
import sys


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def sources(lines):
    return [{"name": os.path.basename(place), "digest": {"sha256": sha256}} for sha256, place in map(str.split, lines)]


def statement(path, commit, tree, epoch, pinned):
    made = [{"name": "ptbuild", "digest": {"gitCommit": commit, "gitTree": tree}}]
    definition = {"buildType": "urn:x-ptbuild:release:1",
                  "externalParameters": {"commit": commit, "epoch": int(epoch)},
                  "resolvedDependencies": made + pinned}
    return {"_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": os.path.basename(path), "digest": {"sha256": digest(path)}}],
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {"buildDefinition": definition, "runDetails": {"builder": {"id": "urn:x-ptbuild:ci-release"}}}}


def main(commit, tree, epoch, *files):
    pinned = sources(sys.stdin)
    for path in files:
        with open(path + ".intoto.json", "w", encoding="utf-8") as file:
            json.dump(statement(path, commit, tree, epoch, pinned), file, sort_keys=True, separators=(",", ":"))


main(*sys.argv[1:])
