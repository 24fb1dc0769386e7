#!/usr/bin/python3
"""with_password.py PASSWORD COMMAND...: runs a command on a terminal of its own and answers sudo's questions."""
import os
import pty
import sys

tail = b""


def read(fd):
    global tail
    data = os.read(fd, 4096)
    tail = (tail + data)[-80:]
    if b"[sudo] password for " in tail and tail.endswith(b": "):
        tail = b""
        os.write(fd, sys.argv[1].encode() + b"\n")
    return data


sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[2:], read, lambda fd: b"")))
