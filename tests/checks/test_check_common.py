#!/usr/bin/python3
"""check_common.py: which torch is the one that was asked for."""
import importlib.metadata
import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../profiles/checks"))
sys.dont_write_bytecode = True
import check_common  # noqa: E402


class IsVersion(unittest.TestCase):
    def ask(self, installed, said, want, cuda=None, of=None):
        """cuda: the plan's; of: the torch's."""
        torch = types.SimpleNamespace(__version__=said, version=types.SimpleNamespace(cuda=of))
        with mock.patch.object(importlib.metadata, "version", return_value=installed):
            return check_common.is_version(torch, {"torch": want, "cuda": cuda})

    def test_a_torch_of_ones_own_has_one_version(self):
        self.assertEqual(self.ask("2.6.0+cpu.avx2", "2.6.0+cpu.avx2", "2.6.0+cpu.avx2"), (True, "2.6.0+cpu.avx2"))
        self.assertFalse(self.ask("2.6.0+cpu.avx2", "2.6.0+cpu.avx512", "2.6.0+cpu.avx2")[0])
        self.assertFalse(self.ask("2.6.0+cpu.avx512", "2.6.0+cpu.avx2", "2.6.0+cpu.avx2")[0])

    def test_the_official_wheel_says_more_than_its_metadata(self):
        self.assertEqual(self.ask("2.6.0", "2.6.0+cu124", "2.6.0"), (True, "2.6.0+cu124"))

    def test_one_that_was_cut_says_what_it_was(self):
        cut = "2.11.0+cu130.sm90"
        self.assertEqual(self.ask(cut, "2.11.0+cu130", cut, "13.0", "13.0"), (True, "2.11.0+cu130"))
        self.assertFalse(self.ask("2.11.0+cu130.sm80", "2.11.0+cu130", cut, "13.0", "13.0")[0])
        self.assertFalse(self.ask(cut, "2.11.0+cu12", cut, "13.0", "13.0")[0])
        self.assertFalse(self.ask(cut, "2.11.0", "2.11.0.1+cu130.sm90", "13.0", "13.0")[0])

    def test_the_official_wheel_of_another_cuda(self):
        self.assertEqual(self.ask("2.6.0", "2.6.0+cu124", "2.6.0", "12.4", "12.4"), (True, "2.6.0+cu124"))
        self.assertEqual(self.ask("2.6.0", "2.6.0+cu118", "2.6.0", "12.4", "11.8"), (False, "2.6.0+cu118 for CUDA 11.8, not CUDA 12.4"))
        self.assertEqual(self.ask("2.6.0", "2.6.0+cu126", "2.6.0", "12.4", "12.6"), (False, "2.6.0+cu126 for CUDA 12.6, not CUDA 12.4"))
        self.assertEqual(self.ask("2.6.0", "2.6.0+cpu", "2.6.0", "12.4", None), (False, "2.6.0+cpu for the CPU, not CUDA 12.4"))
        self.assertFalse(self.ask("2.6.1", "2.6.1+cu124", "2.6.0", "12.4", "12.4")[0])

    def test_a_torch_of_ones_own_says_its_cuda_twice(self):
        own = "2.6.0+cu124.sm90.avx512"
        self.assertEqual(self.ask(own, own, own, "12.4", "12.4"), (True, own))
        self.assertFalse(self.ask(own, own, own, "12.4", "12.6")[0])

    def test_a_companion_for_the_cpu_goes_with_any_cuda(self):
        self.assertEqual(self.ask("2.6.0", "2.6.0+cu118", "2.6.0", None, "11.8"), (True, "2.6.0+cu118"))

    def test_another_torch_is_not_it(self):
        for installed, said, want in (("2.6.0", "2.6.1+cu124", "2.6.0"), ("2.6.1", "2.6.0", "2.6.0"), ("2.6.0", "2.6.0", "2.6.0+cpu"), ("2.6.0", "2.6.0+cpu", "2.6.0+cpu")):
            self.assertFalse(self.ask(installed, said, want)[0], (installed, said, want))


class Aside(unittest.TestCase):
    def test_its_result_is_the_functions(self):
        first, second = check_common.aside(lambda: (True, f"not {os.getppid()}")), check_common.aside(lambda: (False, 7))
        self.assertEqual(second(), [False, "7"])
        self.assertEqual(first(), [True, f"not {os.getpid()}"])

    def test_an_exception_is_a_failed_check(self):
        self.assertEqual(check_common.aside(lambda: 1 // 0)(), [False, "ZeroDivisionError: integer division or modulo by zero"])

    def test_so_is_a_process_that_dies(self):
        self.assertEqual(check_common.aside(lambda: os.kill(os.getpid(), 9))(), (False, "its process ended with status -9"))


if __name__ == "__main__":
    unittest.main()
