#!/usr/bin/env python3
"""The Jobs of 'ptbuild matrix --format kubernetes' end with an index: a small executor runs each Job's container with runc, as its security context says, wave after wave.

usage: test_kubernetes_jobs.py PTBUILD      needs root, runc and bubblewrap; the fake torch is built for three instruction sets, with the sandbox and without
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from runc_container import TOP, Container, docker_profile, own_profile

sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
import toy  # noqa: E402

PTBUILD = os.path.abspath(sys.argv[1])
VARIANTS = ("cpu-avx", "cpu-avx2", "cpu-avx512")


def run_job(job, shared, shown):
    """As a kubelet would: user, capabilities, seccomp, /proc and directory of the one container."""
    spec = job["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    security = container["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]} and not security["allowPrivilegeEscalation"], security
    unmasked = security.get("procMount") == "Unmasked"
    assert not unmasked or spec["hostUsers"] is False, "the API refuses it"
    seccomp = {"Localhost": own_profile, "RuntimeDefault": docker_profile}[security["seccompProfile"]["type"]]()
    with Container(user=security["runAsUser"], capabilities=[], seccomp=seccomp, whole_proc=unmasked, shown=shown, places={shared: container["volumeMounts"][0]["mountPath"]}) as box:
        env = [f"{row['name']}={row['value']}" for row in container["env"]]
        return box.run(*container["command"], cwd=container["workingDir"], env=[*env, "PATH=" + os.path.dirname(PTBUILD) + ":/usr/bin:/bin"], limit=job["spec"]["activeDeadlineSeconds"])


def run_matrix(world, *options):
    names = [f"pytorch-python{toy.host_python().replace('.', '')}-{name}" for name in VARIANTS]
    made = subprocess.run([PTBUILD, "matrix", *names, "--format", "kubernetes", "--image", "example.org/ptbuild:1", "--release", "2.9.1-setup-py-env", "--profiles", world.profiles, "--root", "/", "--jobs", "2", *options], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    jobs = json.loads(made.stdout)["items"]
    waves = {}
    for job in jobs:
        waves.setdefault(job["metadata"]["labels"]["ptbuild-wave"], []).append(job)
    assert len(jobs) == 4 and list(waves)[-1] == "index", list(waves)
    with tempfile.TemporaryDirectory(prefix="ptbuild-shared-") as shared:
        os.chown(shared, 1000, 1000)
        for wave, members in waves.items():
            for job in members:
                done = run_job(job, shared, [world.dir])
                assert done.returncode == 0, (job["metadata"]["name"], done.returncode, done.stdout[-1000:], done.stderr[-3000:])
                print(f"wave {wave}: {job['metadata']['name']} is complete", flush=True)
        have = os.listdir(os.path.join(shared, "dist"))
        assert sum(name.endswith(".whl") for name in have) == 3 and "index.html" in have, have


def main():
    if os.geteuid() != 0 or not shutil.which("runc"):
        sys.exit("NOT RUN: test_kubernetes_jobs needs root and runc")
    world = toy.World(PTBUILD)
    try:
        os.chmod(world.dir, 0o755)
        run_matrix(world, "--sandbox", "none")
        run_matrix(world)
        run_matrix(world, "--without-protection", "processes")
    finally:
        world.close()
    print("test_kubernetes_jobs: three matrices ended with an index")


main()
