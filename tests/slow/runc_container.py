"""A container by runc, as docker, podman, Kubernetes or runc itself start one: this machine's system below a root of its own."""

import json
import os
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
PROFILE = os.path.join(TOP, "profiles", "container", "seccomp.json")
# What docker gives root, and what 'runc spec' does.
DOCKER = "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE".split()
RUNC = "AUDIT_WRITE KILL NET_BIND_SERVICE".split()
# The parts of an engine's own profile that stop a sandbox, for a container without SYS_ADMIN.
NAMESPACES = ("mount", "umount2", "pivot_root", "setns", "unshare", "sethostname", "setdomainname")
CLONE_NAMESPACES = 0x7E020000


def refuse(names, errno=1, **more):
    return {"names": list(names), "action": "SCMP_ACT_ERRNO", "errnoRet": errno, **more}


def flags(call, flag):
    """Refuses `call` with the flag in its first argument."""
    return refuse([call], args=[{"index": 0, "value": flag, "valueTwo": flag, "op": "SCMP_CMP_MASKED_EQ"}])


def docker_profile():
    """Namespaces and keys are refused, as docker does."""
    bits = [1 << n for n in range(32) if CLONE_NAMESPACES & 1 << n]
    calls = [refuse([*NAMESPACES, "keyctl", "add_key", "request_key"]), refuse(["clone3"], 38), *(flags("clone", bit) for bit in bits)]
    return {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": calls}


def podman_profile():
    """Namespaces are allowed and the host name is not, as podman does."""
    return {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [refuse(["sethostname", "setdomainname"])]}


def own_profile():
    with open(PROFILE, encoding="utf-8") as f:
        return json.load(f)


class Container:
    """`root`: an unpacked root file system; None: this machine's /usr and /etc. `shared`: directories of this machine that the container may write, `places` the same at other paths."""

    def __init__(self, user=0, capabilities=RUNC, seccomp=None, whole_proc=False, root=None, shared=(), shown=(), places=None, new_privileges=False):
        self.dir = tempfile.mkdtemp(prefix="ptbuild-runc-")
        os.chmod(self.dir, 0o755)
        self.user = user
        subprocess.run(["runc", "spec"], cwd=self.dir, check=True)
        with open(os.path.join(self.dir, "config.json"), encoding="utf-8") as f:
            self.config = json.load(f)
        self.shared, self.shown = list(shared), list(shown)
        self.config["root"] = {"path": root or self.host_root(), "readonly": False}
        self.config["mounts"] += [self.bind(path, "ro") for path in (TOP, *self.shown)] + [self.bind(path, "rw") for path in self.shared]
        for path, where in (places or {}).items():
            self.config["mounts"].append({**self.bind(path, "rw"), "destination": where})
        every = ["CAP_" + name for name in capabilities]
        held = every if user == 0 else []
        self.config["process"].update(terminal=False, noNewPrivileges=not new_privileges, user={"uid": user, "gid": user}, rlimits=[])
        self.config["process"]["capabilities"] = {"bounding": every, "effective": held, "permitted": held}
        linux = self.config["linux"]
        if seccomp:
            linux["seccomp"] = seccomp
        if whole_proc:
            linux["maskedPaths"] = linux["readonlyPaths"] = []

    @staticmethod
    def bind(path, how):
        return {"destination": path, "source": path, "type": "bind", "options": ["rbind", how]}

    def host_root(self):
        root = os.path.join(self.dir, "rootfs")
        for name in ("usr", "etc", "tmp", "proc", "sys", "dev", "ptbuild"):
            os.makedirs(os.path.join(root, name))
        if self.user:
            os.chown(os.path.join(root, "ptbuild"), self.user, self.user)
        os.chmod(os.path.join(root, "tmp"), 0o1777)
        for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
            if os.path.islink("/" + name):
                os.symlink(os.readlink("/" + name), os.path.join(root, name))
        self.shown += ["/usr", "/etc"]
        return root

    def run(self, *argv, env=(), cwd="/", limit=1200):
        self.config["process"].update(args=list(argv), cwd=cwd, env=["PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/tmp", "LANG=C.UTF-8"])
        self.config["process"]["env"] = [line for line in self.config["process"]["env"] if line.split("=")[0] not in {more.split("=")[0] for more in env}] + list(env)
        with open(os.path.join(self.dir, "config.json"), "w", encoding="utf-8") as f:
            json.dump(self.config, f)
        return subprocess.run(["runc", "run", os.path.basename(self.dir)], cwd=self.dir, capture_output=True, text=True, timeout=limit)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["runc", "delete", "--force", os.path.basename(self.dir)], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.dir, ignore_errors=True)
