import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startEndpoint } from '../sinks/http-support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { freePort } from '../support/free-port.ts';
import { listen } from '../support/listen.ts';
import { writeConfig } from '../support/millrace.ts';
import { type CollectedSpan, startCollector } from '../support/otlp-collector.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const SECRET = `whsec_${Buffer.from('between us and targets').toString('base64')}`;
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SENDER = 'b7ad6b7169203331';
const traceparent = (flags: string, trace = TRACE): string => `00-${trace}-${SENDER}-${flags}`;

function twoSinks(folder: string, url: string): Record<string, object> {
  return {
    delivery: { retryInitial: '20ms', retryMax: '50ms' },
    sinks: {
      archive: { type: 'files', path: `${folder}/archive` },
      services: { type: 'http', url, secrets: [SECRET], privateNetworks: ['127.0.0.1'] },
    },
    routes: [{ match: '*', to: ['archive', 'services'] }],
  };
}

const named = (spans: readonly CollectedSpan[], name: string): CollectedSpan[] =>
  spans.filter((span) => span.name === name);

test('one trace from the request to each sink', async () => {
  const folder = await temporaryFolder();
  const [collector, services] = [await startCollector(), await startEndpoint()];
  let answers = 0;
  services.reply = () => (answers++ === 0 ? 503 : 204);
  const config = writeConfig(folder, twoSinks(folder, services.url('/')));
  const receiver = await ReceiverProcess.start(config, {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-made-up=header',
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_SERVICE_NAME: 'webhooks-of-acme',
    },
  });
  const { id, body } = madeUpEvent(1, 'daily.data.meal.created');
  const sent = { id, headers: { traceparent: traceparent('01'), tracestate: 'made=up' } };
  expect((await postSigned(receiver.url, body, sent)).status).toBe(202);
  const forged = await postSigned(receiver.url, body, { id: 'other', secret: SECRET });
  expect(forged.status).toBe(401);
  await receiver.drained();
  await receiver.kill('SIGTERM');

  const spans = collector.spans.filter(({ trace }) => trace === TRACE);
  const [received, ...more] = named(spans, 'millrace receive');
  expect(more).toEqual([]);
  expect(received).toMatchObject({
    parent: SENDER,
    attributes: { 'millrace.outcome': 'accepted', 'millrace.event.type': 'daily.data.meal.created' },
  });
  expect(named(spans, 'millrace journal').map(({ parent }) => parent)).toEqual([received?.id]);
  const delivered = named(spans, 'millrace deliver').map(({ parent, attributes }) => ({
    parent,
    to: `${attributes['millrace.sink']} ${attributes['millrace.attempt']} ${attributes['millrace.result']}`,
  }));
  const steps = ['archive 1 delivered', 'services 1 retry', 'services 2 delivered'];
  expect(delivered.map(({ to }) => to).toSorted()).toEqual(steps);
  expect(new Set(delivered.map(({ parent }) => parent))).toEqual(new Set([received?.id]));
  // The target continues the trace.
  expect(services.posts.at(-1)?.headers['traceparent']).toBe(`00-${TRACE}-${received?.id}-01`);
  // Who had no trace has one of its own.
  const refused = collector.spans.filter(({ trace }) => trace !== TRACE);
  expect(refused).toMatchObject([{ parent: '', attributes: { 'millrace.outcome': 'signature_invalid' } }]);

  expect(collector.headers[0]).toMatchObject({ 'x-made-up': 'header' });
  const bytes = collector.bytes().toString('latin1');
  expect(bytes).toContain('webhooks-of-acme');
  const { user_id: user, team_id: team } = JSON.parse(body.toString()) as Record<string, string>;
  for (const personal of [user, team, id]) expect(bytes).not.toContain(personal);
});

