"""The distribution's version, from its metadata."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("spangrade")
except PackageNotFoundError:  # run from a source tree that was not installed
    VERSION = "0.0.0+source"
