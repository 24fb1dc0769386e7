#!/usr/bin/python3
"""answers.py: the output of a process that ran a wheel's code, which may be any bytes."""
import json
import random
import unittest

from support import ABOUT, END, begin, failed, line, value
from answers import NAME_MAX, WORKLOADS_MAX, WORDS_MAX, Answers, Wrong

HEAD = '{"bench": "value", "name": "gemm", "unit": "s", "mean": true, '
SUMS = '"sums": [3, -1.5], "tolerance": 0.001}'


def read(*texts):
    said = Answers()
    said.read(b"".join(t if isinstance(t, bytes) else t.encode() for t in texts))
    return said


class Reading(unittest.TestCase):
    def test_run_with_all_kinds_of_lines(self):
        said = read(ABOUT, value("gemm", 0.25, 3), failed("sort 1M", "RuntimeError: no"), value("memory", 5, unit="bytes", mean=False, sums=None, tolerance=None),
                    failed("loader", "not here", "skipped"), END)
        self.assertTrue(said.done and said.open is None)
        self.assertEqual((said.torch, said.cpu, said.cuda, said.others), ("2.6.0+cpu", "AVX2", False, 0.1))
        self.assertEqual(list(said.by_name), ["gemm", "sort 1M", "memory", "loader"])
        gemm, memory = said.by_name["gemm"], said.by_name["memory"]
        self.assertEqual((gemm.value, gemm.in_mean, gemm.sums, gemm.why), (0.25, True, [3, 0], None))
        self.assertEqual((memory.unit, memory.sums, memory.in_mean), ("bytes", None, False))
        self.assertEqual(said.by_name["sort 1M"].why, "RuntimeError: no")
        self.assertTrue(said.by_name["loader"].skipped)

    def test_other_output_keeps_its_end(self):
        said = read(b"x" * 5000 + b"\n" + b"a\0b\n", "ImportError: the last\n")
        self.assertLessEqual(len(said.words.encode()), WORDS_MAX)
        self.assertTrue(said.words.endswith("a b\nImportError: the last"))
        said = read(b"\xff\xfe" * 5000)
        self.assertLessEqual(len(said.words.encode()), WORDS_MAX)
        self.assertNotIn("x", read(b"x\n", b"y" * (1 << 20)).words)

    def test_workload_without_answer_gets_a_reason(self):
        said = read(begin("gemm"))
        self.assertEqual(said.open, "gemm")
        said.close("the process died of signal 4")
        self.assertEqual(said.by_name["gemm"].why, "the process died of signal 4")
        said.close("nothing is open")
        self.assertEqual(len(said.by_name), 1)

    def test_second_process_continues(self):
        said = read(value("gemm", 1), begin("sort"))
        said.close("died")
        said.read((value("conv", 2) + END).encode())
        self.assertEqual(list(said.by_name), ["gemm", "sort", "conv"])
        self.assertTrue(said.done)

    def test_reason_is_plain_and_short(self):
        why = read(failed("gemm", "a\x1b[2J\nb\x7f" + "\u00e9" * 300)).by_name["gemm"].why
        self.assertTrue(why.startswith("a [2J b \u00e9"))
        self.assertEqual(len(why.encode()), 500)
        self.assertEqual(len(read(failed("gemm", "x" + "\u00e9" * 300)).by_name["gemm"].why.encode()), 499)
        self.assertEqual(read(begin("gemm"), '{"bench": "failed", "name": "gemm", "why": "a\\ud800"}\n').by_name["gemm"].why, "a?")

    def test_load_of_others_may_be_missing(self):
        self.assertIsNone(read(line("end")).others)
        self.assertIsNone(read(line("end", others=None)).others)


