// Sends billing events with OpenTelemetry's exporters. Lines of standard input: `emit FIRST COUNT`, `flush`; each is
// answered with `done` and its number. Standard input's end is the program's. Where to send and with which token, the exporters read
// from OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS, as in any deployment.
import readline from "node:readline";

import { diag, DiagConsoleLogger, DiagLogLevel } from "@opentelemetry/api";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";

const [encoding, prefix, base] = process.argv.slice(2);
const { OTLPLogExporter } = await import(`@opentelemetry/exporter-logs-otlp-${encoding}`);
diag.setLogger(new DiagConsoleLogger(), DiagLogLevel.INFO);

const provider = new LoggerProvider({
  resource: resourceFromAttributes({ "k8s.pod.uid": "pod-of-javascript" }),
  processors: [
    new BatchLogRecordProcessor({
      exporter: new OTLPLogExporter({ timeoutMillis: 120000, compression: "gzip" }),
      maxExportBatchSize: Number(process.env.BATCH),
      scheduledDelayMillis: 20,
      exportTimeoutMillis: 120000,
    }),
  ],
});
const logger = provider.getLogger("billing");

function emit(first, count) {
  for (let number = first; number < first + count; number += 1) {
    logger.emit({
      timestamp: [Number(base) + number, 500],
      attributes: {
        event_type: "llm_billing",
        event_id: `${prefix}-${number}`,
        tenant_name: "tenant",
        namespace: "tenant",
        model_name: "model-a",
        provider: "provider-a",
        prompt_tokens: number,
        completion_tokens: 7,
        organization_id: "org-1",
      },
    });
  }
}

let done = 0;
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [what, first, count] = line.split(" ");
  if (what === "emit") {
    emit(Number(first), Number(count));
  } else {
    await provider.forceFlush({ timeoutMillis: 120000 });
  }
  done += 1;
  console.log(`done ${done}`);
}
await provider.shutdown();
