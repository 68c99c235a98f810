// A small question-answering service, traced by the official OpenTelemetry SDK. It knows nothing of Spangrade.
//
//     node app.js http|grpc ENDPOINT        prints {"trace_id": "..."} once everything has been exported
//
// The same trace as in ../python_app.py: the tests hold the two to the same claims.
"use strict";

const { setTimeout: takeTime } = require("node:timers/promises");

const { SpanKind, SpanStatusCode, trace } = require("@opentelemetry/api");
const { OTLPTraceExporter: GrpcExporter } = require("@opentelemetry/exporter-trace-otlp-grpc");
const { OTLPTraceExporter: ProtobufExporter } = require("@opentelemetry/exporter-trace-otlp-proto");
const { resourceFromAttributes } = require("@opentelemetry/resources");
const { BatchSpanProcessor } = require("@opentelemetry/sdk-trace-base");
const { NodeTracerProvider } = require("@opentelemetry/sdk-trace-node");

const QUESTION = "When does my parcel come?";
const DOCUMENT = "Parcels arrive within three working days.";
const ANSWER = "Parcels arrive within three working days. Drones bring them.";

function makeExporter(protocol, endpoint) {
  switch (protocol) {
    case "http":
      return new ProtobufExporter({ url: `${endpoint}/v1/traces` });
    case "grpc":
      return new GrpcExporter({ url: endpoint });
    default:
      throw new Error(`protocol is http or grpc, not ${protocol}`);
  }
}

function message(role, content) {
  return JSON.stringify([{ role, parts: [{ type: "text", content }] }]);
}

function retrieve(tracer) {
  tracer.startActiveSpan("find", (span) => {
    span.setAttributes({
      "openinference.span.kind": "RETRIEVER",
      "input.value": QUESTION,
      "retrieval.documents.0.document.id": "d1",
      "retrieval.documents.0.document.content": DOCUMENT,
      "retrieval.documents.0.document.score": 0.875,
    });
    tracer.startActiveSpan("SELECT docs", { kind: SpanKind.CLIENT }, (query) => {
      query.setAttributes({ "db.system.name": "sqlite", "db.response.returned_rows": 1 });
      query.addEvent("rows read", { count: 1, cached: false });
      query.end();
    });
    span.end();
  });
}

async function generate(tracer) {
  const attributes = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "small-1",
    "gen_ai.input.messages": message("user", QUESTION),
  };
  await tracer.startActiveSpan("chat small-1", { kind: SpanKind.CLIENT, attributes }, async (span) => {
    // A model takes its time. It matters: this SDK cuts start times to whole milliseconds but not end times, so a call
    // that took none could have ended before the retrieval that preceded it.
    await takeTime(20);
    span.addEvent("first token", { after_ms: 1.5 });
    span.setAttributes({
      "gen_ai.output.messages": message("assistant", ANSWER),
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.usage.input_tokens": 7,
      "gen_ai.usage.output_tokens": 9,
    });
    span.end();
  });
}

async function main(protocol, endpoint) {
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ "service.name": "shop" }),
    spanProcessors: [new BatchSpanProcessor(makeExporter(protocol, endpoint))],
  });
  provider.register();
  const tracer = trace.getTracer("shop-tracer", "1.0");
  const attributes = { "http.request.method": "POST", "http.route": "/chat" };
  const traceId = await tracer.startActiveSpan("POST /chat", { kind: SpanKind.SERVER, attributes }, async (span) => {
    retrieve(tracer);
    await generate(tracer);
    span.setAttribute("http.response.status_code", 200);
    span.setStatus({ code: SpanStatusCode.OK });
    span.end();
    return span.spanContext().traceId;
  });
  await provider.shutdown();
  console.log(JSON.stringify({ trace_id: traceId }));
}

main(...process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
