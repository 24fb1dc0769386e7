#!/usr/bin/python3
"""compare.py: medians, ratios, and what is not compared."""
import math
import unittest

from support import failed, value
import compare
from answers import Answers


def runs(*pairs):
    """A pair is two texts, of the wheel and of the other."""
    made = []
    for pair in pairs:
        both = [Answers(), Answers()]
        for said, text in zip(both, pair):
            said.read(text.encode())
        made.append(both)
    return made


def judge(*pairs):
    return compare.one_set(runs(*pairs), 2, [0, 1])


def of(one, name):
    return {w["name"]: w for w in one["workloads"]}[name]


class Sets(unittest.TestCase):
    def test_ratio_is_the_median_of_pairs(self):
        """A machine that becomes slower slows both of a pair: the ratio of the medians would be 3.5."""
        one = judge(*((value("gemm", x), value("gemm", y, 7.001)) for x, y in ((1, 2), (2, 7), (4, 8))))
        w = of(one, "gemm")
        self.assertEqual((w["state"], w["ratio"], w["wheel"]["median"], w["other"]["median"]), ("compared", 2, 2, 7))
        self.assertEqual((w["other"]["samples"], w["wheel"]["spread"], w["unit"]), ([2, 7, 8], 1.5, "s"))
        self.assertEqual((one["threads"], one["processors"], one["compared"]), (2, [0, 1], 1))

    def test_mean_counts_what_belongs_to_it(self):
        pair = value("a", 1) + value("b", 1) + value("import", 1, mean=False), value("a", 4) + value("b", 0.25) + value("import", 100, mean=False)
        one = judge(pair, pair)
        self.assertAlmostEqual(one["geometric_mean"], 1)
        self.assertEqual((one["compared"], one["lowest"], one["-lowest"]), (2, ["b"], [{"name": "b", "ratio": 0.25}]))
        self.assertEqual((of(one, "import")["ratio"], of(one, "import")["in_mean"]), (100, False))

    def test_only_the_five_lowest_below_one_are_named(self):
        ratios = (0.9, 0.3, 0.7, 1.5, 0.5, 0.8, 0.4, 1)
        one = judge(("".join(value(f"w{r}", 1) for r in ratios), "".join(value(f"w{r}", r) for r in ratios)))
        self.assertEqual(one["lowest"], ["w0.3", "w0.4", "w0.5", "w0.7", "w0.8"])

    def test_failure_in_one_run_leaves_the_workload_out(self):
        good = value("good", 1), value("good", 2)
        one = judge((good[0] + value("bad", 1), good[1] + value("bad", 1)), (good[0] + value("bad", 1), good[1] + failed("bad", "RuntimeError: no")))
        w = of(one, "bad")
        self.assertEqual((w["state"], w["wheel"]["why"], w["other"]["why"], w["ratio"]), ("failed", None, "RuntimeError: no", None))
        self.assertEqual((one["compared"], one["failed"], one["geometric_mean"]), (1, 1, 2))

    def test_missing_answer_is_a_failure(self):
        one = judge((value("alone", 1) + value("apart", 1), ""), ("", value("apart", 1)))
        self.assertEqual((of(one, "alone")["state"], of(one, "alone")["other"]["why"]), ("failed", "it gave no answer"))
        self.assertEqual((of(one, "apart")["state"], of(one, "apart")["-reason"]), ("failed", "never in one pair"))
        self.assertEqual((one["compared"], one["geometric_mean"]), (0, None))

    def test_other_result_has_no_ratio(self):
        texts = [(value("same", 1) + value("other", 1) + value("without", 1) + value("unit", 1),
                  value("same", 1) + value("other", 1, 7.1 if n == 2 else 7) + value("without", 3, sums=None, tolerance=None) + value("unit", 1, unit="bytes")) for n in range(3)]
        one = judge(*texts)
        self.assertEqual([of(one, n)["state"] for n in ("same", "other", "without", "unit")], ["compared", "differs", "differs", "differs"])
        self.assertEqual((one["differing"], one["compared"], of(one, "other")["ratio"]), (3, 1, None))
        self.assertIn("differ in 3 of 4 workloads", compare.refusal([one]))

    def test_skipped_by_both_is_no_failure(self):
        text = failed("loader", "not for this device", "skipped")
        one = judge((text, text), (text, text))
        self.assertEqual((of(one, "loader")["state"], one["failed"], of(one, "loader")["-reason"]), ("skipped", 0, "both: not for this device"))
        self.assertIn("no workload", compare.refusal([one]))

    def test_refusal_of_results_that_are_right(self):
        self.assertIsNone(compare.refusal([judge((value("a", 1), value("a", 2)))]))
        self.assertIn("1 of 1 workload", compare.refusal([judge((value("a", 1), value("a", 2, 9)))]))
        self.assertIsNotNone(compare.refusal([]))

    def test_bar_is_even_in_the_middle(self):
        for ratio, bar in ((2, ("faster", 50, 25)), (0.5, ("slower", 25, 25)), (900, ("faster", 50, 50)), (1, ("faster", 50, 0))):
            w = of(judge((value("gemm", 1), value("gemm", ratio))), "gemm")
            self.assertEqual((w["-class"], round(w["-left"], 9), round(w["-width"], 9)), bar)
        self.assertNotIn("-class", of(judge((failed("a", "x"), failed("a", "x"))), "a"))

    def test_text_of_the_table(self):
        one = judge(*2 * [(value("gemm", 0.25) + value("tiny", 2e-6) + value("memory", 3 << 20, unit="bytes") + failed("conv", "it <died>"),
                           value("gemm", 0.5) + value("tiny", 2e-6) + value("memory", 3 << 20, unit="bytes") + value("conv", 1))])
        shown = {w["name"]: [w[k] for k in ("-wheel", "-other", "-spread", "-reason")] for w in one["workloads"]}
        self.assertEqual(shown, {"gemm": ["250.000 ms", "500.000 ms", "0%", ""], "tiny": ["0.00200 ms", "0.00200 ms", "0%", ""],
                                 "memory": ["3.0 MiB", "3.0 MiB", "0%", ""], "conv": ["-", "1000.000 ms", "", "the wheel: it <died>"]})
        self.assertEqual(of(judge((value("a", 1), value("a", 1))), "a")["-spread"], "-")
        self.assertEqual(of(judge((failed("a", "x"), failed("a", "y"))), "a")["-reason"], "the wheel: x; the other: y")


