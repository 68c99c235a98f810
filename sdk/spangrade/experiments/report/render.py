"""Templates to a page. What the templates are given is escaped; the page may run its own script and style and load nothing."""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from spangrade._text import valid
from spangrade._version import __version__


def rendered(template: str, **context: Any) -> str:
    """The page, in valid Unicode."""
    style, script = _asset("report.css"), _asset("report.js")
    # The policy names both by their hashes: text that looked like a script or style would still not be one.
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    page = (
        _environment()
        .get_template(template)
        .render(style=style, script=script, policy=policy, version=__version__, **context)
    )
    return valid(page)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("spangrade.experiments.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _asset(name: str) -> str:
    return (files("spangrade.experiments.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
