#!/usr/bin/python3
"""bench.py: which process is next, and what ends it all; run_workloads.py: the load that others cause."""
import json
import os
import signal
import tempfile
import unittest
from unittest import mock

from support import ABOUT, END, begin, failed, line, value
import bench
import run_workloads

NAMES = ["import", "gemm", "sort"]
ASKED = {"only": [], "pairs": 2, "threads": [1], "processors": [3, 1], "seconds": 0.3, "limit": 5, "device": "cpu", "scripts": "/where", "files": ["a.whl", "b.whl"]}
PROBED = [(ABOUT + END, 0)] * 2
DONE = value("gemm", 1) + value("sort", 2) + END


def ask(runs, **changes):
    return bench.answer({**ASKED, **changes}, NAMES, [(text.encode(), status) for text, status in runs])


def play(answers, **changes):
    """All turns, each with its output and status by `answers` (side, options), and what came of it."""
    runs, turns = list(PROBED), []
    while True:
        got = ask(runs, **changes)
        if "turn" not in got:
            return turns, got
        turn = got["turn"]
        turns.append({**turn, "options": json.loads(turn["options"])})
        runs.append(answers(turn["side"], turns[-1]["options"]))


class Turns(unittest.TestCase):
    def test_both_are_probed_first(self):
        first = ask([])["turn"]
        options = json.loads(first["options"])
        self.assertEqual((first["side"], options["probe"], options["threads"], options["processors"]), (0, True, 1, [3]))
        self.assertEqual(ask(PROBED[:1])["turn"]["side"], 1)
        self.assertFalse(json.loads(ask(PROBED)["turn"]["options"])["probe"])

    def test_every_second_pair_begins_with_the_other(self):
        turns, got = play(lambda side, options: (DONE, 0), pairs=3, threads=[1, 2])
        self.assertEqual([t["side"] for t in turns], [0, 1, 1, 0, 0, 1] * 2)
        self.assertEqual([t["options"]["threads"] for t in turns], [1] * 6 + [2] * 6)
        self.assertEqual([t["options"]["processors"] for t in turns], [[3]] * 6 + [[3, 1]] * 6)
        self.assertEqual(len({t["stage"] for t in turns}), 12)
        document = got["document"]
        self.assertEqual([s["threads"] for s in document["sets"]], [1, 2])
        self.assertEqual((document["wheel"], document["pairs"], document["limit"], got["refused"]), ({"file": "a.whl", "torch": "2.6.0+cpu", "cpu": "AVX2"}, 3, 5.0, None))

    def test_pairs_end_when_they_show_enough(self):
        """Six at least; as many as may be where each says something else."""
        for ratio, expected in ((lambda n: 2, 6), (lambda n: 1.01, 6), (lambda n: (0.5, 1, 2)[n % 3], 9)):
            seen = [0, 0]

            def answers(side, options, ratio=ratio, seen=seen):
                seen[side] += 1
                return value("gemm", ratio(seen[1]) if side else 1) + END, 0
            turns, got = play(answers, pairs=9)
            self.assertEqual((len(turns), got["document"]["sets"][0]["pairs"], got["document"]["pairs"]), (2 * expected, expected, 9))

    def test_class_of_the_machine_is_kept(self):
        for name in (None, "Zen 5, 16 processors"):
            self.assertEqual(play(lambda side, options: (DONE, 0), pairs=1, machine_class=name)[1]["document"]["machine_class"], name)

    def test_dead_process_is_followed_by_one_for_the_rest(self):
        def answers(side, options):
            return (DONE, 0) if side == 0 else (value("sort", 2) + END, 0) if "gemm" in options["skip"] else (begin("gemm"), 128 + signal.SIGSEGV)
        turns, got = play(answers, pairs=1)
        self.assertEqual([(t["side"], t["options"]["skip"]) for t in turns], [(0, []), (1, []), (1, ["gemm"])])
        self.assertEqual(turns[-1]["stage"], "")
        rows = {w["name"]: (w["state"], w["other"]["why"]) for w in got["document"]["sets"][0]["workloads"]}
        self.assertEqual(rows, {"gemm": ("failed", f"the process died of signal {signal.SIGSEGV:d}"), "sort": ("compared", None)})

    def test_time_limit_and_status_of_the_end(self):
        for status, why in ((128 + signal.SIGALRM, "not done in 5 s"), (3, "the process ended with status 3"), (0, "the process ended with status 0")):
            _, got = play(lambda side, options, s=status: (END, 0) if "gemm" in options["skip"] else (begin("gemm"), s), pairs=1)
            self.assertEqual(got["document"]["sets"][0]["workloads"][0]["wheel"]["why"], why)

    def test_failed_workload_is_not_tried_in_later_pairs(self):
        turns, _ = play(lambda side, options: (DONE if side else failed("gemm", "no") + value("sort", 2) + END, 0))
        self.assertEqual([t["options"]["skip"] for t in turns], [[], [], ["gemm"], ["gemm"]])
        self.assertLess(turns[-1]["limit"], turns[0]["limit"])

    def test_limit_is_for_all_workloads(self):
        self.assertGreaterEqual(ask(PROBED, limit=1000)["turn"]["limit"], 1000 * (len(NAMES) + 1))

    def test_patterns_choose(self):
        options = json.loads(ask(PROBED, only=["so*", "gemm", "s*"])["turn"]["options"])
        self.assertEqual(options["only"], ["sort", "gemm"])
        got = ask([], only=["gemm", "no*such"])
        self.assertEqual(got["kind"], "usage")
        self.assertIn("'no*such'", got["error"])
        self.assertIn("/where/workloads.py", got["hint"])


