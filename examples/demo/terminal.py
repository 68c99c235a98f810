"""What the person at the terminal sees: lines, a call with its scores, the table of all of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from examples.demo.scores import Call, Result


class Screen:
    """What the person at the terminal sees: a line that moves, or plain lines where stdout is no terminal."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        if not self.console.is_terminal:
            self.console = Console(highlight=False, width=120)
        self._started = time.monotonic()

    def say(self, text: str | Text, style: str | None = None) -> None:
        self.console.print(text if isinstance(text, Text) else Text(text), style=style)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    @contextmanager
    def busy(self, text: str) -> Iterator[Status | None]:
        """While something takes its time. Gives the line to update, or None where lines cannot be updated."""
        if self.console.is_terminal:
            with self.console.status(Text(text)) as status:
                yield status
        else:
            self.say(f"{text} ...")
            yield None


def show_call(screen: Screen, call: Call, where: str) -> None:
    text = Text(f"[{where}] ", style="dim")
    text.append(one_line(call.question, 100), style="bold default not dim")
    text.append("\n    " + one_line(call.answer, 200), style="default not dim")
    text.append("\n    ")
    for position, result in enumerate(call.results):
        text.append(", " if position else "", style="default not dim")
        text.append(f"{result.name} {result.in_words}", style=f"{colour(result)} not dim")
    screen.say(text)


def show_table(screen: Screen, calls: Sequence[Call]) -> None:
    table = Table(title="Scores as they arrived by OTLP", show_lines=True, expand=True)
    table.add_column("question", ratio=3)
    table.add_column("answer", ratio=4)
    table.add_column("scored by", no_wrap=True)
    table.add_column("score", no_wrap=True, justify="right")
    table.add_column("label", no_wrap=True)
    table.add_column("why", ratio=5, no_wrap=True, overflow="ellipsis")
    for call in calls:
        cells = [Text(), Text(), Text(), Text()]
        for position, result in enumerate(call.results):
            parts = (
                result.name,
                "" if result.value is None else f"{result.value:.2f}",
                result.label or ("error" if result.error else ""),
                one_line(": ".join(filter(None, (result.error, result.explanation))), 200),
            )
            for cell, part in zip(cells, parts, strict=True):
                cell.append(("\n" if position else "") + part, style=colour(result))
        table.add_row(Text(one_line(call.question, 60)), Text(one_line(call.answer, 90)), *cells)
    screen.console.print(table)


def colour(result: Result) -> str:
    if result.error is not None:
        return "magenta"
    return {"pass": "green", "fail": "red"}.get(result.label or "", "default")


def one_line(text: str, limit: int) -> str:
    """Cut, and without line breaks or control characters: what a model wrote must not steer the terminal."""
    flat = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
