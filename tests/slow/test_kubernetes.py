#!/usr/bin/env python3
"""The filter of docs/clusters.md makes Kubernetes Jobs that its schema takes, of all waves of a large matrix.

usage: test_kubernetes.py PTBUILD, by a Python that has kubernetes-validate; jq is needed
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import kubernetes_validate

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERSION = "1.37"


def refused(job):
    try:
        kubernetes_validate.validate(job, VERSION, strict=True)
    except kubernetes_validate.ValidationError as ex:
        return ex.message
    return None


def main():
    if not shutil.which("jq"):
        sys.exit("test_kubernetes: no jq here; the package is jq")
    with open(os.path.join(TOP, "docs", "clusters.md"), encoding="utf-8") as f:
        (jq,) = re.findall(r"^```jq\n(.*?)^```$", f.read(), re.M | re.S)
    made = subprocess.run([sys.argv[1], "matrix", "build-pytorch/main", "--format", "json", "--sandbox", "none", "--cache", "/shared/store"], capture_output=True, text=True, check=True)
    jobs = json.loads(made.stdout)["jobs"]
    seen = {}
    for wave in sorted({job["wave"] for job in jobs}):
        with tempfile.NamedTemporaryFile("w", suffix=".jq") as f:
            f.write(jq)
            f.flush()
            out = subprocess.run(["jq", "--argjson", "wave", str(wave), "--arg", "image", "example.org/ptbuild:1", "-f", f.name], input=made.stdout, capture_output=True, text=True, check=True)
        for job in json.loads(out.stdout)["items"]:
            assert refused(job) is None, (job["metadata"]["name"], refused(job))
            seen[job["metadata"]["name"]] = job
    assert len(seen) == len(jobs) > 20, (len(seen), len(jobs))
    assert all(re.fullmatch("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) for name in seen), sorted(seen)
    assert sorted(j["spec"]["template"]["spec"]["containers"][0]["command"] for j in seen.values()) == sorted(j["argv"] for j in jobs)
    wrong = next(iter(seen.values()))
    wrong["spec"]["backoff"] = 2
    assert refused(wrong), "the schema takes a wrong word"
    print(f"test_kubernetes: {len(seen)} Jobs are valid")


main()
