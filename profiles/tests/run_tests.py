"""Runs the tests of one file, or a part of them, and writes a line of JSON into a journal when one begins and when it ends.

What the journal has is not run again, but what failed: up to three times, each in a process of its own. A file whose main
function is pytest's, or that has none, is run with pytest. One argument, in JSON: file, select, sample, part, parts, limit, memory (bytes that a test may believe to be free), expected, journal."""

import faulthandler
import fnmatch
import importlib
import json
import os
import sys
import time
import traceback
import types
import unittest
import zlib

TRIES = 3
DETAIL = 2000


class Journal:
    def __init__(self, path):
        self.outcomes = {}
        try:
            with open(path, "rb") as f:
                lines = f.read().split(b"\n")
        except FileNotFoundError:
            lines = [b""]
        for line in lines[:-1]:
            row = json.loads(line)
            if "test" in row:
                self.outcomes.setdefault(row["test"], []).append(row["outcome"])
        # A kill may leave half a line.
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        os.ftruncate(self.fd, sum(len(line) + 1 for line in lines[:-1]))
        self.pid = os.getpid()

    def add(self, **row):
        if os.getpid() != self.pid:  # a child that a test forked
            return
        os.write(self.fd, json.dumps(row).encode() + b"\n")
        if "test" in row:
            self.outcomes.setdefault(row["test"], []).append(row["outcome"])


def end_of(text):
    return text if len(text) <= DETAIL else "..." + text[-DETAIL:]


class Result(unittest.TestResult):
    def __init__(self, journal, limit):
        super().__init__()
        self.journal, self.limit = journal, limit
        self.classes = {}  # what setUpClass did: the outcome of all its tests
        self.current = None

    def startTest(self, test):
        super().startTest(test)
        self.current, self.outcome, self.detail, self.began = test, "passed", "", time.monotonic()
        self.journal.add(begin=name_of(test), at=time.time())
        faulthandler.dump_traceback_later(self.limit, exit=True)

    def stopTest(self, test):
        super().stopTest(test)
        faulthandler.cancel_dump_traceback_later()
        self.journal.add(test=name_of(test), outcome=self.outcome, seconds=round(time.monotonic() - self.began, 3), detail=self.detail)
        self.current = None

    def note(self, test, outcome, detail):
        if self.current is None:  # setUpClass or setUpModule: "setUpClass (module.Class)"
            self.classes[str(test).rpartition("(")[2].rstrip(")").rpartition(".")[2]] = (outcome, detail)
        elif self.outcome != "failed":
            self.outcome, self.detail = outcome, detail

    def words(self, err):
        return end_of("".join(traceback.format_exception(*err)))

    def addError(self, test, err, where=""):
        outcomes = sys.modules.get("_pytest.outcomes")
        if outcomes and issubclass(err[0], outcomes.Skipped):  # pytest.skip() in a test of unittest
            return self.addSkip(test, err[1])
        self.note(test, "failed", where + self.words(err))

    def addFailure(self, test, err):
        self.note(test, "failed", self.words(err))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addError(test, err, f"{subtest}\n")

    def addSkip(self, test, reason):
        self.note(test, "skipped", end_of(str(reason)))

    def addExpectedFailure(self, test, err):  # the source itself expects it
        pass

    def addUnexpectedSuccess(self, test):
        self.note(test, "failed", "passed, but the source expects it to fail")


def name_of(test):
    return ".".join(test.id().rsplit(".", 2)[-2:])


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def chosen(name, o):
    number = zlib.crc32(name.encode())
    if o["select"] and not any(fnmatch.fnmatchcase(name, p) for p in o["select"]):
        return False
    return number // 4096 % o["sample"] == 0 and number % o["parts"] == o["part"]


def to_run(tests, journal, o):
    """Of name to test: those without an outcome; when there are none, those that failed, have not been run three times, and are not
    expected to fail."""
    fresh = {name: t for name, t in tests.items() if name not in journal.outcomes}
    if fresh:
        return fresh
    return {name: t for name, t in tests.items() if may_try_again(journal.outcomes[name]) and not is_expected(name, o)}


def choose(found, journal, o):
    """What of name to test is this part's. A pattern that no test of the file has is told, by the first part."""
    rows = [row[len(o["file"]) + 2 :] for row in o["expected"] if row.startswith(o["file"] + "::")]
    for pattern in (o["select"] + rows) * (o["part"] == 0):
        if pattern not in journal.outcomes and not any(fnmatch.fnmatchcase(name, pattern) for name in found):
            journal.add(test=pattern, outcome="stale", seconds=0, detail="the table names it, and the file has no such test")
    return {name: t for name, t in found.items() if chosen(name, o)}


def may_try_again(outcomes):
    return len(outcomes) < TRIES and not {"passed", "skipped"} & set(outcomes)


def is_expected(name, o):
    return any(fnmatch.fnmatchcase(f"{o['file']}::{name}", p) for p in o["expected"])


def tell_memory(limit):
    """Tests that need much memory ask psutil whether it is there, but several processes run at once."""
    try:
        psutil = importlib.import_module("psutil")
    except ImportError:
        return
    ask = psutil.virtual_memory
    psutil.virtual_memory = lambda: (m := ask())._replace(available=min(m.available, limit))


