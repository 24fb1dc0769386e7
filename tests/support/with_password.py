#!/usr/bin/python3
"""with_password.py PASSWORD COMMAND...: runs a command on a terminal of its own and answers sudo's question once."""
import os
import pty
import sys

answered = False


def read(fd):
    global answered
    data = os.read(fd, 4096)
    if not answered and b"assword" in data:
        answered = True
        os.write(fd, sys.argv[1].encode() + b"\n")
    return data


sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[2:], read, lambda fd: b"")))