class Refusing(unittest.TestCase):
    def refuse(self, *texts):
        said = Answers()
        with self.assertRaises(Wrong, msg=texts) as raised:
            said.read("".join(texts).encode())
        return str(raised.exception), said

    def test_wrong_line_takes_nothing(self):
        for bad in ('{"bench": "value", "name": ', '{"bench": 5}', '{"bench": "value", "bench": "end"}', '{"bench": "begin", "name": "within another"}', '{"bench": "end"}',
                    '{"bench": "odd", "name": "gemm"}', '{"bench": "failed", "name": "gemm"}', '{"bench": "failed", "name": "gemm", "why": ""}',
                    '{"bench": "failed", "name": "gemm", "why": 5}', '{"bench": "failed", "name": "sort", "why": "another"}', HEAD + SUMS,
                    *(HEAD + f'"value": {v}, ' + SUMS for v in ("NaN", "Infinity", "1e999", "1e300", "9" * 23, "9" * 9999, "0", "-1", "1e-300", '"1"', "true", "null", "[1]")),
                    *(HEAD + '"value": 1' + rest for rest in ("}", ', "sums": 1, "tolerance": 0.1}', ', "sums": [1], "tolerance": 0.1}', ', "sums": [1, 2, 3], "tolerance": 0.1}',
                                                               ', "sums": [1, null], "tolerance": 0.1}', ', "sums": [1, NaN], "tolerance": 0.1}', ', "sums": [1, 2], "tolerance": 0}',
                                                               ', "sums": [1, 2], "tolerance": 2}', ', "sums": [1, 2], "tolerance": null}') if rest != "}"),
                    '{"bench": "value", "name": "gemm", "unit": "miles", "value": 1, ' + SUMS, '{"bench": "value", "name": "gemm", "value": 1, ' + SUMS,
                    '{"bench": "value", "name": "gemm", "unit": ["s"], "value": 1, ' + SUMS, '{"bench": ' + "[" * 100000, '{"bench": "x", "why": "' + "x" * (300 << 10) + '"}'):
            message, said = self.refuse(begin("gemm"), bad + "\n", value("gemm", 1))
            self.assertTrue(message.startswith("line 2: "), (bad[:80], message))
            self.assertFalse(said.by_name or said.done, bad[:80])

    def test_offset_is_a_place_within_a_mebibyte(self):
        for offset in (-1, 1 << 20, 1.5, "64", True, [64]):
            self.assertEqual(self.refuse(value("gemm", 1, offset=offset))[0], "line 2: not an offset", offset)
        self.assertEqual([read(value("gemm", 1, offset=n)).by_name["gemm"].offset for n in (0, (1 << 20) - 1, None)], [0, (1 << 20) - 1, None])

    def test_bytes_that_are_no_utf8(self):
        with self.assertRaises(Wrong):
            read(begin("gemm"), b'{"bench": "failed", "name": "gemm", "why": "\xff"}\n')

    def test_names_and_order(self):
        for name in ("", " x", "x ", "a\x1b[31m", "\u00e9", "a\nb", "0" * (NAME_MAX + 1), 5, None):
            self.assertEqual(self.refuse(line("begin", name=name))[0], "line 1: not the begin of a workload")
        self.refuse(failed("gemm", "x"), begin("gemm"))
        self.refuse(line("value", name="gemm", value=1, unit="s"))
        self.assertEqual(self.refuse(END, begin("gemm"))[0], "line 2: a line behind the end")

    def test_about_a_torch(self):
        for what in ({"torch": "1"}, {"torch": 1, "cpu": ""}, {"torch": "\x1b", "cpu": ""}, {"cpu": ""}, {"torch": "1", "cpu": "a\nb"}, {"torch": "1", "cpu": None}):
            self.refuse(line("about", **what))
        self.refuse(line("about", torch="1", cpu=""), line("about", torch="1", cpu=""))

    def test_load_of_others(self):
        for others in (-1, "1", 1e300, [0]):
            self.refuse(line("end", others=others))

    def test_too_many_workloads(self):
        said = read(*(failed(f"w{n}", "x", "skipped") for n in range(WORKLOADS_MAX)))
        with self.assertRaises(Wrong):
            said.read(begin("one more").encode())

    def test_any_bytes_are_read_or_refused(self):
        """Mutations of right lines: no other exception, and what is kept can be shown."""
        rng = random.Random(1)
        lines = "".join((ABOUT, value("gemm", 1), failed("sort", "why"), END)).encode()
        for _ in range(3000):
            data = bytearray(lines)
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(data))
                data[at:at + rng.randrange(3)] = rng.choice((b"\0", b"\xff", b"9", b"\"", b"{", b"-", b"\n", b"\\u", b"e9", bytes([rng.randrange(256)])))
            said = Answers()
            try:
                said.read(bytes(data))
            except Wrong:
                pass
            for x in said.by_name.values():
                self.assertTrue(x.why or (1e-12 <= x.value <= 1e15 and x.unit in ("s", "bytes")), bytes(data))
            json.dumps([said.words, said.torch, said.cpu], ensure_ascii=False).encode()


if __name__ == "__main__":
    unittest.main()
