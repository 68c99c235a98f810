"""Which attributes hold users' text, so that ``export_content=False`` can leave them out.

Joined from the dialects that are read; keys of others that are known are here too, since text that we cannot score must
stay no less. Kinds, models, counts, ids and the application's ``metadata`` are no content.
"""

from typing import Final

from spangrade.samples.dialects import DIALECTS

_FOREIGN_KEYS: Final = frozenset(
    {
        "prompt",  # Logfire with agents of others
    }
)

#: Attribute keys that hold user content, whole.
CONTENT_KEYS: Final = frozenset().union(_FOREIGN_KEYS, *(dialect.content_keys for dialect in DIALECTS))
#: Beginnings of such keys.
CONTENT_PREFIXES: Final = tuple(prefix for dialect in DIALECTS for prefix in dialect.content_prefixes)
#: Span events whose very fields are a message (conventions up to 1.36): all their attributes are content.
CONTENT_EVENTS: Final = frozenset(
    {
        "gen_ai.system.message",
        "gen_ai.developer.message",
        "gen_ai.user.message",
        "gen_ai.assistant.message",
        "gen_ai.tool.message",
        "gen_ai.choice",
        "gen_ai.prompt",  # Semantic Kernel's, of a text completion
        "gen_ai.content.prompt",
        "gen_ai.content.completion",
        "db.query.result",
        "db.search.result",
    }
)


def is_content_key(key: str) -> bool:
    """Whether an attribute of this name holds users' text, in any dialect."""
    return key in CONTENT_KEYS or key.startswith(CONTENT_PREFIXES)
