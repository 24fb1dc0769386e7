"""Lines of run_workloads.py, for the tests of what reads them."""
import json
import os
import sys

BENCH = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../profiles/bench")
sys.path.insert(0, BENCH)
sys.dont_write_bytecode = True


def line(kind, **what):
    return json.dumps({"bench": kind, **what}) + "\n"


def begin(name):
    return line("begin", name=name)


def value(name, seconds, total=7.0, **what):
    return begin(name) + line("value", **{"name": name, "value": seconds, "unit": "s", "mean": True, "sums": [total, 0], "tolerance": 0.001, **what})


def failed(name, why, kind="failed"):
    return begin(name) + line(kind, name=name, why=why)


ABOUT = line("about", torch="2.6.0+cpu", cpu="AVX2", cuda=False)
END = line("end", others=0.1)
