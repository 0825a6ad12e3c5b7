/** Keys that there were once, as a pattern of the dotted path, and what to use instead. */
const GONE: readonly (readonly [key: RegExp, instead: string])[] = [
  [
    /^server\.workers$/,
    'start several receivers behind a load balancer instead, each with its own journal, or with journal.type: kafka',
  ],
  [
    /^journal\.encrypt(\.|$)/,
    'the topics are not sealed: deliverers drop events of erased users, and the receipt of an erasure says until when a topic keeps them',
  ],
  [
    /^service\.(idempotencyHeader|paths\.(createOrder|importOrder|createParsingJob|createUser|appointmentAvailability|team|brand|apiKeys?|managementKeys?|webhookHeaders))$/,
    'no command uses that operation: leave it out',
  ],
  [
    /^sinks\.[^.]+\.format$/,
    'the archive is NDJSON: before the update, replay an archive of Parquet files into one of NDJSON; `millrace export --follow --every 1h` makes Parquet or Delta tables',
  ],
  [
    /^receipts\.witnesses(\.|$)/,
    'the signed log stands for itself: compare it with receipts that senders kept (millrace receipt verify, archive prove --receipts)',
  ],
];

/** Null for a key that there never was. @param key dotted, such as `sinks.archive.format` */
export function insteadOf(key: string): string | null {
  return adviceOn((pattern) => pattern.test(key));
}

/** The same for a variable, without its prefix: `SERVICE_IDEMPOTENCY_HEADER` was service.idempotencyHeader. */
export function insteadOfVariable(name: string): string | null {
  return adviceOn(({ source }) => {
    const words = source.replaceAll('\\.', '_').replaceAll(/([a-z])([A-Z])/g, '$1_$2');
    return new RegExp(words, 'i').test(name);
  });
}

function adviceOn(isIt: (pattern: RegExp) => boolean): string | null {
  const found = GONE.find(([pattern]) => isIt(pattern));
  return found === undefined ? null : `is no longer a key; ${found[1]}`;
}
