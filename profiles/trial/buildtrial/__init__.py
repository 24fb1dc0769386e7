from buildtrial._C import sum  # noqa: F401
