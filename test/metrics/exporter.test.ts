import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { Exporter } from '../../src/metrics/exporter.ts';
import type { SpanNote } from '../../src/metrics/span-note.ts';
import { freePort } from '../support/free-port.ts';
import { until } from '../support/until.ts';

const NOTE: SpanNote = {
  name: 'millrace receive',
  kind: 'server',
  trace: '0af7651916cd43dd8448eb211c80319c',
  id: 'b7ad6b7169203331',
  state: '',
  parent: null,
  start: 1_795_379_863_411,
  duration: 3.2,
  failure: null,
  link: null,
  values: { 'millrace.outcome': 'accepted' },
};

interface Warning {
  readonly message: string;
  readonly dropped?: number;
  readonly got?: number;
  readonly error?: string;
}

/** With a thread that runs this, where `port` is its way to us, and with all that it has us log. */
function exporterWith(program: string, room = 100) {
  const warnings: Warning[] = [];
  const exporter = new Exporter({
    program: new URL(
      `data:text/javascript,${encodeURIComponent(`import { parentPort as port } from 'node:worker_threads';${program}`)}`,
    ),
    env: {},
    room,
    warn: (detail, message) => warnings.push({ ...detail, message }),
    onUnable: (error) => warnings.push({ error, message: 'unable' }),
  });
  onTestFinished(() => exporter.stop());
  const dropped = (): number => warnings.reduce((sum, { dropped: count = 0 }) => sum + count, 0);
  return { exporter, warnings, dropped };
}

const SETTLES = `port.on('message', (order) => {
  if (order === 'stop') return port.postMessage('stopped');
  port.postMessage({ settled: order.length });
  port.postMessage({ warning: 'got', detail: { got: order.length } });
});`;

test('what is noted is exported or told of: each span once, and no more wait than have room', async () => {
  const { exporter, warnings, dropped } = exporterWith(SETTLES);
  for (let n = 0; n < 1000; n += 1) exporter.add(NOTE);
  // Nothing has settled in this turn.
  expect(warnings).toEqual([{ dropped: 1, message: 'spans are dropped: more come than are exported' }]);
  const got = (): number => warnings.reduce((sum, { got: count = 0 }) => sum + count, 0);
  await until('those that had room', () => got() === 100);
  for (let n = 0; n < 100; n += 1) exporter.add(NOTE);
  await exporter.stop();
  expect({ got: got(), dropped: dropped() }).toEqual({ got: 200, dropped: 900 });
});

test('a thread that hangs holds up nobody, and a stop says what it had', async () => {
  const { exporter, dropped } = exporterWith(`port.once('message', () => { for (;;); });`);
  for (let n = 0; n < 1000; n += 1) exporter.add(NOTE);
  await exporter.stop();
  expect(dropped()).toBe(1000);
  expect(exporter.hasEnded).toBe(true);
});

test.each([
  ['ends', `port.once('message', () => process.exit(3));`, 'it ended with code 3'],
  ['throws', `port.once('message', () => { throw new Error('made up'); });`, 'made up'],
])(
  'a thread that %s is told of with what it had, and nothing is noted from then on',
  async (_what, program, error) => {
    const { exporter, warnings } = exporterWith(program);
    for (let n = 0; n < 70; n += 1) exporter.add(NOTE);
    await until('its end', () => exporter.hasEnded);
    for (let n = 0; n < 1000; n += 1) exporter.add(NOTE);
    await exporter.stop();
    expect(warnings).toEqual([
      {
        error,
        dropped: 70,
        message: expect.stringContaining('the thread that exports traces died') as string,
      },
    ]);
  },
);

test('the thread outlives the stop of what it exports with, also when the collector takes no span by then', async () => {
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  const program = new URL('../../src/metrics/exporter-thread.ts', import.meta.url);
  const worker = new Worker(program, {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TIMEOUT: '50' },
  });
  onTestFinished(async () => void (await worker.terminate()));
  const reports: unknown[] = [];
  worker.on('message', (report) => reports.push(report));
  worker.on('error', (error) => reports.push(error));
  const stops = (): number => reports.filter((report) => report === 'stopped').length;
  worker.postMessage([NOTE], []);
  for (const times of [1, 2]) {
    worker.postMessage('stop', []);
    await until('the thread to have stopped', () => stops() === times || reports.find(isError));
  }
  expect(reports.filter(isError)).toEqual([]);
  expect(reports).toContainEqual({ settled: 1 });
});

function isError(value: unknown): boolean {
  return value instanceof Error;
}
