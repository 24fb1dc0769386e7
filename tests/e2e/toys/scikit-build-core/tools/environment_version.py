"""The version is what the builder says it is."""

import os


def dynamic_metadata(field, settings=None):
    return os.environ["PYTORCH_BUILD_VERSION"]
