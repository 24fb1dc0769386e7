#!/usr/bin/env python3
"""The script of `ptbuild matrix --format slurm` on a real slurmctld with two nodes, all on this machine: variants that fail, a node that dies, an index that installs.

usage: test_slurm.py PTBUILD [TEST...]
"""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
from slurm_cluster import ENFORCED, LIMITED, Cluster, missing  # noqa: E402
from toy import host_python, main  # noqa: E402
from wheelsite import clean_env, venv  # noqa: E402

ERA = "setup-py-env"
CPUS = ("avx", "avx2", "avx512", "avx512bf16")
IDS = [f"pytorch-python{host_python().replace('.', '')}-cpu-{cpu}" for cpu in CPUS]

# In the place of ptbuild: what the test wants to happen to one job, and then ptbuild. It counts the builds.
WRAPPER = """\
#!/bin/bash
if [ "$1" = build ]; then
	echo "$2 $SLURMD_NODENAME $SLURM_CPUS_PER_TASK" >>{dir}/builds
	if [ -e {dir}/fail-$2 ]; then echo 'ptbuild: error: <b>no</b> & more' >&2; exit 4; fi
	while [ -e {dir}/hold-$2 ]; do sleep 0.2; done
fi
exec {ptbuild} "$@"
"""


class Site:
    def __init__(self, world, cluster=None, ids=IDS, map=None):
        self.world, self.cluster, self.ids = world, cluster or world.cluster, ids
        self.top = tempfile.mkdtemp(prefix="slurm run ", dir=world.dir)
        self.dir = os.path.join(self.top, "it's %j here")
        self.script = os.path.join(self.top, "wheels.sh")
        wrapper = os.path.join(world.dir, "wrapper")
        with open(wrapper, "w", encoding="utf-8") as f:
            f.write(WRAPPER.format(dir=world.dir, ptbuild=world.ptbuild))
        os.chmod(wrapper, 0o755)
        for name in os.listdir(world.dir):
            if name.startswith(("fail-", "hold-")) or name == "builds":
                os.unlink(world.path(name))
        self.env = {"PTBUILD": wrapper}
        self.write(map)

    def write(self, map=None):
        """The script, by a runner map's text."""
        more = []
        if map:
            more = ["--runner-map", os.path.join(self.top, "map.yaml")]
            with open(more[1], "w", encoding="utf-8") as f:
                f.write(map)
        got = subprocess.run([self.world.ptbuild, "matrix", *self.ids, "--release", f"2.9.1-{ERA}", "--profiles", self.world.profiles, "--jobs", "1", "--format", "slurm", *more], capture_output=True, text=True)
        assert got.returncode == 0, got.stderr
        with open(self.script, "w", encoding="utf-8") as f:
            f.write(got.stdout)

    def mark(self, what, id):
        with open(self.world.path(f"{what}-{id}"), "w", encoding="utf-8"):
            pass

    def unmark(self, what, id):
        os.unlink(self.world.path(f"{what}-{id}"))

    def builds(self):
        with open(self.world.path("builds"), encoding="utf-8") as f:
            return [line.split() for line in f]

    def submit(self):
        got = self.cluster.run("bash", self.script, self.dir, **self.env)
        assert got.returncode == 0, got.stderr
        return got.stdout.splitlines()[0]

    def status(self, format="json"):
        got = self.cluster.run(self.world.ptbuild, "matrix", "--status", self.dir, "--format", format)
        assert got.returncode == 0, got.stderr
        return json.loads(got.stdout) if format == "json" else got.stdout

    def states(self):
        return {job["id"]: job["run"]["state"] for job in self.status()["jobs"]}

    def finish(self):
        self.cluster.wait(lambda: not self.cluster.queue(), "the end of all jobs", 900)

    def page(self):
        with open(os.path.join(self.dir, "matrix.html"), encoding="utf-8") as f:
            return f.read()

    def installed(self, cpu):
        python = venv(os.path.join(self.top, f"env-{cpu}"))
        index = "file://" + os.path.join(self.dir, "dist", f"cpu-{cpu}").replace(" ", "%20").replace("%j", "%25j") + "/"
        got = subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--index-url", index, "torch"], capture_output=True, text=True, env=clean_env(HOME=self.world.dir))
        assert got.returncode == 0, got.stderr


