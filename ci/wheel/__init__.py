"""The way from Python's commands to the program, which takes the place of this process."""
import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "ptbuild")


def main():
    os.execv(PROGRAM, ["ptbuild", *sys.argv[1:]])
