"""The distribution's version, from its metadata."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("spangrade")
except PackageNotFoundError:  # run from a source tree that was not installed
    __version__ = "0.0.0+source"