def test_a_matrix_and_what_failed_again(world):
    site = Site(world)
    site.mark("fail", IDS[1])
    assert site.submit().startswith("4 of 4 jobs submitted"), site
    assert site.submit().startswith("0 of 4 jobs submitted, 4 wait or run"), "submitted twice"
    site.finish()
    assert site.states() == {id: "failed" if id == IDS[1] else "done" for id in IDS}, site.status("table")
    failed = next(job for job in site.status()["jobs"] if job["id"] == IDS[1])["run"]
    assert (failed["exit"], failed["why"]) == (4, "<b>no</b> & more"), failed
    assert "&#60;b&#62;no&#60;/b&#62; &#38; more" in site.page() and "<b>no" not in site.page()
    site.unmark("fail", IDS[1])
    assert site.submit().startswith("1 of 4 jobs submitted, 0 wait or run, 3 were done"), site
    site.finish()
    assert set(site.states().values()) == {"done"}, site.status("table")
    assert sorted(line[0] for line in site.builds()) == sorted([*IDS, IDS[1]])
    assert {line[1] for line in site.builds()} == {"n1", "n2"} and {line[2] for line in site.builds()} == {"1"}
    assert site.submit().startswith("0 of 4 jobs submitted, 0 wait or run, 4 were done")
    site.finish()
    assert len(site.builds()) == 5
    for cpu in CPUS[:2]:
        site.installed(cpu)


def test_a_node_that_dies_loses_no_variant(world):
    site = Site(world)
    for id in IDS[:2]:
        site.mark("hold", id)
    site.submit()
    site.cluster.wait(lambda: sorted(site.states().values()).count("running") == 2, "two that run")
    victim = next(job for job in site.status()["jobs"] if job["run"]["node"] == "n1")
    site.cluster.kill_node("n1")
    for id in IDS[:2]:
        site.unmark("hold", id)
    site.finish()
    assert set(site.states().values()) == {"done"}, site.status("table")
    again = next(job for job in site.status()["jobs"] if job["id"] == victim["id"])["run"]
    assert (again["node"], again["attempt"]) == ("n2", 2), again
    assert site.cluster.node_states()["n1"].startswith("down"), site.cluster.node_states()
    site.installed(CPUS[0])
    site.cluster.start_node("n1")
    site.cluster.wait(lambda: site.cluster.node_states()["n1"] == "idle", "n1 again")


def test_cancelled_jobs_are_told_and_run_again(world):
    site = Site(world)
    for id in IDS[:2]:
        site.mark("hold", id)
    site.submit()
    site.cluster.wait(lambda: sorted(site.states().values()).count("running") == 2, "two that run")
    for task, _, _, name in site.cluster.queue():
        if not task.endswith("_N/A"):
            site.cluster.run("scancel", "--signal=KILL", "--full", task)
            site.cluster.run("scancel", task)
    for id in IDS[:2]:
        site.unmark("hold", id)
    site.finish()
    states = site.states()
    assert set(states.values()) <= {"lost", "failed", "waiting"} and states[IDS[0]] != "waiting", site.status("table")
    assert site.submit().startswith("4 of 4 jobs submitted"), states
    site.finish()
    assert set(site.states().values()) == {"done"}, site.status("table")


MAP = """\
runners:
  - {match: collect, labels: [any], minutes: 20}
  - {match: "*-avx512", labels: [partition=long, account=lab], mem: 3G, minutes: 600}
  - {labels: [partition=long, account=lab], mem: 2G, minutes: 500}
"""


def limited(world, partitions):
    cluster = Cluster(tempfile.mkdtemp(prefix="ptbuild-slurm-"), partitions=partitions)
    world.clusters.append(cluster)
    return cluster


