"""What `ptbuild bench` runs next, and what came of it.

usage: bench.py ASKED [RUNS]

ASKED is an object in JSON: only (patterns of names), pairs, threads (a list), processors (to pin to, or an empty list),
seconds, limit, device, machine_class (a name, or null), scripts (where this file is on the host), files (of the two wheels, once they are known). RUNS is a directory with the output of each
process that ran so far, N.STATUS. This program sees them from the first on, so it remembers nothing. It runs with the
root's Python in a sandbox that has nothing of the wheels, and prints one object:

    turn       the next process: side (0: the wheel), stage (for the log, or ""), options (of run_workloads.py), limit (seconds)
    document   all results, and refused: why they are none to go by, or null
    error      what went wrong, with kind (usage, policy, integrity) and hint, or null
"""
import fnmatch
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import compare  # noqa: E402
import run_workloads  # noqa: E402
from answers import Answers, Wrong  # noqa: E402

SIDES = ("the wheel", "the other")
# What other programs may use of the processors, at least and for each thread, before the figures say less.
OTHERS, OTHERS_PER_THREAD = 0.5, 0.1
LEAST_PAIRS = 6  # fewer have no interval


class Failure(Exception):
    def __init__(self, kind, text, hint=None):
        super().__init__(text)
        self.kind, self.hint = kind, hint


def choose(patterns, names, scripts):
    """Which of the names the patterns mean."""
    chosen = {}
    for pattern in patterns:
        found = fnmatch.filter(names, pattern)
        if not found:
            raise Failure("usage", f"--only: no workload is called '{pattern}'", f"they are in '{scripts}/workloads.py'; a pattern: --only 'gemm*'")
        chosen.update(dict.fromkeys(found))
    return list(chosen)


class Bench:
    def __init__(self, asked, names):
        self.asked, self.names = asked, names
        self.only = choose(asked["only"], names, asked["scripts"])
        self.others, self.disturbed = None, False

    def turn(self, side, stage, threads, skip, probe=False):
        """What is printed of a process that is to be started."""
        wanted = [] if probe else [n for n in self.only or self.names if n not in skip]
        options = {"only": self.only, "skip": skip, "threads": threads, "processors": self.asked["processors"][:threads],
                   "seconds": self.asked["seconds"], "limit": self.asked["limit"], "device": self.asked["device"], "probe": probe}
        # The process ends itself at its limits; this one is for what does not.
        limit = 2 * max(self.asked["limit"], run_workloads.IMPORT_S) + len(wanted) * self.asked["limit"]
        return {"side": side, "stage": stage, "options": json.dumps(options, separators=(",", ":")), "limit": float(limit)}

    def read(self, said, side, output):
        try:
            said.read(output)
        except Wrong as wrong:
            raise Failure("integrity", f"what the workloads of {SIDES[side]} printed cannot be read: {wrong}") from None

    def failure(self, said, side, what, status):
        of = ("the wheel's", "the other")[side]
        return Failure("policy", f"{of} torch {what} (status {status}): {said.words or 'it said nothing'}")

    def probe(self, side):
        """Whether a torch imports, and what it is. Nothing is measured."""
        said = Answers()
        output, status = yield self.turn(side, f"bench: {SIDES[side]} is imported", self.asked["threads"][0], [], True)
        self.read(said, side, output)
        if status or not said.done or not said.torch:
            raise self.failure(said, side, "does not import", status)
        if self.asked["device"] == "cuda" and not said.cuda:
            raise Failure("policy", f"torch {said.torch} of {SIDES[side]} has no CUDA device here", "nvidia-smi says whether the driver has one")
        return said

    def why_it_ended(self, status):
        if status == 128 + signal.SIGALRM:
            return f"not done in {self.asked['limit']:.0f} s"
        return f"the process died of signal {status - 128}" if status > 128 else f"the process ended with status {status}"

    def run(self, side, threads, stage, given_up):
        """All workloads once. A process that does not come back from one is followed by another for the rest."""
        said = Answers()
        while not said.done:
            before = len(said.by_name)
            output, status = yield self.turn(side, stage, threads, given_up + list(said.by_name))
            stage = ""
            self.read(said, side, output)
            if said.done:
                break
            said.close(self.why_it_ended(status))
            if len(said.by_name) == before:
                raise self.failure(said, side, "ends before its workloads", status)
        if said.others is not None:
            self.others = max(said.others, self.others or 0.0)
            self.disturbed = self.disturbed or said.others > max(OTHERS, OTHERS_PER_THREAD * threads)
        return said

    def set(self, threads):
        pairs, runs, given_up = self.asked["pairs"], [], {}
        for n in range(pairs):
            pair = [None, None]
            # A machine that becomes slower disturbs both alike: every second pair begins with the other.
            for side in (1, 0) if n % 2 else (0, 1):
                stage = f"bench: {threads} thread{'s' if threads != 1 else ''}, pair {n + 1} of {pairs}, {SIDES[side]}"
                pair[side] = yield from self.run(side, threads, stage, list(given_up))
            # What did not work on a side is not tried in later pairs: a time limit each would be long.
            given_up.update((x.name, None) for said in pair for x in said.by_name.values() if x.why)
            runs.append(pair)
            if n + 1 >= LEAST_PAIRS and compare.is_enough(runs):
                break
        return compare.one_set(runs, threads, self.asked["processors"][:threads])

    def all(self):
        """Yields each process that is to be run, is sent its output and status, and returns what is printed at the end."""
        torches, sets = [], []
        for side in (0, 1):
            torches.append((yield from self.probe(side)))
        for threads in self.asked["threads"]:
            sets.append((yield from self.set(threads)))
        wheel, other = ({"file": file, "torch": said.torch, "cpu": said.cpu} for file, said in zip(self.asked["files"], torches))
        document = {"schema": 1, "wheel": wheel, "other": other, "device": self.asked["device"],
                    "machine_class": self.asked.get("machine_class"), "pairs": self.asked["pairs"],
                    "seconds": float(self.asked["seconds"]), "limit": float(self.asked["limit"]), "load": self.others,
                    "disturbed": self.disturbed, "sets": sets, "-device": "GPU" if self.asked["device"] == "cuda" else "CPU"}
        return {"document": document, "refused": compare.refusal(sets)}


def runs_of(folder):
    """Output and status of each process, in their order."""
    for name in sorted(os.listdir(folder), key=lambda n: int(n.split(".")[0])):
        with open(os.path.join(folder, name), "rb") as f:
            yield f.read(), int(name.split(".")[1])


def answer(asked, names, runs):
    """What is printed, after these runs."""
    try:
        steps = Bench(asked, names).all()
        turn = next(steps)
        for run in runs:
            turn = steps.send(run)
    except StopIteration as end:
        return end.value
    except Failure as f:
        return {"error": str(f), "kind": f.kind, "hint": f.hint}
    return {"turn": turn}


def main():
    runs = runs_of(sys.argv[2]) if len(sys.argv) > 2 else []
    print(json.dumps(answer(json.loads(sys.argv[1]), run_workloads.names(), runs)))


if __name__ == "__main__":
    main()
