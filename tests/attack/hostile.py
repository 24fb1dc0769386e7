"""What a hostile package does when it is configured: each attack prints one line, "ATTACK name: what came of it". Runs inside the sandbox, before the stand-in's own setup.py."""

import ctypes
import errno
import os
import socket
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
DONE = "through"  # the attack succeeded


def call(number, *args):
    """A system call: its error, or that it went through."""
    ctypes.set_errno(0)
    if libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in args]) < 0:
        return errno.errorcode.get(ctypes.get_errno(), "?")
    return DONE


def attempt(function, *args):
    try:
        function(*args)
        return DONE
    except OSError as ex:
        return errno.errorcode.get(ex.errno, "?")


def opened(path):
    return attempt(lambda: os.close(os.open(path, os.O_WRONLY)))


def any_setting():
    """Every setting of the kernel: how many can be opened for writing. Name spaces have none of their own in /proc/sys/kernel, vm and fs."""
    found = [os.path.join(folder, name) for top in ("kernel", "vm", "fs", "dev") for folder, _, names in os.walk("/proc/sys/" + top) for name in names]
    assert len(found) > 50, found
    return DONE if any(opened(path) == DONE for path in found) else "EACCES"


def setuid_copy(mode):
    with open("/bin/sh", "rb") as f, open(f"planted-{mode:o}", "wb") as to:
        to.write(f.read())
    got = attempt(os.chmod, f"planted-{mode:o}", mode)
    return got if got != DONE or os.stat(f"planted-{mode:o}").st_mode & mode & 0o6000 else "cleared"


def created(mode):
    return attempt(lambda: os.close(os.open(f"created-{mode:o}", os.O_CREAT | os.O_WRONLY, mode)))


def keys_of_the_caller():
    try:
        return DONE if "ptbuild-secret" in open("/proc/keys").read() else "not there"
    except OSError as ex:
        return errno.errorcode[ex.errno]


def search_key():
    return call(250, 10, -3, b"user", b"ptbuild-secret", 0)  # KEYCTL_SEARCH in the session keyring


def sock(family, kind=socket.SOCK_STREAM, protocol=0):
    ctypes.set_errno(0)
    fd = libc.socket(family, kind, protocol)
    if fd < 0:
        return errno.errorcode.get(ctypes.get_errno(), "?")
    os.close(fd)
    return DONE


def traced():
    child = os.fork()
    if child == 0:
        os._exit(0 if libc.ptrace(0, 0, 0, 0) == 0 else 1)
    return DONE if os.waitpid(child, 0)[1] == 0 else "EPERM"


def pipe_of_the_machine():
    """The test makes one in a directory that is shown read-only. Its reader is outside."""
    path = "/ptbuild/cfg/pipe"
    open("want-pipe", "w").close()
    for _ in range(6000):
        if os.path.exists(path):
            return attempt(lambda: os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), b"hello"))
        time.sleep(0.05)
    return "no pipe"


def name_space():
    child = os.fork()
    if child == 0:
        os._exit(0 if libc.unshare(0x10000000) == 0 else 1)
    return DONE if os.waitpid(child, 0)[1] == 0 else "EPERM"


def secret_of_root():
    """The package of the stand-in shows its test a directory with a file that only root may read."""
    return attempt(lambda: open("/proc/1/environ").read())


def typed():
    import fcntl

    try:
        fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x5412, b"x")
        return DONE
    except OSError as ex:
        return errno.errorcode[ex.errno]


ATTACKS = {
    # class 1: the kernel's user 0
    "core_pattern": lambda: opened("/proc/sys/kernel/core_pattern"),
    "any_setting": any_setting,
    "sysrq": lambda: opened("/proc/sysrq-trigger"),
    "setuid": lambda: setuid_copy(0o4755),
    "setuid_setgid": lambda: setuid_copy(0o6755),
    "setgid": lambda: setuid_copy(0o2755),
    "created_setuid": lambda: created(0o4755),
    "device": lambda: attempt(os.mknod, "device", 0o20666, os.makedev(1, 1)),
    "owner": lambda: attempt(os.chown, "setup.py", 0, 0),
    "oom_score": lambda: opened("/proc/self/oom_score_adj"),
    "memory_in_dev": lambda: attempt(lambda: open("/dev/fill", "wb").write(bytes(1 << 20))),
    "score": lambda: DONE if int(open("/proc/self/oom_score_adj").read()) < 500 else "500",
    # class 5: what can still be reached
    "keys": keys_of_the_caller,
    "search_key": search_key,
    "add_key": lambda: call(248, b"user", b"x", b"y", 1, -3),
    "io_uring": lambda: call(425, 1, ctypes.create_string_buffer(256)),
    "bpf": lambda: call(321, 0, ctypes.create_string_buffer(128), 128),
    "perf": lambda: call(298, struct.pack("IIQ", 1, 112, 0) + bytes(96), 0, -1, -1, 0),
    "userfaultfd": lambda: call(323, 1),
    "vsock": lambda: sock(40),
    "alg": lambda: sock(38, socket.SOCK_SEQPACKET),
    "bluetooth": lambda: sock(31, socket.SOCK_RAW),
    "tipc": lambda: sock(30),
    "audit": lambda: sock(16, socket.SOCK_RAW, 9),
    "high_family": lambda: call(41, (1 << 32) | 40, 1, 0),
    "name_space": name_space,
    "clone3": lambda: "EPERM" if call(435, bytes(88), 88) == "EPERM" else call(435, struct.pack("Q", 0x10000000) + bytes(80), 88),
    "mount": lambda: call(428, -100, b"/", 1),
    "ptrace": traced,
    "read_memory": lambda: call(310, os.getpid(), 0, 0, 0, 0, 0),
    "handle": lambda: call(303, -100, b"/usr", bytes(64), ctypes.create_string_buffer(8), 0),
    "unknown_call": lambda: call(470, 0),
    "pipe": pipe_of_the_machine,
    "signal": lambda: attempt(os.kill, 1, 0),
    "chmod_at": lambda: call(452, -100, b"setup.py", 0o4755, 0),
}


def run():
    for name, attack in ATTACKS.items():
        print(f"ATTACK {name}: {attack()}", flush=True)
    sys.exit(3)
