// A sink of your own: posts each batch to an HTTP endpoint as NDJSON, a line an event: its id and, in base64, its bytes.
//
//   sinks:
//     lake: { type: ./own-sink.js, url: https://lake.example/ingest, token: "${LAKE_TOKEN}" }
//
// The contract, with what each side promises, is `Sink` of `millrace/sink`; `sinkContract` of `millrace/sink-contract`
// tests it. A destination (`lake:meals`) becomes the last segment of the URL's path.

/**
 * @typedef {import('millrace/sink').Sink} Sink
 * @typedef {import('millrace/sink').SendResult} SendResult
 * @typedef {{ url: string, token: string | null, timeoutMs: number }} Options
 */

/**
 * Checks what stands under `sinks.<name>`, without `type`; an error here stops the start and names the key.
 * @param {unknown} options
 * @returns {Options}
 */
export function parseOptions(options) {
  const { url, token = null, timeoutMs = 10_000, ...unknown } = Object(options);
  if (typeof url !== 'string' || !URL.canParse(url)) throw new Error('url: has to be a URL');
  if (token !== null && typeof token !== 'string') throw new Error('token: has to be text');
  if (!(timeoutMs > 0)) throw new Error('timeoutMs: has to be a number above 0');
  const [stray] = Object.keys(unknown);
  if (stray !== undefined) throw new Error(`${stray}: unknown key`);
  return { url, token, timeoutMs };
}

/**
 * @param {Options} options
 * @param {import('millrace/sink').SinkContext} context
 * @returns {Sink}
 */
export function createSink({ url, token, timeoutMs }, { log }) {
  return {
    limits: {
      batchCount: 500,
      batchBytes: 4 * 2 ** 20,
      eventBytes: 4 * 2 ** 20,
      inFlight: 1,
      order: 'user',
      batchBy: 'destination',
    },

    async open() {
      log.info({ host: new URL(url).host }, 'posting to an HTTP endpoint');
    },

    async send(batch, signal) {
      const destination = batch[0]?.destination ?? null;
      const target = destination === null ? url : `${url}/${encodeURIComponent(destination)}`;
      // Never parse and serialise a body: its bytes are what was signed. The id lets the far side drop what it has seen.
      const lines = batch.map(({ event }) => ({ id: event.id, body: event.body.toString('base64') }));
      const response = await fetch(target, {
        method: 'POST',
        headers: {
          'content-type': 'application/x-ndjson',
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        },
        body: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      });
      // Also frees the connection. Never log it: it may quote health data.
      await response.arrayBuffer();
      const result = resultOf(response);
      return batch.map(() => result);
    },

    async close() {
      // Nothing is buffered here, and fetch's connections close by themselves.
    },
  };
}

/**
 * An error thrown by `fetch` means "try the batch again"; an answer has to be judged.
 * @param {Response} response
 * @returns {SendResult}
 */
function resultOf({ ok, status, headers }) {
  if (ok) return { status: 'delivered' };
  const reason = `the endpoint answered ${status}`;
  if (status === 429 || status >= 500) {
    const seconds = Number(headers.get('retry-after') ?? 0);
    return { status: 'retry', reason, sink: true, delayMs: Number.isFinite(seconds) ? seconds * 1000 : 0 };
  }
  // A wrong token or address is the operator's to mend, and no event's fault.
  if ([401, 403, 404, 405].includes(status)) return { status: 'retry', reason, sink: true };
  return { status: 'refused', code: `http_${status}`, reason, batch: true };
}
