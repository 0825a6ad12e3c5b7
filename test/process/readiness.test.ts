import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startEndpoint } from '../sinks/http-support.ts';
import { Place } from '../support/place.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';

const GATED = join(import.meta.dirname, 'gated-sink.ts');
const PADDING = Buffer.alloc(200_000, 0x20);

interface Ready {
  readonly status: number;
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly state: string }[];
}

async function readiness(receiver: Serving): Promise<Ready> {
  const answer = await receiver.ask('/readyz?verbose');
  const { checks } = (await answer.json()) as Ready;
  return { status: answer.status, checks };
}

test.each([
  ['a full journal', { maxBytes: '4MiB' }, 'journal_full', { name: 'journal', ok: false, state: 'full' }],
  [
    'a backlog above its mark',
    { maxBacklog: 3 },
    'backlog_full',
    { name: 'receiver', ok: false, state: 'backlog_full' },
  ],
])(
  'a receiver with %s is not ready, and is again once there is room, asked or not',
  async (_, journal, code, check) => {
    const place = await Place.make((folder) => ({ journal, sinks: { gated: { type: GATED, folder } } }));
    const receiver = await place.start();
    let n = 0;
    const post = async (): Promise<unknown> => {
      const { id, body } = madeUpEvent((n += 1));
      const { status, json } = await receiver.post(Buffer.concat([body, PADDING]), { id });
      return status === 202 ? null : json['code'];
    };
    expect((await readiness(receiver)).status).toBe(200);
    expect(await until('a refusal', post)).toBe(code);
    const { status, checks } = await readiness(receiver);
    expect([status, checks]).toEqual([503, expect.arrayContaining([expect.objectContaining(check)])]);
    if (code === 'journal_full')
      expect(await place.ok('status')).toMatch(/journal_full since .+\n.+ has [\d.]+ MiB of at most 4 MiB/);
    writeFileSync(place.at('gate'), '');
    await until('readiness', async () => (await readiness(receiver)).status === 200);
    expect(await post()).toBeNull();
  },
);

test('fault 53: of a sink that never answers, status, metric, readiness and console say the same', async () => {
  const endpoint = await startEndpoint();
  endpoint.reply = () => 'hang';
  const far = { type: 'http', url: endpoint.url('/'), sign: 'none', privateNetworks: ['127.0.0.1'] };
  const place = await Place.make({
    delivery: { downAfter: '300ms', retryInitial: '20ms', retryMax: '50ms' },
    sinks: { far: { ...far, timeout: '100ms' } },
  });
  const receiver = await place.start();
  await receiver.send(1);
  /** All that say how it is, each in one word. */
  const said = async (): Promise<string> => {
    const check = (await readiness(receiver)).checks.find(({ name }) => name === 'sink far');
    const { sinks } = (await (await receiver.ask('/api/console')).json()) as { sinks: { mode: string }[] };
    return [
      (await receiver.status()).sinks[0]?.mode,
      /^far +(\w+)/m.exec(await place.ok('status'))?.[1],
      check?.state,
      check?.ok,
      sinks[0]?.mode,
      /^millrace_sink_up\{sink="far"\} (\d)$/m.exec(await receiver.metrics())?.[1],
    ].join(' ');
  };
  await until('all to say that it is down', async () => (await said()) === 'down down down false down 0');
  endpoint.reply = () => 204;
  await until(
    'all to say that it is up',
    async () => (await said()) === 'running running running true running 1',
  );
  const levels = receiver.logLines().filter(({ msg }) => /^sink is (down|up)/.test(String(msg)));
  expect(levels.map(({ msg }) => msg)).toEqual(['sink is down', 'sink is up again']);
});