def test_limits_that_are_enforced(world):
    """A default partition of an hour, three variants: a job is killed, a node is drained; --status is right at each stage."""
    cluster = limited(world, ENFORCED)
    site = Site(world, cluster, IDS[:3])
    got = cluster.run("bash", site.script, site.dir, **site.env)
    assert got.returncode == 1 and "sbatch refuses" in got.stderr.splitlines()[-1], got.stderr
    site.write(MAP)
    for id in site.ids:
        site.mark("hold", id)
    assert site.submit().startswith("3 of 3 jobs submitted")
    cluster.wait(lambda: sorted(site.states().values()) == ["running", "running", "waiting"], "two that run")
    reason = lambda: next(job["run"]["slurm"] for job in site.status()["jobs"] if job["run"]["state"] == "waiting")["reason"]  # noqa: E731
    cluster.wait(lambda: reason() in ("Dependency", "Resources", "Priority"), "a reason of the one that waits")
    told = site.status()
    assert told["collect"]["state"] == "waiting" and told["collect"]["slurm"]["reason"] == "Dependency", told["collect"]
    limits = cluster.run("squeue", "--noheader", "--array", "--format=%i|%P|%a|%l|%m").stdout
    assert "|long|lab|8:20:00|2G" in limits and "|all||20:00|2G" in limits.replace("(null)", ""), limits
    killed = next(job for job in told["jobs"] if job["run"]["state"] == "running")
    task = killed["run"]["slurm"]["job"]
    cluster.run("scancel", "--signal=KILL", "--full", task)
    cluster.run("scancel", task)
    cluster.wait(lambda: site.states()[killed["id"]] in ("lost", "failed"), "the end of the killed job")
    drained = next(job["run"]["node"] for job in site.status()["jobs"] if job["run"]["state"] == "running")
    got = cluster.run("scontrol", "update", f"nodename={drained}", "state=drain", "reason=test")
    assert got.returncode == 0, got.stderr
    for id in site.ids:
        site.unmark("hold", id)
    cluster.wait(lambda: not cluster.queue(), "the end of all jobs", 400)
    states = site.states()
    assert sorted(states.values()).count("done") == 2 and states[killed["id"]] in ("lost", "failed"), site.status("table")
    assert site.submit().startswith("1 of 3 jobs submitted, 0 wait or run, 2 were done"), site.status("table")
    cluster.wait(lambda: not cluster.queue(), "the end of all jobs", 400)
    told = site.status()
    assert set(site.states().values()) == {"done"} and told["collect"]["state"] == "done", site.status("table")
    assert {line[1] for line in site.builds()[-1:]} == {"n1", "n2"} - {drained}, site.builds()
    site.installed(CPUS[0])


def test_limits_that_make_jobs_wait(world):
    """Without enforcement Slurm takes what can never start; --status says why it waits."""
    cluster = limited(world, LIMITED)
    site = Site(world, cluster, IDS[:1], "runners:\n  - {labels: [any], mem: 2G, minutes: 90}\n")
    site.submit()
    cluster.wait(lambda: site.status()["jobs"][0]["run"]["slurm"]["reason"] == "PartitionTimeLimit", "the reason")
    assert site.states() == {IDS[0]: "waiting"}, site.status("table")
    cluster.run("scancel", "--user", str(os.getuid()))
    cluster.wait(lambda: site.states() == {IDS[0]: "lost"}, "the end")


def test_environment_does_not_reach_the_jobs(world):
    site = Site(world, ids=IDS[:1])
    site.env["SBATCH_EXPORT"] = "NONE"
    site.submit()
    site.finish()
    assert site.states() == {IDS[0]: "done"}, site.status("table")
    assert site.status()["collect"]["state"] == "done", site.status("table")


if __name__ == "__main__":
    if missing():
        sys.exit(f"test_slurm: no {missing()} here; the packages are slurmctld, slurmd, slurm-client and munge")
    clusters = []

    def prepare(world):
        world.cluster = Cluster(tempfile.mkdtemp(prefix="ptbuild-slurm-"))
        world.clusters = clusters
        clusters.append(world.cluster)
        os.chmod(world.dir, 0o755)

    try:
        main([test_a_matrix_and_what_failed_again, test_a_node_that_dies_loses_no_variant, test_cancelled_jobs_are_told_and_run_again, test_limits_that_are_enforced,
              test_limits_that_make_jobs_wait, test_environment_does_not_reach_the_jobs], prepare)
    finally:
        for cluster in clusters:
            cluster.close()
