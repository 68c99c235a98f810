"""A certificate for ``localhost`` that is its own authority, made by openssl."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")


@dataclass(frozen=True)
class Certificate:
    """Paths of the PEM files."""

    cert: str
    key: str


def make_certificate(folder: Path) -> Certificate:
    """Both files, in ``folder``; valid for two days."""
    made = Certificate(str(folder / "cert.pem"), str(folder / "key.pem"))
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", made.key, "-out", made.cert]
    names = ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*request, *names], check=True, capture_output=True)
    return made
