// The Vercel AI SDK in either generation, against a server that speaks OpenAI's chat API: it prints what apps/traced.py does.
//
//     node vercel.mjs SCENARIO...
import * as ai from "ai";
import { createOpenAI } from "@ai-sdk/openai";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { z } from "zod";

const traces = {};
let scenario = "";
const watch = {
  onStart(span) {
    const mine = (traces[scenario] ??= []);
    const id = span.spanContext().traceId;
    if (!mine.includes(id)) mine.push(id);
  },
  onEnd() {},
  forceFlush: async () => {},
  shutdown: async () => {},
};
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": "app" }),
  spanProcessors: [watch, new BatchSpanProcessor(new OTLPTraceExporter())],
});
provider.register();

let telemetry = { isEnabled: true, functionId: "helper", metadata: { userId: "u1", sessionId: "s1", plan: "free" } };
let settings = (more) => ({ experimental_telemetry: { ...telemetry, ...more } });
if (ai.registerTelemetry) {
  // v7: a package of its own, and on for every call once it is registered.
  const { OpenTelemetry } = await import("@ai-sdk/otel");
  ai.registerTelemetry(new OpenTelemetry());
  settings = (more) => ({ telemetry: { functionId: "helper", ...more } });
}

const model = (name, kind = "openai") =>
  createOpenAI({ baseURL: `${process.env.REPLAY}/${kind}/${name}/v1`, apiKey: "unused" }).chat("gpt-4o-mini");
const common = (more) => ({ maxRetries: 0, ...settings(more) });
const system = ai.registerTelemetry ? "instructions" : "system";

const weather = ai.tool({
  description: "Get the current weather in a given location",
  inputSchema: z.object({ location: z.string() }),
  execute: async ({ location }) => (location.startsWith("Seattle") ? "50 degrees and raining" : "70 degrees and sunny"),
});

const scenarios = {
  async text(more) {
    await ai.generateText({
      ...common(more),
      model: model("test_chat_completion_with_content"),
      [system]: "You are a parrot.",
      prompt: "Say this is a test",
    });
  },
  async streaming() {
    const { textStream } = ai.streamText({
      ...common(),
      model: model("test_chat_completion_streaming"),
      prompt: "Say this is a test",
    });
    for await (const _ of textStream);
  },
  async tools() {
    await ai.generateText({
      ...common(),
      model: model("test_chat_completion_tool_calls_with_content"),
      messages: [{ role: "user", content: "What's the weather in Seattle and San Francisco today?" }],
      tools: { get_current_weather: weather },
      stopWhen: ai.stepCountIs ? ai.stepCountIs(3) : ai.isStepCount(3),
    });
  },
  async object() {
    await ai.generateObject({
      ...common(),
      model: model("object", "made"),
      prompt: "When does it come?",
      schema: z.object({ days: z.number() }),
    });
  },
  async hidden() {
    await scenarios.text({ recordInputs: false, recordOutputs: false });
  },
  async fails() {
    const options = { ...common(), model: model("test_chat_completion_404"), prompt: "Say this is a test" };
    await ai.generateText(options).catch(() => {});
  },
};

for (scenario of process.argv.slice(2)) await scenarios[scenario]();
await provider.forceFlush();
console.log(JSON.stringify({ traces, in_process: null }));
await provider.shutdown();