class Loaded(BaseException):
    """The file came to its main function."""


class LoadedPytest(BaseException):
    """It is pytest's."""


def stop(*args, **options):
    raise Loaded


def stop_pytest(*args, **options):
    raise LoadedPytest


def execute(path):
    """The file as `python FILE` would run it, up to its main function: tests of pickling know that they are __main__."""
    main = types.ModuleType("__main__")
    main.__file__, main.__spec__ = path, None
    unittest.main = stop  # which would exit, too
    main_of_pytest = None
    try:
        pytest = importlib.import_module("pytest")
        main_of_pytest, pytest.main = pytest.main, stop_pytest
    except ImportError:
        pass
    try:
        importlib.import_module("torch.testing._internal.common_utils").run_tests = unittest.main
    except ImportError:  # of another package; or the file's own imports tell
        pass
    sys.modules["__main__"] = main
    with open(path, "rb") as f:
        code = compile(f.read(), path, "exec")
    try:
        exec(code, main.__dict__)
    except Loaded:
        pass
    except ImportError as ex:
        if "no known parent package" in str(ex):  # a module of a package of tests, which nobody runs as a program
            raise LoadedPytest from ex
        raise
    finally:
        if main_of_pytest:
            pytest.main = main_of_pytest
    return main


def load(o):
    path = os.path.abspath(o["file"])
    sys.argv = [path]
    sys.path[0] = os.path.dirname(path)
    sys.path.insert(1, os.getcwd())
    tell_memory(o["memory"])
    module = execute(path)
    # A file's load_tests may leave tests out by the name of the running script.
    found = {name_of(t): t for t in flatten(unittest.defaultTestLoader.loadTestsFromModule(module))}
    if not found and hasattr(module, "pytest"):  # without a main function
        raise LoadedPytest
    return found


def run(tests, journal, o):
    result = Result(journal, o["limit"])
    before = {name: len(journal.outcomes.get(name, [])) for name in tests}
    unittest.TestSuite(tests.values()).run(result)
    for name in tests:  # of a class whose setUpClass failed or was skipped
        if len(journal.outcomes.get(name, [])) == before[name]:
            outcome, detail = result.classes.get(name.split(".")[0], ("failed", "it was not run"))
            journal.add(test=name, outcome=outcome, seconds=0, detail=detail)


class Plugin:
    """The same with pytest."""

    def __init__(self, journal, o):
        self.journal, self.o, self.tests, self.failed = journal, o, {}, False

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed = True
            self.journal.add(error=end_of(str(report.longrepr)))

    def pytest_collection_modifyitems(self, items):
        # The class, or the file where there is none; parameters may have any sign.
        found = {f"{i.cls.__name__ if i.cls else i.path.stem}.{i.name}": i for i in items}
        self.tests = choose(found, self.journal, self.o)
        self.now = {i: name for name, i in to_run(self.tests, self.journal, self.o).items()}
        items[:] = list(self.now)

    def pytest_runtest_protocol(self, item):
        self.outcome, self.detail, began = "passed", "", time.monotonic()
        self.journal.add(begin=self.now[item], at=time.time())
        faulthandler.dump_traceback_later(self.o["limit"], exit=True, file=sys.__stderr__)
        yield
        faulthandler.cancel_dump_traceback_later()
        seconds = round(time.monotonic() - began, 3)
        self.journal.add(test=self.now[item], outcome=self.outcome, seconds=seconds, detail=self.detail)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.outcome, self.detail = "failed", end_of(report.longreprtext)
        elif report.skipped and self.outcome != "failed" and not hasattr(report, "wasxfail"):
            self.outcome, self.detail = "skipped", end_of(str(report.longrepr))


def run_pytest(journal, o):
    pytest = importlib.import_module("pytest")
    Plugin.pytest_runtest_protocol = pytest.hookimpl(hookwrapper=True)(Plugin.pytest_runtest_protocol)
    Plugin.pytest_collection_modifyitems = pytest.hookimpl(trylast=True)(Plugin.pytest_collection_modifyitems)
    plugin = Plugin(journal, o)
    # Its own time limits and its own words about crashes would stand in the way of these.
    options = ["-q", "--capture=sys", "-p", "no:faulthandler", "-p", "no:cacheprovider", "-o", "addopts="]
    pytest.main([os.path.abspath(o["file"]), *options], plugins=[plugin])
    if not plugin.failed:
        journal.add(end=len(to_run(plugin.tests, journal, o)))


def main():
    o = json.loads(sys.argv[1])
    journal, _own = Journal(o["journal"]), sys.modules["__main__"]  # kept: its names are these
    faulthandler.enable()
    try:
        tests = choose(load(o), journal, o)
    except LoadedPytest:
        return run_pytest(journal, o)
    except unittest.SkipTest as ex:
        return journal.add(end=0, skipped=end_of(str(ex)))
    except BaseException as ex:  # noqa: BLE001 - also SystemExit: some files end so where they cannot run
        if isinstance(ex, SystemExit) and ex.code in (0, None):
            return journal.add(end=0, skipped="the file ended before its tests")
        return journal.add(error=end_of(traceback.format_exc()))
    run(to_run(tests, journal, o), journal, o)
    journal.add(end=len(to_run(tests, journal, o)))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # threads and processes that tests left do not count
