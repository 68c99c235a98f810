"""``spangrade metrics list`` and ``spangrade metrics show NAME``: what there is, and what one takes."""

import argparse
import importlib
import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from spangrade.commands.importing import importable_here
from spangrade.errors import ConfigError
from spangrade.metrics import lookup
from spangrade.metrics.description import Description, describe, descriptions

EXIT_CONFIG = 2
_INDENT = "  "
_ROOM = 28  # characters for the parameters' names


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code (2: there is no such metric, or a module does not import)."""
    parser = argparse.ArgumentParser(
        prog="spangrade metrics", description="What metrics there are, and what they take."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    every = commands.add_parser("list", help="all that can be named: built-in, registered, offered by packages")
    one = commands.add_parser("show", help="what one measures, and its parameters")
    one.add_argument("name", metavar="NAME", help="a name, or module:attribute")
    for command in (every, one):
        command.add_argument("--json", action="store_true", help="as JSON")
        command.add_argument(
            "--import", dest="modules", metavar="MODULE", action="append", default=[],
            help="import it first: what it registers is found then; repeatable",
        )  # fmt: skip
    options = parser.parse_args(argv)
    try:
        with importable_here():
            for module in options.modules:
                _import(module)
            if options.command == "list":
                _list(descriptions(), as_json=options.json)
            else:
                _show(describe(lookup.find(options.name)), as_json=options.json)
    except ConfigError as fault:
        print(f"spangrade metrics: {str(fault).removeprefix('metrics: ')}", file=sys.stderr)
        return EXIT_CONFIG
    return 0


def _import(module: str) -> None:
    try:
        importlib.import_module(module)
    except Exception as fault:
        raise ConfigError(f"--import {module}: {type(fault).__name__}: {fault}") from fault


def _list(found: Sequence[Description], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([{k: v for k, v in d.as_json().items() if k != "doc"} for d in found], indent=2, default=str))
        return
    working = [one for one in found if not one.error]
    rows = [("name", "from", "requires", "passes", "needs", "config", "what it says")]
    rows += [(d.name, _from(d), _requires(d), _passes(d), _needs(d), _config(d), d.summary) for d in working]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    room = max(30, shutil.get_terminal_size((120, 24)).columns - sum(widths) - 2 * len(widths))
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)]
        print(_INDENT.join([*cells, textwrap.shorten(row[-1], room, placeholder="...")]).rstrip())
    for one in found:
        if one.error:
            print(f"\n{one.name} cannot be used: {one.error}")
    if missing := sorted({one.install for one in found if one.install}):
        print(f"\nmissing: {'; '.join(missing)}")


def _show(one: Description, *, as_json: bool) -> None:
    if one.error and one.family is None:
        raise ConfigError(one.error)
    if as_json:
        print(json.dumps(one.as_json(), indent=2, default=str))
        return
    title = f"{one.name}: {one.summary}" if one.summary else one.name
    facts = [("from", f"{_from(one)} ({one.where})"), ("written as", one.family or ""), ("requires", _requires(one))]
    facts += [
        ("inputs", _inputs(one)),
        ("gives", _gives(one.allowed_values)),
        ("passes", _passes(one)),
        ("target", one.target or ""),
        ("version", one.version or ""),
        ("needs", _needs(one)),
    ]
    print(title)
    for fact, said in facts:
        if said:
            print(f"{_INDENT}{fact:11}{said}")
    if one.error:
        print(f"{_INDENT}{'but':11}{one.error}")
    if one.doc:
        print(f"\n{one.doc}")
    print("\nconfig: it takes none" if one.parameters is None else "\nconfig:")
    for line in _parameters(one.parameters or {}):
        print(f"{_INDENT}{line}")


def _from(one: Description) -> str:
    return one.where if one.origin == "package" else one.origin


def _requires(one: Description) -> str:
    return "by config" if one.requires is None else ", ".join(one.requires) or "-"


def _passes(one: Description) -> str:
    if one.requires is None:
        return "by config"
    if not one.verdict:
        return "measures"
    if isinstance(one.allowed_values, list):
        return "if true" if any(isinstance(category, bool) for category in one.allowed_values) else "if pass"
    if one.threshold is None:
        return "at 0 only" if one.lower_is_better else "unless 0"
    return f"{'<=' if one.lower_is_better else '>='} {one.threshold:g}"


def _inputs(one: Description) -> str:
    said = [name if name == path else f"{name} (from {path})" for name, path in (one.inputs or {}).items()]
    return ", ".join(said)


def _gives(allowed: Any) -> str:
    if allowed is None:
        return ""
    if isinstance(allowed, int):
        return f"a list of {allowed}"
    if isinstance(allowed, range):
        return f"one of {allowed}"
    if isinstance(allowed, tuple):
        return f"{allowed[0]:g} to {allowed[1]:g}"
    return ", ".join(str(value) for value in allowed)


def _needs(one: Description) -> str:
    if not one.extra:
        return "-"
    return f"[{one.extra}]" + (" missing" if one.install else "")


def _config(one: Description) -> str:
    """The parameters by name, those that must be given with a star."""
    required = (one.parameters or {}).get("required", ())
    names = [f"{name}*" if name in required else name for name in (one.parameters or {}).get("properties", {})]
    return textwrap.shorten(", ".join(names), _ROOM, placeholder="...") or "-"


def _parameters(schema: Any) -> Iterator[str]:
    """One line for each parameter of a JSON schema."""
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    width = max((len(name) for name in properties), default=0)
    for name, said in properties.items():
        kind = _type(said, schema)
        default = "required" if name in required else f"default {json.dumps(said.get('default'), default=str)}"
        about = f"; {said['description']}" if said.get("description") else ""
        yield f"{name:{width}}  {kind}, {default}{about}"


def _type(said: Any, schema: Any) -> str:
    if "$ref" in said:
        return _type(schema.get("$defs", {}).get(said["$ref"].rpartition("/")[2], {}), schema)
    if "enum" in said:
        return " | ".join(json.dumps(value) for value in said["enum"])
    if "const" in said:
        return json.dumps(said["const"])
    if "anyOf" in said:
        return " | ".join(_type(part, schema) for part in said["anyOf"])
    kind = str(said.get("type", "any"))
    limits = [f"{word} {said[key]:g}" for key, word in _LIMITS if key in said]
    if kind == "array" and "items" in said:
        kind = f"array of {_type(said['items'], schema)}"
    return f"{kind} ({', '.join(limits)})" if limits else kind


_LIMITS = (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<"))
