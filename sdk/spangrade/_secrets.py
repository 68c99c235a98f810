"""Names under which secrets stand: what is captured under one of them is never recorded.

A name says what it holds by its last words, in any case and however they are joined: ``api_key``, ``X-API-Key``,
``openaiApiKey``, ``DB_PASSWORD``. `max_tokens` and `tokens` are numbers, and a ``token`` may be a piece of text; it is a
secret only where it looks like one.
"""

import re
from functools import lru_cache
from typing import Any, Final

HIDDEN: Final = "[secret]"
MAX_NAME: Final = 64  # characters; what is longer is no name, and is not kept by the cache below

_LAST_WORDS: Final = frozenset(
    {
        "pwd", "secret", "credential", "authorization", "cookie",
        "xapikey", "accesskey", "privatekey", "secretkey",
        "accesstoken", "refreshtoken", "authtoken", "bearertoken", "sessiontoken", "idtoken",
    }
)  # fmt: skip
_ENDINGS: Final = ("password", "passwd", "passphrase", "apikey")  # also without a word's beginning: ``dbpassword``
_QUICK: Final = tuple(
    word + plural
    for word in ("wd", "word", "phrase", "secret", "credential", "ization", "cookie", "key", "token")
    for plural in ("", "s")
)  # what all of these end with
_TAIL: Final = "0123456789_-. "
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # without digits: ``password2``
_OPAQUE: Final = 20  # characters without white space: no word of a text is as long
_has_space: Final = re.compile(r"\s").search

# What a name says of its value.
_OPEN: Final = 0
_SECRET: Final = 1
_TOKEN: Final = 2  # a secret, unless it is a number: then it counts them
_PERHAPS: Final = 3


@lru_cache(4_096)
def said(name: str) -> int:
    """What a name (of at most `MAX_NAME` characters) says of its value; 0: nothing. `is_secret` asks the value."""
    if not name.rstrip(_TAIL).lower().endswith(_QUICK):
        return _OPEN
    words = [word.lower() for word in _WORD.findall(name)]
    last = words[-1].removesuffix("s")
    two = "".join((*words[-2:-1], last))
    if last in _LAST_WORDS or two in _LAST_WORDS or two.endswith(_ENDINGS):
        return _TOKEN if two.endswith("token") else _SECRET
    return _PERHAPS if words[-1] == "token" else _OPEN


def is_secret(name: str, value: Any) -> bool:
    """Whether ``value`` must not be recorded, by the ``name`` it stands under. None and bool give nothing away."""
    what = said(name) if len(name) <= MAX_NAME else _OPEN
    kind = type(value)
    if what == _OPEN or value is None or kind is bool:
        return False
    if what == _PERHAPS:
        return kind is str and len(value) >= _OPAQUE and not _has_space(value)
    return what == _SECRET or not (kind is int or kind is float)