class Ends(unittest.TestCase):
    def test_torch_that_does_not_import(self):
        for text, status in (("ImportError: gone\n", 1), ("", 0), (END, 0), (ABOUT + END, 1), (ABOUT, 0)):
            got = ask([PROBED[0], (text, status)])
            self.assertEqual(got["kind"], "policy")
            self.assertIn(f"the other torch does not import (status {status}): {'ImportError: gone' if text.startswith('I') else 'it said nothing'}", got["error"])

    def test_torch_without_a_device(self):
        got = ask(PROBED[:1], device="cuda")
        self.assertEqual(got["kind"], "policy")
        self.assertIn("nvidia-smi", got["hint"])

    def test_lines_that_are_wrong(self):
        for runs, side in (([(line("odd"), 0)], "the wheel"), ([*PROBED, (DONE, 0), (line("odd"), 0)], "the other")):
            got = ask(runs)
            self.assertEqual(got["kind"], "integrity")
            self.assertIn(f"of {side} printed cannot be read: line 1: ", got["error"])

    def test_process_that_ends_before_its_workloads(self):
        got = ask([*PROBED, ("words\n", 9)])
        self.assertEqual((got["kind"], got["error"]), ("policy", "the wheel's torch ends before its workloads (status 9): words"))

    def test_runs_are_read_in_their_order(self):
        with tempfile.TemporaryDirectory() as top:
            for n in (2, 10, 0, 1):
                with open(os.path.join(top, f"{n}.{n + 1}"), "w", encoding="ascii") as f:
                    f.write(str(n))
            self.assertEqual(list(bench.runs_of(top)), [(b"0", 1), (b"1", 2), (b"2", 3), (b"10", 11)])


class Places(unittest.TestCase):
    class Tensor:
        def __init__(self, place, nbytes):
            self.place, self.nbytes = place, nbytes

        def data_ptr(self):
            return self.place

    def test_offset_is_from_the_largest_input(self):
        small, large = self.Tensor(5, 8), self.Tensor(3 << 20, 64)
        for place, offset in (((7 << 20) + 64, 64), ((3 << 20) - 64, (1 << 20) - 64), (3 << 20, 0)):
            out = [self.Tensor(place, 64)]
            self.assertEqual(run_workloads.offset_of(lambda out=out: (small, large) and out[0]), offset)

    def test_offset_that_is_not_known(self):
        tensor, calls = self.Tensor(64, 8), []
        self.assertIsNone(run_workloads.offset_of(lambda: calls.append(1)))
        self.assertEqual(calls, [], "no call where there is no input")
        self.assertIsNone(run_workloads.offset_of(lambda: tensor and 1.0))
        self.assertIsNone(run_workloads.offset_of(len))


class OtherPrograms(unittest.TestCase):
    def disturbed(self, others, threads=1):
        _, got = play(lambda side, options: (value("gemm", 1) + line("end", others=others[side]), 0), pairs=1, threads=[threads])
        return got["document"]["load"], got["document"]["disturbed"]

    def test_highest_load_of_others_counts(self):
        self.assertEqual(self.disturbed((0.2, 0.4)), (0.4, False))
        self.assertEqual(self.disturbed((0.2, 1.5)), (1.5, True))
        self.assertEqual(self.disturbed((None, 0.1)), (0.1, False))
        self.assertEqual(self.disturbed((None, None)), (None, False))

    def test_many_threads_leave_more_to_chance(self):
        self.assertEqual(self.disturbed((0.9, 0.9), 16), (0.9, False))
        self.assertEqual(self.disturbed((1.9, 0.9), 16), (1.9, True))

    def others(self, all_, own, seconds=10.0):
        """Of a machine whose processors had worked for `all_` seconds more at the end, this process for `own`."""
        times = [os.times_result((1, 0, 0, 0, 0)), os.times_result((1 + own / 2, own / 4, own / 4, 0, 0))]
        with mock.patch.object(run_workloads, "processor_seconds", side_effect=[5000.0, None if all_ is None else 5000.0 + all_]), \
                mock.patch.object(os, "times", side_effect=times), mock.patch.object(run_workloads.time, "perf_counter", side_effect=[100.0, 100.0 + seconds]):
            return run_workloads.Load().others()

    def test_load_is_what_others_used_meanwhile(self):
        """The 5000 seconds of what ran before are not part of it."""
        self.assertAlmostEqual(self.others(20, 20), 0)
        self.assertAlmostEqual(self.others(25, 10), 1.5)
        self.assertEqual(self.others(9.9, 10), 0)
        self.assertIsNone(self.others(None, 1))

    def test_seconds_of_the_kernel(self):
        with tempfile.NamedTemporaryFile("w", encoding="ascii") as f:
            for text, seconds in (("cpu  100 200 300 9999 9999 10 20 30 40 50\ncpu0 1\n", 660 / os.sysconf("SC_CLK_TCK")), ("cpu  0 0 0 0 0 0 0 0 0 0\n", None), ("", None), ("odd\n", None)):
                f.seek(0)
                f.truncate()
                f.write(text)
                f.flush()
                self.assertEqual(run_workloads.processor_seconds(f.name), seconds, text)
        self.assertIsNone(run_workloads.processor_seconds("/nonexistent"))


if __name__ == "__main__":
    unittest.main()
