"""Reads what a process of run_workloads.py printed. A wheel's code ran in that process, so the bytes may be anything."""
import json
import math
import re

MARK = '{"bench": '
LINE_MAX = 256 << 10  # a workload's line has some hundred bytes
NAME_MAX, WORKLOADS_MAX = 64, 512
# Seconds or bytes: a ratio of any two is a number.
VALUE_MIN, VALUE_MAX = 1e-12, 1e15
OTHERS_MAX = 1e6  # processors
OFFSET_MAX = (1 << 20) - 1
WHY_MAX, WORDS_MAX = 500, 1000  # bytes


class Wrong(Exception):
    """A line that run_workloads.py does not print."""


class Answer:
    def __init__(self, name, why=None, skipped=False, value=None, unit=None, in_mean=False, sums=None, tolerance=0.0, offset=None):
        self.name, self.why, self.skipped, self.value, self.unit = name, why, skipped, value, unit
        self.in_mean, self.sums, self.tolerance, self.offset = in_mean, sums, tolerance, offset


def is_name(text):
    """Names and units are shown and compared: printable ASCII alone."""
    return isinstance(text, str) and 0 < len(text) <= NAME_MAX and text.strip(" ") == text and all(" " <= c <= "~" for c in text)


def number(x, most):
    """A float whose magnitude is at most `most`; None for anything else."""
    try:
        value = float(x) if isinstance(x, (int, float)) and not isinstance(x, bool) else math.nan
    except OverflowError:
        return None
    return value if math.isfinite(value) and abs(value) <= most else None


def clipped(data, end):
    """The first (end > 0) or last bytes of UTF-8, without a part of a character."""
    return (data[:end] if end > 0 else data[end:]).decode("utf-8", "ignore")


def plain(text, end=WHY_MAX):
    """Text of a Python exception: short, without control characters."""
    text = re.sub("[\0-\x1f\x7f]", " ", text)
    return clipped(text.encode("utf-8", "replace"), end)


def without_duplicates(pairs):
    row = dict(pairs)
    if len(row) != len(pairs):
        raise ValueError("a key twice")
    return row


def no_constant(text):
    raise ValueError(text)


def parse(line):
    """The object of a line; None."""
    try:
        row = json.loads(line.decode("utf-8"), object_pairs_hook=without_duplicates, parse_constant=no_constant) if len(line) <= LINE_MAX else None
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


class Answers:
    """The answers of all processes of one run. `open` is the workload that began and has no answer."""

    def __init__(self):
        self.torch = self.cpu = self.open = self.others = None
        self.cuda = self.done = False
        self.by_name = {}
        self.words = ""
        self.lines = 0

    def read(self, output):
        """Reads the output of one more process. Raises Wrong."""
        words = []
        for line in output.split(b"\n"):
            if not line.startswith(MARK.encode()):
                words.append(line)
                continue
            self.lines += 1
            row = parse(line)
            wrong = self.add(row) if row is not None else "not an object"
            if wrong:
                raise Wrong(f"line {self.lines}: {wrong}")
        text = b"\n".join(words).strip().replace(b"\0", b" ")
        self.words = clipped(text.decode("utf-8", "replace").encode(), -WORDS_MAX)

    def close(self, why):
        """Gives the open workload this reason for having no answer."""
        if self.open:
            self.answer(Answer(self.open, why))

    def answer(self, answer):
        self.by_name[answer.name] = answer
        self.open = None

    def add(self, row):
        """Takes one line; returns what is wrong with it, or None."""
        kind, name = row.get("bench"), row.get("name")
        if not isinstance(kind, str):
            return "not one of its lines"
        if self.done:
            return "a line behind the end"
        if kind == "about":
            return self.add_about(row)
        if kind == "begin":
            return self.add_begin(name)
        if kind == "end":
            return self.add_end(row)
        if not self.open or name != self.open:
            return "an answer to what did not begin"
        if kind == "value":
            return self.add_value(row)
        if kind not in ("failed", "skipped"):
            return "a kind that is not known"
        why = row.get("why")
        if not isinstance(why, str) or not why:
            return "no reason"
        self.answer(Answer(name, plain(why), skipped=kind == "skipped"))
        return None

    def add_about(self, row):
        torch, cpu = row.get("torch"), row.get("cpu")
        if self.torch or not is_name(torch) or (cpu != "" and not is_name(cpu)):
            return "not what is known of a torch"
        self.torch, self.cpu, self.cuda = torch, cpu, row.get("cuda") is True
        return None

    def add_begin(self, name):
        if self.open or not is_name(name) or name in self.by_name or len(self.by_name) == WORKLOADS_MAX:
            return "not the begin of a workload"
        self.open = name
        return None

    def add_end(self, row):
        if self.open:
            return "the end, within a workload"
        others = row.get("others")
        self.others = number(others, OTHERS_MAX)
        if others is not None and (self.others is None or self.others < 0):
            return "not the load of other programs"
        self.done = True
        return None

    def add_value(self, row):
        value, sums, tolerance = number(row.get("value"), VALUE_MAX), row.get("sums"), row.get("tolerance")
        if row.get("unit") not in ("s", "bytes"):
            return "a unit that is not known"
        if value is None or value < VALUE_MIN:
            return "not a value"
        if sums is not None or tolerance is not None:
            tolerance = number(tolerance, 1)
            sums = [number(x, math.inf) for x in sums] if isinstance(sums, list) else []
            if len(sums) != 2 or None in sums or tolerance is None or tolerance <= 0:
                return "not the sums of a result"
        offset = row.get("offset")
        if offset is not None and (type(offset) is not int or not 0 <= offset <= OFFSET_MAX):
            return "not an offset"
        self.answer(Answer(self.open, None, False, value, row["unit"], row.get("mean") is True, sums, tolerance or 0.0, offset))
        return None
