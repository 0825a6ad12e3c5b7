import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { listen } from '../support/listen.ts';
import { writeConfig } from '../support/millrace.ts';
import { startCollector } from '../support/otlp-collector.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const EVENTS = 30;
/** Of each: receive, journal, deliver. */
const SPANS = 3 * EVENTS;

/** Takes requests, and never answers. @returns its address */
async function hangingCollector(): Promise<string> {
  const server = createServer(() => undefined);
  const port = await listen(server);
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${port}`;
}

/** Node runs this in each thread before the program, where `load` gets the address of each module of OpenTelemetry's. */
function watching(load: string): Record<string, string> {
  const program = `import { registerHooks } from 'node:module';
    import { appendFileSync } from 'node:fs';
    import { isMainThread } from 'node:worker_threads';
    const seen = (url) => { ${load} };
    registerHooks({ load(url, context, next) {
      if (url.includes('/@opentelemetry/')) seen(url);
      return next(url, context);
    } });`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(program)}` };
}

/** Sends events one after the other: each is answered before the next. */
async function send(receiver: ReceiverProcess): Promise<void> {
  for (let n = 0; n < EVENTS; n += 1) {
    const { id, body } = madeUpEvent(n);
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  }
  await receiver.drained();
}

test('nothing of the SDK is loaded where events are received, so no object of it is made there', async () => {
  const folder = await temporaryFolder();
  const collector = await startCollector();
  const loaded = `${folder}/loaded`;
  const receiver = await ReceiverProcess.start(writeConfig(folder), {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      ...watching(`appendFileSync('${loaded}', (isMainThread ? 'main ' : 'thread ') + url + '\\n')`),
    },
  });
  await send(receiver);
  await receiver.kill('SIGTERM');
  expect(collector.spans).toHaveLength(SPANS);
  const modules = readFileSync(loaded, 'utf8').trim().split('\n');
  const where = (thread: string, part: string): number =>
    modules.filter((line) => line.startsWith(thread) && line.includes(part)).length;
  expect(where('main ', '/@opentelemetry/')).toBe(where('main ', '/@opentelemetry/api/'));
  expect(where('thread ', '/@opentelemetry/sdk-trace-base/')).toBeGreaterThan(0);
  expect(where('thread ', '/@opentelemetry/exporter-trace-otlp-proto/')).toBeGreaterThan(0);
});

test.each([
  ['a collector that hangs', {}],
  [
    'a thread that hangs',
    watching(`if (!isMainThread && url.includes('exporter-trace-otlp-proto')) for (;;);`),
  ],
])(
  '%s delays nothing, holds no more than its room, and the log counts what is dropped',
  async (_what, env) => {
    const receiver = await ReceiverProcess.start(writeConfig(await temporaryFolder()), {
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: await hangingCollector(), OTEL_BSP_MAX_QUEUE_SIZE: '10', ...env },
    });
    await send(receiver);
    const told = (): number =>
      receiver.logLines().reduce((sum, { level, dropped }) => sum + (level === 40 ? Number(dropped) : 0), 0);
    await until('what finds no room', () => told() > 0);
    expect((await receiver.kill('SIGTERM')).code).toBe(0);
    expect(told()).toBe(SPANS);
  },
);

test('a thread that dies takes no event with it, and the log says that there are no traces', async () => {
  const receiver = await ReceiverProcess.start(writeConfig(await temporaryFolder()), {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: await hangingCollector(),
      ...watching(`if (!isMainThread && url.includes('exporter-trace-otlp-proto')) process.exit(3);`),
    },
  });
  const warnings = (): readonly object[] => receiver.logLines().filter(({ level }) => level === 40);
  await until('the warning', () => warnings().length > 0);
  await send(receiver);
  expect((await receiver.kill('SIGTERM')).code).toBe(0);
  expect(warnings()).toMatchObject([{ msg: expect.stringContaining('exports traces died') as string }]);
});
