"""A stand-in for torch, for tests of the tool that builds it."""

from importlib.metadata import version as _version

from torch._C import facts, sum  # noqa: F401

__version__ = _version("torch")
