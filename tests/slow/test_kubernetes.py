#!/usr/bin/env python3
"""The Jobs of 'ptbuild matrix --format kubernetes' for a large matrix are ones that the schema of Kubernetes takes.

usage: test_kubernetes.py PTBUILD, by a Python that has kubernetes-validate
"""

import json
import re
import subprocess
import sys

import kubernetes_validate

VERSION = "1.37"


def refused(job):
    try:
        kubernetes_validate.validate(job, VERSION, strict=True)
    except kubernetes_validate.ValidationError as ex:
        return ex.message
    return None


def matrix(ptbuild, *options):
    made = subprocess.run([ptbuild, "matrix", "build-pytorch/main", "--format", "kubernetes", "--image", "example.org/ptbuild:1", *options], capture_output=True, text=True, check=True)
    return json.loads(made.stdout), made.stderr


def main():
    for options in ((), ("--sandbox", "none"), ("--without-protection", "processes")):
        document, said = matrix(sys.argv[1], *options)
        assert document["kind"] == "List" and document["apiVersion"] == "v1", document
        jobs = document["items"]
        for job in jobs:
            assert refused(job) is None, (job["metadata"]["name"], refused(job))
        names = [job["metadata"]["name"] for job in jobs]
        assert len(set(names)) == len(names) > 20, len(names)
        assert all(re.fullmatch("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) for name in names), sorted(names)
        assert "darwin" not in " ".join(names) and "mps is left out" in said, said
        print(f"test_kubernetes: {len(names)} Jobs are valid with {' '.join(options) or 'the sandbox'}")
    wrong = jobs[0]
    wrong["spec"]["backoff"] = 2
    assert refused(wrong), "the schema takes a wrong word"


main()
