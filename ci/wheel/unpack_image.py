#!/usr/bin/env python3
"""Unpacks an OCI image in a tar file that has one image, layer over layer, and checks its digests and its names.

    ci/wheel/unpack_image.py IMAGE DIR NAME      NAME, for example: ptbuild:1.0"""
import gzip
import hashlib
import io
import json
import sys
import tarfile


def main(image, directory, name):
    with tarfile.open(image) as tar:

        def blob(entry):
            data = tar.extractfile("blobs/" + entry["digest"].replace(":", "/")).read()
            if "sha256:" + hashlib.sha256(data).hexdigest() != entry["digest"] or len(data) != entry["size"]:
                sys.exit("unpack_image: %s has other bytes" % entry["digest"])
            return data

        manifests = json.load(tar.extractfile("index.json"))["manifests"]
        names = [[note.get(key) for key in ("org.opencontainers.image.ref.name", "io.containerd.image.name")] for note in (m.get("annotations", {}) for m in manifests)]
        docker = json.load(tar.extractfile("manifest.json"))
        names += [part["RepoTags"] for part in docker]
        if names != [[name, "docker.io/library/" + name], [name]]:
            sys.exit("unpack_image: the image's names are %s" % names)
        manifest = json.loads(blob(manifests[0]))
        paths = ["blobs/" + entry["digest"].replace(":", "/") for entry in (manifest["config"], *manifest["layers"])]
        if [docker[0]["Config"], *docker[0]["Layers"]] != paths:
            sys.exit("unpack_image: manifest.json names other files than index.json")
        for layer in manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob(layer)))) as part:
                part.extractall(directory)


if len(sys.argv) != 4:
    sys.exit("usage: ci/wheel/unpack_image.py IMAGE DIR NAME")
main(*sys.argv[1:])
