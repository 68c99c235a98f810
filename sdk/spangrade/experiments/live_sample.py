"""A live sample from an agent's store, as a dataset item.

The agent's page gives a trace's samples as JSON (``/api/traces/<trace id>``). What its store keeps of text is what an item gets:
redacted where the store redacts, and nothing where it keeps no content.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from spangrade.errors import ConfigError

TIMEOUT_S: Final = 30.0
_MAX_BYTES: Final = 256 * 2**20
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_CUT: Final = re.compile(r"…\[\d+ characters cut\]…")


@dataclass(frozen=True, slots=True)
class LiveSample:
    """What was found: the dataset row, and what whoever promotes it should know (cut or redacted text, documents left out)."""

    row: dict[str, Any]
    notes: tuple[str, ...]


def trace_id_of(given: str) -> tuple[str, str | None, str | None]:
    """Trace id, and span id and target where the id of a sample was given (``trace-span-target``, as on the page).

    Raises:
        ConfigError: it is neither.
    """
    text = given.strip().rstrip("/").rpartition("/")[2]
    if found := re.fullmatch(r"([0-9a-fA-F]{32})-([0-9a-fA-F]{16})-([a-z]+)", text):
        return found[1].lower(), found[2].lower(), found[3]
    plain = text.replace("-", "").lower().removeprefix("0x")
    if not re.fullmatch(r"[0-9a-f]{32}", plain):
        raise ConfigError(
            f"{given!r} is no trace id: that is 32 hex digits, as on the agent's page and in your tracing backend"
        )
    return plain, None, None


def fetch(agent: str, trace_id: str, token: str | None, holds: str = "samples") -> dict[str, Any]:
    """The agent's answer for a trace (``/api/traces/<trace_id>``): an object with a list under ``holds``.

    Raises:
        ConfigError: the agent cannot be reached, wants a token, or has no sample of it.
    """
    base = agent if "://" in agent else f"http://{agent}"
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"--agent {agent!r} is no address; write the page's, such as http://127.0.0.1:8080")
    where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    address = f"{base.rstrip('/')}/api/traces/{trace_id}"
    request = Request(address, headers={"Accept": "application/json"})  # noqa: S310 - the scheme is checked above
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    handlers: list[Any] = [_NoRedirect()]
    if parts.hostname in _LOOPBACK:
        handlers.append(ProxyHandler({}))
    try:
        with build_opener(*handlers).open(request, timeout=TIMEOUT_S) as reply:
            answer = json.loads(reply.read(_MAX_BYTES))
    except HTTPError as fault:
        raise ConfigError(_refused(fault, where, trace_id)) from None
    except (URLError, OSError, HTTPException) as fault:
        reason = getattr(fault, "reason", None) or fault
        raise ConfigError(
            f"no agent answers at {where} ({reason}); start one with `spangrade agent run`, or say where its page is with --agent"
        ) from None
    except ValueError:
        raise ConfigError(_no_agent(where)) from None
    if not isinstance(answer, dict) or not isinstance(answer.get(holds), list):
        raise ConfigError(_no_agent(where))
    return answer


class _NoRedirect(HTTPRedirectHandler):
    """A token goes to nobody but the agent."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        """None: a redirection is an error."""


def _refused(fault: HTTPError, where: str, trace_id: str) -> str:
    with fault:
        raw = fault.read(65_536)
    try:
        said = json.loads(raw)["error"]
    except (ValueError, KeyError, TypeError):
        said = None
    if fault.code == 401:
        return f"the agent at {where} wants a token: give --token, or set SPANGRADE_TOKEN (page.token in its configuration)"
    if fault.code == 404 and said is not None:
        return f"the agent at {where} has nothing of trace {trace_id}: {said}"
    if fault.code == 421:
        return f"the agent at {where} does not answer to that name: {raw.decode('utf-8', 'replace')}"
    return _no_agent(where) if said is None else f"the agent at {where} refuses ({fault.code}): {said}"


def _no_agent(where: str) -> str:
    return f"what answers at {where} is no agent of this version (the page's address is wanted, by default port 8080)"


def choose(samples: Sequence[Mapping[str, Any]], span: str | None, target: str | None) -> Mapping[str, Any]:
    """The one sample that is meant: of several the only root, or the one of ``span`` (and ``target``).

    Raises:
        ConfigError: there is none of that span, or there are several; they are listed.
    """
    found = [one for one in samples if span is None or str(one.get("span_id", "")) == span.lower().removeprefix("0x")]
    found = [one for one in found if target is None or one.get("target") == target]
    if len(found) > 1 and target is None:
        roots = [one for one in found if one.get("target") == "root"]
        found = roots if len(roots) == 1 else found
    if len(found) == 1:
        return found[0]
    listed = "\n".join(f"  --span {one.get('span_id')} --target {one.get('target')}  {_shown(one)}" for one in samples)
    what = "none of its samples is of that span and target" if not found else f"it has {len(found)} samples"
    raise ConfigError(f"{what}; choose one:\n{listed}")


def _shown(sample: Mapping[str, Any]) -> str:
    text = " ".join(str(sample.get("input") or "").split())
    return f"{sample.get('span_name')}: {text[:60]}{'…' * (len(text) > 60)}"


def row_of(sample: Mapping[str, Any], content: str, expected: Any = None) -> LiveSample:
    """The dataset row of a stored sample.

    Its id is the sample's, so the same sample is the same item. Where it came from, the application's labels and the live scores are
    ``metadata``.

    Raises:
        ConfigError: the agent keeps no content.
    """
    if content == "none" or (sample.get("input") is None and sample.get("output") is None):
        why = "keeps no content (store.content: none)" if content == "none" else "has neither input nor output of it"
        raise ConfigError(f"the agent {why}, so there is nothing to make an item of")
    notes = []
    kept = [_document(one) for one in sample.get("documents") or ()]
    given = sample.get("documents_given") or len(kept)
    if given > len(kept):
        notes.append(f"{given - len(kept)} of {given} documents were not kept by the agent")
    if content == "redacted":
        notes.append("the agent redacts what it keeps: look whether the item still says what it should")
    row = {
        "id": sample.get("id"),
        "input": _value(sample, "input"),
        "output": _value(sample, "output"),
        "expected": expected,
        "documents": kept,
        "metadata": _metadata(sample),
    }
    if _CUT.search(json.dumps(row, ensure_ascii=False)):
        notes.append("a text was longer than the agent keeps, and is cut in its middle")
    return LiveSample({key: value for key, value in row.items() if value is not None}, tuple(notes))


def _value(sample: Mapping[str, Any], field: str) -> Any:
    text = sample.get(field)
    if field in (sample.get("json_fields") or ()) and isinstance(text, str):
        return _parsed(text)
    return text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # cut
        return text


def _document(one: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: one.get(key) for key in ("content", "id", "score") if one.get(key) is not None}
    if one.get("metadata"):
        found["metadata"] = _parsed(str(one["metadata"]))
    return found


def _metadata(sample: Mapping[str, Any]) -> dict[str, Any]:
    own = _parsed(str(sample["metadata"])) if sample.get("metadata") else {}
    found: dict[str, Any] = dict(own) if isinstance(own, dict) else {"labels": own}
    for key in ("trace_id", "span_id", "target", "span_name", "model"):
        if sample.get(key) is not None:
            found.setdefault(key, sample[key])
    scores = {
        one["name"]: one["value"] if one.get("value") is not None else one.get("label")
        for one in sample.get("results") or ()
        if one.get("outcome") == "scored"
    }
    return {**found, **({"live_scores": scores} if scores else {})}
