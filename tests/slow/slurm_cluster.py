"""A cluster of Slurm on this machine: munged, slurmctld and a slurmd for each node, all on loopback and below one directory."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time

CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthInfo=socket={dir}/munge.socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={dir}/state
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd-%n.pid
SlurmdSpoolDir={dir}/spool-%n
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerParameters=sched_interval=2,bf_interval=2,defer_batch
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdTimeout=10
MessageTimeout=10
InactiveLimit=0
KillWait=5
ReturnToService=1
MinJobAge=600
{nodes}
{partitions}
"""
FREE = "PartitionName=all Nodes={names} Default=YES MaxTime=INFINITE State=UP\nPartitionName=long Nodes={names} MaxTime=INFINITE State=UP"
# As sites have it: an hour for those who name no partition. Refused at once with "enforced", else the job waits. (Accounts need a data base.)
LIMITED = """\
PartitionName=all Nodes={names} Default=YES MaxTime=60 State=UP
PartitionName=long Nodes={names} MaxTime=2-00:00:00 State=UP"""
ENFORCED = "EnforcePartLimits=ALL\n" + LIMITED


def missing():
    """What this machine lacks for a cluster; None for nothing."""
    return next((name for name in ("munged", "slurmctld", "slurmd", "sbatch") if not find(name)), None)


def find(name):
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def below(pid):
    """A process and all below it, the nearest first."""
    found, at = [pid], 0
    while at < len(found):
        try:
            for task in os.listdir(f"/proc/{found[at]}/task"):
                with open(f"/proc/{found[at]}/task/{task}/children", encoding="ascii") as f:
                    found += [int(word) for word in f.read().split()]
        except OSError:
            pass
        at += 1
    return found


def environment(pid):
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as f:
            return f.read().split("\0")
    except OSError:
        return []


def steps(pid):
    """The slurmstepd right above a process, if there is one."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            parent = int(f.read().rpartition(")")[2].split()[1])
        with open(f"/proc/{parent}/comm", encoding="utf-8") as f:
            return [parent] if f.read().strip() == "slurmstepd" else []
    except OSError:
        return []


class Cluster:
    def __init__(self, directory, names=("n1", "n2"), cpus=1, memory=8000, partitions=FREE):
        self.dir, self.names = directory, names
        self.config = os.path.join(directory, "slurm.conf")
        self.env = dict(os.environ, SLURM_CONF=self.config)
        self.daemons = {}
        ports = free_ports(1 + len(names))
        nodes = "\n".join(f"NodeName={name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory={memory} State=UNKNOWN"
                          for name, port in zip(names, ports[1:]))  # fmt: skip
        for name in ("state", *(f"spool-{n}" for n in names)):
            os.makedirs(os.path.join(directory, name))
        os.chmod(directory, 0o755)
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(host=socket.gethostname(), ports=ports, dir=directory, user=pwd.getpwuid(os.getuid()).pw_name, nodes=nodes, partitions=partitions.format(names=",".join(names))))
        key = os.path.join(directory, "munge.key")
        with open(key, "wb") as f:
            f.write(os.urandom(128))
        os.chmod(key, 0o600)
        options = [f"--{what}={directory}/munge.{what.split('-')[0]}" for what in ("socket", "key-file", "pid-file", "log-file", "seed-file")]
        self.start("munged", "--foreground", "--force", *options)
        self.wait(lambda: os.path.exists(f"{directory}/munge.socket"), "munged")
        self.start("slurmctld", "-D", "-f", self.config)
        for name in names:
            self.start_node(name)
        self.wait(lambda: self.node_states() == {name: "idle" for name in names}, "the nodes")

    def start(self, program, *args, label=None):
        label = label or program
        with open(os.path.join(self.dir, f"{label}.out"), "ab") as out:
            self.daemons[label] = subprocess.Popen([find(program), *args], stdout=out, stderr=out, env=self.env, start_new_session=True)

    def start_node(self, name):
        self.start("slurmd", "-D", "-f", self.config, "-N", name, label=name)

    def wait(self, ready, what, seconds=60):
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not in {seconds} s; {self.said()}")
            time.sleep(0.5)

    def said(self):
        text = ""
        for name in sorted(os.listdir(self.dir)):
            if name.endswith((".out", ".log")):
                with open(os.path.join(self.dir, name), encoding="utf-8", errors="replace") as f:
                    text += f"== {name}\n" + f.read()[-1500:]
        return text

    def run(self, *args, **more):
        return subprocess.run(args, capture_output=True, text=True, timeout=120, env=dict(self.env, **more))

    def node_states(self):
        return dict(line.split() for line in self.run("sinfo", "--noheader", "--Node", "--partition=all", "--format=%N %T").stdout.splitlines())

    def queue(self):
        return [line.split("|") for line in self.run("squeue", "--noheader", "--array", "--format=%F_%K|%T|%N|%j").stdout.splitlines()]

    def kill_node(self, name):
        """As if the machine were gone: its daemon and all that it started, at once. A step has left the daemon's tree: its job's environment tells."""
        jobs = [p for p in map(int, filter(str.isdigit, os.listdir("/proc"))) if {f"SLURM_CONF={self.config}", f"SLURMD_NODENAME={name}"} <= set(environment(p))]
        # From the top: what outlives its child could still tell of its end.
        tops = [self.daemons[name].pid, *(step for pid in jobs for step in steps(pid)), *jobs]
        for pid in dict.fromkeys([*tops, *(p for top in tops for p in below(top))]):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.daemons.pop(name).wait()

    def close(self):
        self.run("scancel", "--quiet", "--user", str(os.getuid()))
        for name in [*self.names, "slurmctld", "munged"]:
            daemon = self.daemons.pop(name, None)
            if daemon:
                daemon.terminate()
                try:
                    daemon.wait(20)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
