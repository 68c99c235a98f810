"""The instrumentations that are installed, by the library that they trace, best first; and what is known of the others.

They register as entry points: OpenInference's in a group of its own and in OpenTelemetry's, all others in the latter only.
Several may be there for one library, and under names that differ (``llama_index`` and ``llama-index``, ``vertexai`` and
``google_cloud_aiplatform``).
"""

import os
from collections.abc import Iterator
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Final

_GROUPS: Final = ("openinference_instrumentor", "opentelemetry_instrumentor")
_OPENINFERENCE, _OTHERS, _OFFICIAL = range(3)
_CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

#: What OpenInference has an instrumentor for (November 2026). Only these names make a command to install: a name that we
#: do not know might be anybody's package.
_KNOWN: Final = (
    "agno", "anthropic", "autogen_agentchat", "bedrock", "beeai", "claude_agent_sdk", "cohere", "crewai", "dspy",
    "google_adk", "google_genai", "groq", "guardrails", "haystack", "instructor", "langchain", "litellm", "llama_index",
    "mcp", "mistralai", "ollama", "openai", "openai_agents", "portkey", "smolagents", "together", "vertexai",
)  # fmt: skip


def plain(name: str) -> str:
    """A library's name without what is written in different ways."""
    return name.strip().lower().translate({ord(sign): None for sign in "-_. "})


class Found:
    """One installed instrumentation."""

    def __init__(self, point: EntryPoint) -> None:
        self._point = point
        self.where = point.value
        self.module, self.attr = point.module, point.attr
        self.package = point.dist.name if point.dist is not None else point.module
        self.rank = self._rank()

    def _rank(self) -> int:
        """OpenInference first: it captures text unless told not to. OpenTelemetry's own last: they do so only when told."""
        if self.module.startswith("openinference."):
            return _OPENINFERENCE
        about = self._point.dist.metadata if self._point.dist is not None else None
        requires = self._point.dist.requires if self._point.dist is not None else None
        urls = " ".join((about.get_all("Project-URL") or []) if about is not None else [])
        built_on = any(each.startswith("opentelemetry-util-genai") for each in requires or ())
        return _OFFICIAL if built_on or "github.com/open-telemetry/" in urls else _OTHERS

    def names(self) -> set[str]:
        """Under which it is asked for: as it registered; its module's last part, which is the library's name; or its
        package, for whoever wants just this one."""
        return {plain(self._point.name), plain(self.module.rsplit(".", 1)[-1]), plain(self.package)}

    def load(self) -> type:
        """The instrumentor's class. Raises what its import raises."""
        found: type = self._point.load()
        return found

    def blind(self) -> str | None:
        """The setting because of which its spans have no text to score; None where they have."""
        if self.rank == _OFFICIAL:
            said = os.environ.get(_CAPTURE, "").strip().upper()
            return None if said in ("SPAN_ONLY", "SPAN_AND_EVENT") else f"{_CAPTURE}=SPAN_ONLY"
        if self.rank == _OPENINFERENCE:
            hide = [name for name in ("OPENINFERENCE_HIDE_INPUTS", "OPENINFERENCE_HIDE_OUTPUTS") if _on(name, "false")]
            return " ".join(f"{name}=false" for name in hide) or None
        return None if _on("TRACELOOP_TRACE_CONTENT", "true") else "TRACELOOP_TRACE_CONTENT=true"


def _on(variable: str, default: str) -> bool:
    return os.environ.get(variable, default).strip().lower() == "true"


def installed(name: str) -> list[Found]:
    """All for one library, best first, each once."""
    wanted = plain(name)
    found = {one.where: one for one in _all() if wanted in one.names()}
    return sorted(found.values(), key=lambda one: (one.rank, one.package))


def _all() -> Iterator[Found]:
    for group in _GROUPS:
        for point in entry_points(group=group):
            yield Found(point)


def to_install(name: str) -> str | None:
    """The package that would trace this library; None where we know of none."""
    for known in _KNOWN:
        if plain(known) == plain(name):
            return "openinference-instrumentation-" + known.replace("_", "-")
    return None


def like(name: str) -> str | None:
    """A name that may have been meant."""
    known = {plain(each): each for each in _KNOWN}
    found = get_close_matches(plain(name), known, 1, 0.7)
    return known[found[0]] if found else None
