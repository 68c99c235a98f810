"""Rows of a dataset file: JSON Lines, a JSON list, CSV or TSV; what cannot be read is named with its line."""

import codecs
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from spangrade.errors import ConfigError

Rows = Iterator[tuple[str, Any]]
"""Where a row stands (``line 3``), and the row or a `BadRow`."""

_TABLES: Final = {".csv": None, ".tsv": "\t"}
_NOT_READ: Final = {".parquet", ".xlsx", ".xls", ".arrow", ".feather", ".zip", ".gz", ".zst", ".pkl", ".yaml", ".yml"}
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_MAX_CELL: Final = 64 * 2**20  # characters; csv's own bound of 131,072 is less than one long document


class BadRow:
    """A line that is no row, and why."""

    def __init__(self, why: str) -> None:
        self.why = why


def rows_of(path: Path) -> Rows:
    """The rows of a file, by its suffix: ``.csv``, ``.tsv``; anything else is JSON Lines, or one JSON list.

    Text is UTF-8 (a byte order mark, of UTF-16 too, is heeded); empty lines are skipped.

    Raises:
        ConfigError: the file cannot be read, is of another kind, or is no text.
    """
    suffix = path.suffix.lower()
    if suffix in _NOT_READ:
        raise ConfigError(
            f"dataset {str(path)!r}: {suffix} files are not read; give JSON Lines or CSV, or the rows themselves, "
            "such as pandas.read_parquet(...) or datasets.load_dataset(...)"
        )
    text = _text(path)
    if suffix in _TABLES:
        return _table(text, _TABLES[suffix])
    if text.lstrip()[:1] == "[":
        return _list(text, path)
    return _lines(text)


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as fault:
        raise ConfigError(f"dataset {str(path)!r} cannot be read: {fault.strerror or fault}") from fault
    encoding = next((name for mark, name in _BOMS if raw.startswith(mark)), "utf-8")
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as fault:
        line = raw.count(b"\n", 0, fault.start) + 1
        raise ConfigError(
            f"dataset {str(path)!r} is not {encoding.upper()}: line {line} holds the byte 0x{raw[fault.start]:02x}; "
            "save it as UTF-8"
        ) from fault


def _lines(text: str) -> Rows:
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: U+2028 may stand inside a JSON text
        if line.strip():
            try:
                yield f"line {number}", json.loads(line)
            except ValueError as fault:
                yield f"line {number}", BadRow(f"is not JSON ({fault})")
            except RecursionError:
                yield f"line {number}", BadRow("is nested too deeply")


def _list(text: str, path: Path) -> Rows:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise ConfigError(f"dataset {str(path)!r} is not JSON: {fault or 'nested too deeply'}") from fault
    for number, row in enumerate(found, 1):
        yield f"item {number}", row


def _table(text: str, delimiter: str | None) -> Rows:
    head = text.split("\n", 1)[0]
    delimiter = delimiter or max(",;\t", key=head.count)
    before = csv.field_size_limit(_MAX_CELL)
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        last = 1
        while True:
            try:
                row: dict[Any, Any] = next(reader)
            except StopIteration:
                return
            except csv.Error as fault:
                yield f"line {last + 1}", BadRow(f"is not CSV ({fault})")
                return
            where, last = f"line {last + 1}", reader.line_num
            if None in row:
                yield (
                    where,
                    BadRow(f"has {len(row[None])} cells more than the header (quote what holds a {delimiter!r})"),
                )
            elif any(row.values()):
                yield where, {key: _cell(key, value) for key, value in row.items()}
    finally:
        csv.field_size_limit(before)


def _cell(column: str, text: str | None) -> Any:
    """A cell is text; nothing where it is empty. Metadata and context may be JSON objects."""
    if not text:
        return None
    if column.strip().lower() in ("metadata", "context") and text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