def pairs_of(ratios, name="gemm"):
    return [(value(name, 1), value(name, ratio)) for ratio in ratios]


class Intervals(unittest.TestCase):
    def test_interval_of_few_and_many(self):
        """By the binomial distribution: all of 6 lie on one side of the median once in 32 times, so 5 are too few."""
        self.assertIsNone(compare.interval([1, 2, 3, 4, 5]))
        self.assertEqual(compare.interval([6, 2, 3, 4, 5, 1]), [1, 6])
        self.assertEqual(compare.interval(list(range(1, 16))), [4, 12])
        self.assertEqual(compare.interval(list(range(1, 21))), [6, 15])

    def test_verdict_needs_the_whole_interval(self):
        for ratios, verdict in (((1.1, 1.2, 1.3, 1.2, 1.1, 1.01), "faster"), ((0.9, 0.8, 0.99, 0.9, 0.9, 0.9), "slower"),
                                ((1.1, 1.2, 1.3, 1.2, 1.1, 0.99), "no difference shown"), ((1,) * 6, "no difference shown"), ((2,) * 5, "no difference shown")):
            one = judge(*pairs_of(ratios))
            self.assertEqual((of(one, "gemm")["verdict"], of(one, "gemm")["-verdict"]), (verdict, verdict), ratios)
            self.assertEqual((one["faster"], one["slower"], one["pairs"]), (verdict == "faster", verdict == "slower", len(ratios)))

    def test_failed_workload_has_no_verdict(self):
        w = of(judge((failed("a", "x"), failed("a", "x"))), "a")
        self.assertEqual((w["interval"], w["verdict"], w["-interval"], w["-verdict"], w["-offsets"]), (None, None, "", "", ""))

    def test_enough_pairs(self):
        for ratios, enough in (((1, 1.01, 1.02, 1.03, 1, 1), True), ((1, 1.1, 1, 1, 1, 0.9), False), ((2, 9, 4, 5, 6, 7), True), ((2,) * 5, False)):
            self.assertEqual(compare.is_enough(runs(*pairs_of(ratios))), enough, ratios)
        noisy_import = [(value("import", 1, mean=False), value("import", r, mean=False)) for r in (1, 2, 0.5, 1, 1, 1)]
        self.assertTrue(compare.is_enough(runs(*noisy_import)))

    def test_offsets_are_those_of_all_runs(self):
        one = judge((value("a", 1, offset=64) + value("b", 1), value("a", 1) + value("b", 1)), (value("a", 1, offset=0) + value("b", 1), value("a", 1) + value("b", 1)))
        self.assertEqual((of(one, "a")["wheel"]["offsets"], of(one, "a")["other"]["offsets"], of(one, "a")["-offsets"]), ([0, 64], [], "0, 64 / -"))
        self.assertEqual(of(one, "b")["-offsets"], "")


class Arithmetic(unittest.TestCase):
    def test_median(self):
        values = [9, 1, 4]
        self.assertEqual([compare.median(v) for v in (values, [8, 2, 6, 4], [9], [])], [4, 5, 9, 0])
        self.assertEqual(values, [9, 1, 4])

    def test_spread(self):
        self.assertEqual([compare.spread(v) for v in ([4, 5, 3], [2, 2], [4], [])], [0.5, 0, 0, 0])

    def test_geometric_mean(self):
        for values, mean in (([2, 0.5], 1), ([1, 10, 100], 10), ([], 0)):
            self.assertAlmostEqual(compare.geometric_mean(values), mean)
        self.assertTrue(math.isfinite(compare.geometric_mean([1e27] * 20)))

    def test_same_results(self):
        a, zero = [100, -3], [0, 0]
        for x, y, tolerance, same in ((a, a, 1e-9, True), (a, [100.05, -3.05], 1e-3, True), (a, [100.2, -3], 1e-3, False), ([100.2, -3], a, 1e-3, False),
                                      (a, [100, 3], 1e-3, False), (a, zero, 1e-3, False), (zero, zero, 1e-9, True)):
            self.assertEqual(compare.same(x, y, tolerance), same, (x, y, tolerance))


if __name__ == "__main__":
    unittest.main()
