import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startEndpoint } from '../sinks/http-support.ts';
import { freePort } from '../support/free-port.ts';
import { serve } from '../support/listen.ts';
import { type CollectedSpan, startCollector } from '../support/otlp-collector.ts';
import { Place } from '../support/place.ts';
import type { ReceiverProcess } from '../support/receiver-process.ts';
import { until } from '../support/until.ts';

const FOREIGN = `whsec_${Buffer.from('of somebody else, made up').toString('base64')}`;
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SENDER = 'b7ad6b7169203331';
const traceparent = (flags: string, trace = TRACE): string => `00-${trace}-${SENDER}-${flags}`;

/** A place that delivers to an archive and to services, a collector, and what the environment says of it. */
async function traced(env: Readonly<Record<string, string>>) {
  const [collector, services] = [await startCollector(), await startEndpoint()];
  const place = await Place.make(
    (folder) => ({
      delivery: { retryInitial: '20ms', retryMax: '50ms' },
      sinks: {
        archive: { type: 'files', path: `${folder}/archive` },
        services: { type: 'http', url: services.url('/'), sign: 'none', privateNetworks: ['127.0.0.1'] },
      },
    }),
    { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '50', ...env },
  );
  return { collector, services, place };
}

const named = (spans: readonly CollectedSpan[], name: string): CollectedSpan[] =>
  spans.filter((span) => span.name === name);

test('one trace from the request to each sink', async () => {
  const { collector, services, place } = await traced({
    OTEL_EXPORTER_OTLP_HEADERS: 'x-made-up=header',
    OTEL_SERVICE_NAME: 'webhooks-of-acme',
  });
  let answers = 0;
  services.reply = () => (answers++ === 0 ? 503 : 204);
  const receiver = await place.startProcess();
  const { id, body } = madeUpEvent(1, 'daily.data.meal.created');
  const sent = { id, headers: { traceparent: traceparent('01'), tracestate: 'made=up' } };
  expect((await receiver.post(body, sent)).status).toBe(202);
  expect((await receiver.post(body, { id: 'other', secret: FOREIGN })).status).toBe(401);
  await receiver.drained();
  await receiver.stop();

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
  const { collector, services, place } = await traced({
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0',
  });
  services.reply = () => 'hang';
  let receiver = await place.startProcess();
  const headersOf = [
    { traceparent: traceparent('01') },
    { traceparent: traceparent('00', '1'.repeat(32)) },
    {},
  ];
  for (const [n, headers] of headersOf.entries()) {
    const { id, body } = madeUpEvent(n);
    await receiver.post(body, { id, headers });
  }
  await until('the spans of receiving', () => named(collector.spans, 'millrace receive').length > 0);
  await receiver.kill('SIGKILL');
  services.reply = () => 204;
  receiver = await place.startProcess();
  await receiver.drained();
  await receiver.stop();
  const [received] = named(collector.spans, 'millrace receive');
  const last = named(collector.spans, 'millrace deliver').at(-1);
  expect(last).toMatchObject({ trace: TRACE, parent: received?.id });
  expect(collector.spans.filter(({ trace }) => trace !== TRACE)).toEqual([]);
  // The sender's own decision is passed to the target.
  const others = services.posts.map(({ headers }) => headers['traceparent']).filter((it) => it !== undefined);
  expect(new Set(others)).toEqual(new Set([`00-${TRACE}-${received?.id}-01`, headersOf[1]?.traceparent]));
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
  await receiver.stop();
  expect(warningsOf(receiver)).toMatchObject([warning]);
});

test('a collector that hangs delays nothing, a full queue drops spans, and the log says both', async () => {
  const receiver = await startExporting(await serve(() => undefined), {
    OTEL_BSP_MAX_QUEUE_SIZE: '10',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10',
  });
  await until('the warnings', async () => {
    await receiver.post();
    return warningsOf(receiver).length > 1;
  });
  await receiver.stop();
  const errors = warningsOf(receiver).map(({ error }) => String(error));
  expect(errors).toContain('Request timed out');
  expect(errors).toContainEqual(expect.stringMatching(/^Dropped \d+ spans/));
});

/** Sends events to a receiver that exports traces; all are accepted and delivered. */
async function startExporting(url: string, env: Record<string, string>): Promise<ReceiverProcess> {
  const times = { OTEL_BSP_SCHEDULE_DELAY: '10', OTEL_EXPORTER_OTLP_TIMEOUT: '50' };
  const place = await Place.make({}, { ...times, OTEL_EXPORTER_OTLP_ENDPOINT: url, ...env });
  const receiver = await place.startProcess();
  await receiver.send(30);
  await receiver.drained();
  return receiver;
}

const warningsOf = (receiver: ReceiverProcess) => receiver.logLines().filter(({ level }) => level === 40);
