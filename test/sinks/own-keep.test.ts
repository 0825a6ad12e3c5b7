import { expect, test } from 'vitest';
import type { ClaimCheck, Sink } from '../../src/core/sink.ts';
import { systemClock } from '../../src/core/clock.ts';
import { OwnSink } from '../../src/sinks/own-sink.ts';
import { LIMITS, silentLog } from '../deliver/support.ts';
import { makeEvent } from '../support/events.ts';

const CLAIM: ClaimCheck = { path: 'kept/1.json', sha256: 'a'.repeat(64), bytes: 12 };
const EVENT = { ...makeEvent({ id: 'msg_1' }), seq: 1, handling: {} };

/** The `keep` of a user's own module, as those who use it see it. */
function keeperOf(keep: (event: { body: Buffer }) => Promise<unknown>): NonNullable<Sink['keep']> {
  const context = { name: 'own', log: silentLog, clock: systemClock } as never;
  const own = new OwnSink('/own.mjs', context, () => undefined);
  const sink = {
    open: () => Promise.resolve(),
    send: () => Promise.resolve([]),
    close: () => Promise.resolve(),
  };
  own.take({ ...sink, limits: LIMITS, keep: keep as Sink['keep'] } as Sink, LIMITS);
  if (own.keep === undefined) throw new Error('it keeps nothing');
  return own.keep.bind(own);
}

test('what a module’s keep writes into the body it is given reaches nobody else', async () => {
  const before = Buffer.from(EVENT.body);
  const keep = keeperOf(async ({ body }) => {
    body.fill(0);
    return CLAIM;
  });
  await expect(keep(EVENT, new AbortController().signal)).resolves.toEqual(CLAIM);
  expect(EVENT.body).toEqual(before);
});

test.each([undefined, null, {}, { ...CLAIM, sha256: 'no hash' }, { ...CLAIM, path: '' }])(
  'no pointer is made of %j instead of a claim check',
  async (answer) => {
    const keep = keeperOf(() => Promise.resolve(answer));
    await expect(keep(EVENT, new AbortController().signal)).rejects.toThrow('keep must resolve to');
  },
);
