#!/usr/bin/python3
"""tests/bench/speed_table.py: one table of what bench wrote on several machines."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from support import ABOUT, END, value
import bench

PROGRAM = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../bench/speed_table.py")
ASKED = {"only": [], "pairs": 6, "threads": [1, 2], "processors": [0, 1], "seconds": 0.3, "limit": 5, "device": "cpu", "scripts": "/x", "files": ["a.whl", "b.whl"]}


def document(name):
    """As bench.py makes it: gemm is twice as fast, sort at 0.5."""
    runs = [(ABOUT + END, 0)] * 2
    while True:
        got = bench.answer({**ASKED, "machine_class": name}, ["gemm", "sort"], [(text.encode(), status) for text, status in runs])
        if "turn" not in got:
            return got["document"]
        side = got["turn"]["side"]
        runs.append((value("gemm", 1 + side) + value("sort", 1 - side / 2) + END, 0))


class Table(unittest.TestCase):
    def run_with(self, *texts):
        with tempfile.TemporaryDirectory() as top:
            names = [os.path.join(top, f"{n}.json") for n in range(len(texts))]
            for name, text in zip(names, texts):
                with open(name, "w", encoding="utf-8") as f:
                    f.write(text)
            return subprocess.run([sys.executable, PROGRAM, *names], capture_output=True, text=True, check=False)

    def test_row_for_each_machine_and_number_of_threads(self):
        r = self.run_with(json.dumps(document("Zen 5")), json.dumps(document("Emerald Rapids")), json.dumps(document(None)))
        lines = r.stdout.splitlines()
        self.assertEqual((r.returncode, len(lines)), (0, 2 + 6), r.stderr)
        self.assertEqual([line.split(" | ")[0].strip("| ") for line in lines[2:]], ["not named"] * 2 + ["Emerald Rapids"] * 2 + ["Zen 5"] * 2)
        self.assertEqual(lines[-1], "| Zen 5 | 2.6.0+cpu | 2 | 6 | 1.00 | 1 | 1 | 0 | sort 0.50 (0.50 to 0.50) |")
        self.assertEqual({line.count("|") for line in lines}, {10})

    def test_other_files_are_refused(self):
        for text in ("", "{}", "[]", json.dumps({**document("x"), "sets": 5})):
            r = self.run_with(json.dumps(document("y")), text)
            self.assertEqual((r.returncode, r.stdout), (1, ""), text[:40])
            self.assertIn("1.json' is not what", r.stderr)


if __name__ == "__main__":
    unittest.main()
