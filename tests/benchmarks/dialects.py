"""What it costs to read a span in each dialect, beside what it costs the agent to decode it from OTLP bytes.

``make bench-dialects``. For each span: microseconds to decode it from protobuf (of a request of several, so that the envelope
counts little), microseconds to extract its call, and how many times the one is the other. No span of a dialect should take more
than three times its decoding. Protobuf leaves what was said as it is, JSON text in most dialects; beside it stands what the same
span takes from OTLP's JSON. The spans are those of `dialect_spans` and, where they are beside the repository, of the cases.
"""

import argparse
import base64
import gc
import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import process_time_ns
from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from spangrade.model.span import SpanData
from spangrade.samples.dialects import DIALECTS
from spangrade.samples.extract import extract
from spangrade_agent import codec
from spangrade_agent.wire import Encoding
from tests.benchmarks.dialect_spans import spans

LIMIT: Final = 3.0
COPIES: Final = 20
CASES: Final = Path(__file__).resolve().parents[3] / "shared" / "cases" / "inputs"
#: Broken on purpose, for the wire codec.
NOT_THESE: Final = ("C086", "C087", "C088", "C089")


def any_value(value: Any) -> AnyValue:
    """A Python value as it travels."""
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, bytes):
        return AnyValue(bytes_value=value)
    if isinstance(value, (list, tuple)):
        return AnyValue(array_value=ArrayValue(values=map(any_value, value)))
    if isinstance(value, Mapping):
        return AnyValue(kvlist_value=KeyValueList(values=pairs(value)))
    return AnyValue(string_value=value) if isinstance(value, str) else AnyValue()


def pairs(attributes: Mapping[str, Any]) -> list[KeyValue]:
    """Attributes as they travel."""
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def request(span: SpanData, copies: int = COPIES) -> bytes:
    """A request with so many of this span, each with its own id."""
    made = ExportTraceServiceRequest()
    group = made.resource_spans.add()
    group.resource.attributes.extend(pairs(span.resource))
    scope = group.scope_spans.add()
    scope.scope.name = span.scope_name
    for n in range(copies):
        one = scope.spans.add(
            trace_id=span.trace_id.to_bytes(16, "big"), span_id=(span.span_id + n).to_bytes(8, "big"), name=span.name,
            start_time_unix_nano=span.start_ns, end_time_unix_nano=span.end_ns, attributes=pairs(span.attributes),
        )  # fmt: skip
        for event in span.events:
            one.events.add(name=event.name, time_unix_nano=event.time_ns, attributes=pairs(event.attributes))
    return made.SerializeToString()


def json_request(body: bytes) -> bytes:
    """The same request in OTLP's JSON, where ids are hexadecimal."""
    found = MessageToDict(ExportTraceServiceRequest.FromString(body))
    for group in found["resourceSpans"]:
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId"):
                    span[key] = base64.b64decode(span[key]).hex()
    return json.dumps(found).encode()


def decode(body: bytes, encoding: Encoding = "protobuf") -> list[SpanData]:
    """What the agent does with a request before anything is read."""
    decoded, _, _ = codec.decode_traces(body, encoding)
    found: list[SpanData] = []
    for group in decoded.resource_spans:
        resource = codec.attributes_of_kvs(group.resource.attributes)
        for scope in group.scope_spans:
            found += [codec.span_data(span, resource, scope.scope) for span in scope.spans]
    return found


def fastest(work: Callable[[], object], seconds: float) -> float:
    """Microseconds of processor time, the least of many."""
    best, end = float("inf"), process_time_ns() + int(seconds * 1e9)
    while process_time_ns() < end:
        start = process_time_ns()
        work()
        best = min(best, process_time_ns() - start)
    return best / 1e3


def measure(span: SpanData, seconds: float) -> tuple[float, float, float]:
    """Microseconds to decode it from protobuf and from JSON, and to extract its call."""
    body = request(span)
    as_json = json_request(body)
    decoded = decode(body)
    first = fastest(lambda: decode(body), seconds) / COPIES
    second = fastest(lambda: decode(as_json, "json"), seconds) / COPIES
    third = fastest(lambda: [extract(one) for one in decoded], seconds) / COPIES
    return first, second, third


def case_spans() -> dict[tuple[str, str], SpanData]:
    """The spans of the case files that are calls, by file and name."""
    helper = Path(__file__).parents[1] / "unit" / "samples" / "otlp_json.py"
    spec = importlib.util.spec_from_file_location("bench_otlp_json", helper)
    assert spec is not None
    assert spec.loader is not None
    reader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reader)
    found: dict[tuple[str, str], SpanData] = {}
    for path in sorted(CASES.glob("C0[4-9]*.otlp.json")):
        if path.name[:4] not in NOT_THESE:
            for span in reader.read(json.loads(path.read_text())):
                if extract(span) is not None:
                    found[path.name[:4], f"{span.name} {span.span_hex[:4]}"] = span
    return found


def report(found: Iterable[tuple[tuple[str, str], SpanData]], seconds: float) -> list[str]:
    """Print a line for each; returns those above the limit."""
    above: list[str] = []
    for (dialect, what), span in found:
        call = extract(span)
        size = sum(len(value) for value in span.attributes.values() if isinstance(value, str))
        wire, text, read = measure(span, seconds)
        mark = " !" if read > LIMIT * wire else ""
        figures = f"{wire:9.1f} {text:9.1f} {read:9.1f} {read / wire:7.2f} {read / text:7.2f}"
        print(f"{dialect:18} {what:20} {size:6} {figures}{mark:2}  {call.reading.dialect if call else '-'}")
        if mark:
            above.append(f"{dialect} {what}")
    return above


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.15, help="of processor time for each figure")
    parser.add_argument("--cases", action="store_true", help="the spans of the cases from the field, too")
    given = parser.parse_args()
    gc.disable()
    heads = f"{'decode µs':>9} {'as JSON':>9} {'read µs':>9} {'times':>7} {'x JSON':>7}"
    print(f"{'dialect':18} {'span':20} {'chars':>6} {heads}    read as")
    ours = spans()
    above = report(ours.items(), given.seconds)
    if given.cases:
        if not CASES.is_dir():
            print(f"the cases are not beside the repository ({CASES.name} missing)")
        above += report(case_spans().items(), given.seconds)
    missing = {dialect.name for dialect in DIALECTS} - {dialect for dialect, _ in ours}
    if missing:
        print(f"no span here for: {', '.join(sorted(missing))}")
    print(f"above {LIMIT:g} times: {', '.join(above) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