test('what waits over a kill is delivered in its trace; what is not sampled has none', async () => {
  const folder = await temporaryFolder();
  const [collector, services] = [await startCollector(), await startEndpoint()];
  services.reply = () => 'hang';
  const config = writeConfig(folder, twoSinks(folder, services.url('/')));
  const env = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0',
  };
  let receiver = await ReceiverProcess.start(config, { env });
  const headersOf = [
    { traceparent: traceparent('01') },
    { traceparent: traceparent('00', '1'.repeat(32)) },
    {},
  ];
  for (const [n, headers] of headersOf.entries()) {
    const { id, body } = madeUpEvent(n);
    await postSigned(receiver.url, body, { id, headers });
  }
  await until('the spans of receiving', () => named(collector.spans, 'millrace receive').length > 0);
  await receiver.kill('SIGKILL');
  services.reply = () => 204;
  receiver = await ReceiverProcess.start(config, { env });
  await receiver.drained();
  await receiver.kill('SIGTERM');
  const [received] = named(collector.spans, 'millrace receive');
  const last = named(collector.spans, 'millrace deliver').at(-1);
  expect(last).toMatchObject({ trace: TRACE, parent: received?.id });
  expect(collector.spans.filter(({ trace }) => trace !== TRACE)).toEqual([]);
  // The sender's own decision goes on to the target.
  const others = services.posts.map(({ headers }) => headers['traceparent']).filter((it) => it !== undefined);
  expect(new Set(others)).toEqual(new Set([`00-${TRACE}-${received?.id}-01`, headersOf[1]?.traceparent]));
});

test('a share of traces is begun here, and what the sender has sampled is in its trace all the same', async () => {
  const collector = await startCollector();
  const config = writeConfig(await temporaryFolder());
  const env = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.5',
  };
  const receiver = await ReceiverProcess.start(config, { env });
  for (let n = 0; n < 100; n += 1) {
    const { id, body } = madeUpEvent(n);
    await postSigned(receiver.url, body, {
      id,
      headers: n % 10 > 0 ? {} : { traceparent: traceparent('01') },
    });
  }
  await receiver.drained();
  await receiver.kill('SIGTERM');
  const received = named(collector.spans, 'millrace receive');
  expect(received.filter(({ trace }) => trace === TRACE)).toHaveLength(10);
  // 90 times a coin: outside of this once in ten million runs.
  const begun = received.filter(({ trace }) => trace !== TRACE).length;
  expect(begun).toBeGreaterThan(18);
  expect(begun).toBeLessThan(72);
});

/** As if the packages were not there. */
const WITHOUT_SDK = `import { registerHooks } from 'node:module';
registerHooks({ resolve(name, context, next) {
  if (name.includes('opentelemetry/sdk')) throw new Error('Cannot find package');
  return next(name, context);
} });`;

test.each([
  ['a collector that is down', {}, { error: expect.stringContaining('ECONNREFUSED') as string }],
  [
    'packages that are not installed',
    { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(WITHOUT_SDK)}` },
    { install: expect.stringMatching(/^npm install .*sdk-trace-base/) as string },
  ],
])('%s: a warning, and events all the same', async (_what, env, warning) => {
  const receiver = await startExporting(`http://127.0.0.1:${await freePort()}`, env);
  await until('the warning', () => warningsOf(receiver).length > 0);
  expect((await receiver.kill('SIGTERM')).code).toBe(0);
  expect(warningsOf(receiver)).toMatchObject([warning]);
});

test('a collector that hangs delays nothing, a full queue drops spans, and the log says both', async () => {
  const collector = createServer(() => undefined);
  const port = await listen(collector);
  onTestFinished(() => {
    collector.close();
    collector.closeAllConnections();
  });
  const receiver = await startExporting(`http://127.0.0.1:${port}`, {
    OTEL_BSP_MAX_QUEUE_SIZE: '10',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10',
  });
  await until('the warnings', async () => {
    const { id, body } = madeUpEvent(99);
    await postSigned(receiver.url, body, { id });
    return warningsOf(receiver).length > 1;
  });
  expect((await receiver.kill('SIGTERM')).code).toBe(0);
  const errors = warningsOf(receiver).map(({ error }) => String(error));
  expect(errors).toContain('Request timed out');
  expect(errors).toContainEqual(expect.stringMatching(/^Dropped \d+ spans/));
});

/** Sends events to a receiver that exports traces; all are accepted and delivered. */
async function startExporting(url: string, env: Record<string, string>): Promise<ReceiverProcess> {
  const receiver = await ReceiverProcess.start(writeConfig(await temporaryFolder()), {
    env: {
      OTEL_BSP_SCHEDULE_DELAY: '10',
      OTEL_EXPORTER_OTLP_TIMEOUT: '50',
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      ...env,
    },
  });
  for (let n = 0; n < 30; n++) {
    const { id, body } = madeUpEvent(n);
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  }
  await receiver.drained();
  return receiver;
}

const warningsOf = (receiver: ReceiverProcess) => receiver.logLines().filter(({ level }) => level === 40);
