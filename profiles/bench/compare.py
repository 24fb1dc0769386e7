"""Makes medians, ratios and the mean out of the answers of all runs, as `ptbuild bench --json` has them.

Keys that begin with "-" are for the table and the page.
"""
import math
import statistics

MIB = 1024.0 * 1024.0
WIDEST, HALF = 4.0, 50.0  # a ratio of 4, or its reciprocal, fills its half of a bar; percent
LOWEST = 5
CERTAINTY = 0.95  # that the ratio lies in its interval
NARROW = 1.04  # of an interval that shows no difference: high / low
FASTER, SLOWER, NEITHER = "faster", "slower", "no difference shown"
OURS, OTHER = 0, 1


def median(values):
    return float(statistics.median(values)) if values else 0.0


def spread(values):
    """(most - least) / median; 0 for fewer than two."""
    middle = median(values)
    return (max(values) - min(values)) / middle if len(values) > 1 and middle > 0 else 0.0


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0.0


def interval(values):
    """Two of the values, between which the median lies with CERTAINTY, however they are distributed; None for fewer than six."""
    count, place, outside = len(values), None, 0.0
    for n in range(count // 2):
        outside += 2 * math.comb(count, n) / 2.0 ** count
        if outside > 1 - CERTAINTY:
            break
        place = n
    ordered = sorted(values)
    return None if place is None else [ordered[place], ordered[count - 1 - place]]


def verdict(between):
    if not between or between[0] <= 1 <= between[1]:
        return NEITHER
    return FASTER if between[0] > 1 else SLOWER


def is_narrow(between):
    """Whether more pairs would say little more."""
    return bool(between) and (verdict(between) != NEITHER or between[1] <= NARROW * between[0])


def same(a, b, tolerance):
    """Whether two results are one: both sums are close, by the larger first one, which is that of the magnitudes."""
    size = max(abs(a[0]), abs(b[0]))
    return all(abs(x - y) <= tolerance * size for x, y in zip(a, b))


def same_answers(x, y):
    if x.unit != y.unit or (x.sums is None) != (y.sums is None):
        return False
    return x.sums is None or same(x.sums, y.sums, max(x.tolerance, y.tolerance))


class Measured:
    """One workload on one side, over its runs."""

    def __init__(self, answers):
        found = [x for x in answers if x]
        self.values = [x for x in found if not x.why]
        self.samples = [x.value for x in self.values]
        self.median, self.spread = median(self.samples), spread(self.samples)
        failed = next((x.why for x in found if x.why and not x.skipped), None)
        skipped = next((x.why for x in found if x.why and x.skipped), None)
        if not failed and not skipped and not self.samples:
            failed = "it gave no answer"
        self.why = failed or skipped
        self.state = "failed" if failed else "skipped" if skipped else "compared"

    def offsets(self):
        return sorted({x.offset for x in self.values if x.offset is not None})

    def document(self):
        return {"median": self.median if self.samples else None, "spread": self.spread if len(self.samples) > 1 else None,
                "samples": self.samples, "offsets": self.offsets(), "why": self.why}


class Compared:
    """One workload: `pairs` has a pair of answers (or None) for each pair of runs."""

    def __init__(self, name, pairs):
        self.name = name
        self.sides = [Measured([pair[side] for pair in pairs]) for side in (OURS, OTHER)]
        values = self.sides[OURS].values + self.sides[OTHER].values
        self.unit = values[-1].unit if values else "s"
        self.in_mean = values[-1].in_mean if values else False
        # A pair in which a side has no value counts for no ratio.
        whole = [(x, y) for x, y in pairs if x and y and not x.why and not y.why]
        self.state = self.judge(whole)
        ratios = [y.value / x.value for x, y in whole] if self.state == "compared" else []
        self.ratio = median(ratios) if ratios else None
        self.interval = interval(ratios)

    def judge(self, whole):
        ours, other = self.sides[OURS].state, self.sides[OTHER].state
        if "failed" in (ours, other):
            return "failed"
        if "skipped" in (ours, other):
            return "skipped"
        if not whole:
            return "failed"
        return "compared" if all(same_answers(x, y) for x, y in whole) else "differs"

    def quantity(self, side):
        m = self.sides[side]
        if not m.samples:
            return "-"
        if self.unit == "bytes":
            return f"{m.median / MIB:.1f} MiB"
        return f"{m.median * 1e3:.5f} ms" if m.median < 1e-5 else f"{m.median * 1e3:.3f} ms"

    def widest(self):
        if all(len(m.samples) < 2 for m in self.sides):
            return "-"
        return f"{100 * max(m.spread for m in self.sides):.0f}%"

    def offsets(self):
        """Of both, where they are known."""
        both = [", ".join(map(str, m.offsets())) for m in self.sides]
        return " / ".join(text or "-" for text in both) if any(both) else ""

    def between(self):
        return "{:.2f} to {:.2f}".format(*self.interval) if self.interval else "-"

    def reason(self):
        ours, other = (m.why for m in self.sides)
        if self.state == "compared":
            return ""
        if self.state == "differs":
            return "the two have other results"
        if ours and ours == other:
            return f"both: {ours}"
        if ours and other:
            return f"the wheel: {ours}; the other: {other}"
        if ours or other:
            return f"the wheel: {ours}" if ours else f"the other: {other}"
        return "never in one pair"

    def bar(self):
        """Equal speed is in the middle of the bar."""
        width = HALF * min(1.0, abs(math.log(self.ratio) / math.log(WIDEST)))
        faster = self.ratio >= 1
        return {"-class": "faster" if faster else "slower", "-left": HALF if faster else HALF - width, "-width": width}

    def document(self):
        compared = self.state == "compared"
        row = {"name": self.name, "unit": self.unit, "in_mean": self.in_mean, "state": self.state,
               "wheel": self.sides[OURS].document(), "other": self.sides[OTHER].document(), "ratio": self.ratio,
               "interval": self.interval, "verdict": verdict(self.interval) if compared else None,
               "-offsets": self.offsets() if compared else "",
               "-interval": self.between() if compared else "", "-verdict": verdict(self.interval) if compared else "",
               "-wheel": self.quantity(OURS), "-other": self.quantity(OTHER),
               "-spread": self.widest() if compared else "", "-reason": self.reason()}
        return {**row, **self.bar()} if compared else row


def compared(runs):
    # In the order of the runs: the first has all that were asked for, unless its process ended early.
    names = dict.fromkeys(name for pair in runs for said in pair for name in said.by_name)
    return [Compared(name, [tuple(said.by_name.get(name) for said in pair) for pair in runs]) for name in names]


def is_enough(runs):
    """Whether each ratio of the mean is known so well that more pairs would say little more."""
    return all(is_narrow(w.interval) for w in compared(runs) if w.state == "compared" and w.in_mean)


def one_set(runs, threads, processors):
    """The document of all runs with a number of threads; `runs` has a pair of Answers for each pair of runs."""
    all_ = compared(runs)
    counted = [w for w in all_ if w.state == "compared" and w.in_mean]
    lowest = sorted((w for w in counted if w.ratio < 1), key=lambda w: w.ratio)[:LOWEST]
    verdicts = [verdict(w.interval) for w in counted]
    return {"threads": threads, "processors": list(processors), "pairs": len(runs),
            "faster": verdicts.count(FASTER), "slower": verdicts.count(SLOWER),
            "geometric_mean": geometric_mean([w.ratio for w in counted]) if counted else None,
            "compared": len(counted), "failed": sum(w.state == "failed" for w in all_),
            "differing": sum(w.state == "differs" for w in all_), "lowest": [w.name for w in lowest],
            "workloads": [w.document() for w in all_], "-lowest": [{"name": w.name, "ratio": w.ratio} for w in lowest]}


def refusal(sets):
    """Why these results are none to go by; None."""
    states = [w["state"] for s in sets for w in s["workloads"]]
    differing = states.count("differs")
    if differing:
        return f"results differ in {differing} of {len(states)} workload{'s' if len(states) != 1 else ''}"
    return None if "compared" in states else "no workload could be compared"
