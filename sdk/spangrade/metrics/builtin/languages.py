"""Which language a text is in, by py3langid. Imported, and its model read, when the first text is looked at; then shared."""

import os
import threading
from typing import Any, Final

from spangrade.metrics.builtin.options import extra

#: Languages that the model cannot tell apart well, or that readers of one take for their own, as one.
_SAME: Final = {
    "nb": "no", "nn": "no", "pcm": "en", "sco": "en", "yue": "zh", "wuu": "zh", "hr": "sr", "bs": "sr", "sh": "sr", "srl": "sr", "ms": "id",
    "arz": "ar", "ary": "ar", "fil": "tl", "pes": "fa", "prs": "fa",
}  # fmt: skip
_lock = threading.Lock()
_identifier: Any = None


def identify(text: str) -> tuple[str, float]:
    """``(ISO 639 code, probability)`` of the likeliest language, close relatives taken together.

    Raises:
        Skip: the extra ``local`` is not installed.
    """
    ranked = _loaded().rank(text)  # reads and changes nothing, so threads share it
    summed: dict[str, float] = {}
    for language, probability in ranked:
        language = _SAME.get(language, language)  # noqa: PLW2901
        summed[language] = summed.get(language, 0.0) + float(probability)
    best = max(summed, key=summed.__getitem__)
    return best, min(summed[best], 1.0)


def normal(code: str) -> str:
    """The code that `identify` would give: ``pt-BR`` is ``pt``, ``nb`` is ``no``."""
    base = code.strip().lower().replace("_", "-").partition("-")[0]
    return _SAME.get(base, base)


def known() -> frozenset[str]:
    """The codes that `identify` can give."""
    return frozenset(_SAME.get(str(code), str(code)) for code in _loaded().labels)


def _loaded() -> Any:
    global _identifier
    with _lock:
        if _identifier is None:
            langid = extra("py3langid.langid", "local")
            # One of our own: the module's shared one may have been narrowed down by the application.
            _identifier = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
        return _identifier


def _after_fork() -> None:
    """A child may have been forked while a thread of its parent, which it has not, held the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
