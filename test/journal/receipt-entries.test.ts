import { randomBytes } from 'node:crypto';
import { cpSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event, Handling } from '../../src/core/event.ts';
import { resultOf } from '../../src/journal/batch.ts';
import { encodeRecords } from '../../src/journal/segments/records.ts';
import type { Store } from '../../src/journal/store.ts';
import { entryByHand } from '../privacy/receipts/entry-by-hand.ts';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { NOW, openStore } from './support.ts';

interface Given {
  readonly event: Event;
  readonly handling: Handling | undefined;
  /** It goes to quarantine. */
  readonly invalid?: boolean;
}

const ZEROS = Buffer.alloc(32);

/** None for what a retry or a replay brings. */
function expectedOf({ event, handling }: Given): Buffer {
  const text = event.headers['millrace-salt'];
  if (text === undefined || handling?.only !== undefined || handling?.replayId !== undefined) return ZEROS;
  const { id, body, receivedAt: received } = event;
  return entryByHand({ id, body, salt: Buffer.from(text, 'base64url'), received });
}

function entriesOf(store: Store, count: number): Buffer[] {
  const all: Buffer[] = [];
  while (all.length < count) {
    const { firstSeq, records } = store.receipts.entries(all.length, 7);
    expect(firstSeq).toBe(all.length + 1);
    const bytes = Buffer.from(records);
    for (let at = 0; at < bytes.length; at += 32) all.push(bytes.subarray(at, at + 32));
  }
  return all;
}

const seqIn = (answer: number): number => {
  const result = resultOf(answer);
  return result.status === 'duplicate' ? 0 : result.seq;
};

/** Of the quarantine, by key. */
function asideOf(store: Store): string[] {
  store.retention.save();
  return store.asideEntries.list('quarantine', {}).flatMap(({ entry }) => entry ?? []);
}

const salt = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .map((bytes) => Buffer.from(bytes).toString('base64url'));
/** What a sender may try to pass its own salt by. */
const tricks = fc.constantFrom('"millrace-salt":"AAAAAAAAAAAAAAAAAAAAAA"', 'é\u{1F600}"', ',null]', '');
const given: fc.Arbitrary<Given> = fc
  .record({
    salt: fc.option(salt, { freq: 4 }),
    trick: tricks,
    id: fc.string({ minLength: 1, maxLength: 700 }),
    body: fc.uint8Array({ maxLength: 300 }),
    receivedAt: fc.constantFrom(NOW, NOW + 1, 2 ** 32, 2 ** 32 - 1, 0),
    invalid: fc.boolean(),
    handling: fc.constantFrom<Handling | undefined>(
      undefined,
      { trace: { traceparent: '00-made-up', tracestate: '' } } as unknown as Handling,
      { only: ['archive'] },
      { replayId: 'r1' } as unknown as Handling,
    ),
  })
  .map(({ salt: text, trick, id, body, receivedAt, handling, invalid }) => ({
    invalid,
    event: {
      ...makeEvent({ id: `${id}${randomBytes(8).toString('hex')}`, receivedAt }),
      clientUser: trick,
      headers: { 'webhook-id': trick, ...(text === null ? {} : { 'millrace-salt': text }) },
      body: Buffer.from(body),
    },
    handling,
  }));

test('entries are the same made with the commit and read later, by the definition', async () => {
  const path = await temporaryFolder();
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(given, { minLength: 1, maxLength: 9 }), { minLength: 1, maxLength: 4 }),
      async (batches) => {
        const folder = `${path}/${randomBytes(6).toString('hex')}`;
        const store = openStore(folder);
        const answers: number[] = [];
        const log = { id: 'made-up', origin: 'made-up.example/log' };
        store.receipts.hold({ ...log, seq: 0 });
        for (const batch of batches)
          answers.push(
            ...store.append(
              {
                records: encodeRecords(batch),
                count: batch.length,
                invalid: batch.map(({ invalid }) => (invalid === true ? '[]' : null)),
                keys: null,
              },
              NOW,
            ).answers,
          );
        const all = batches.flat();
        // What is quarantined without a salt takes no place.
        const placed = all.filter((one) => one.invalid !== true || !expectedOf(one).equals(ZEROS));
        const expected = placed.map(expectedOf);
        expect(answers.map(seqIn)).toEqual(all.map((one) => placed.indexOf(one) + 1));
        expect(answers.map((answer) => answer > 0)).toEqual(all.map(({ invalid }) => invalid !== true));
        const aside = expected
          .filter((_, n) => placed[n]?.invalid === true)
          .map((one) => one.toString('base64'));
        expect(asideOf(store)).toEqual(aside);
        expect(entriesOf(store, expected.length)).toEqual(expected);
        const copy = `${folder}-killed`;
        cpSync(folder, copy, { recursive: true });
        store.close();
        const again = openStore(folder);
        expect(entriesOf(again, expected.length)).toEqual(expected);
        expect(asideOf(again)).toEqual(aside);
        expect(again.heads(0).others.filter(({ erased, replayed }) => erased && replayed)).toHaveLength(
          aside.length,
        );
        again.close();
        const killed = openStore(copy);
        expect(entriesOf(killed, expected.length)).toEqual(expected);
        expect(asideOf(killed)).toEqual(aside);
        killed.close();
      },
    ),
    { numRuns: 8 },
  );
});

test('what was signed is forgotten, and what was put between is read', async () => {
  const store = openStore(await temporaryFolder());
  const log = { id: 'made-up', origin: 'made-up.example/log' };
  const events = Array.from({ length: 30 }, (_, n): Given => {
    const headers = { 'millrace-salt': randomBytes(16).toString('base64url') };
    return { event: { ...makeEvent({ id: `msg_${n}`, receivedAt: NOW }), headers }, handling: undefined };
  });
  const append = (from: number, to: number): void => {
    const some = events.slice(from, to);
    store.append({ records: encodeRecords(some), count: some.length, invalid: null, keys: null }, NOW);
  };
  append(0, 5);
  store.receipts.hold({ ...log, seq: 5 });
  append(5, 15);
  store.receipts.hold({ ...log, seq: 9 });
  append(15, 20);
  // Without its own entry, as an event that is appended again.
  store.receipts.hold(null);
  append(20, 25);
  store.receipts.hold({ ...log, seq: 12 });
  append(25, 30);
  expect(entriesOf(store, 30)).toEqual(events.map(expectedOf));
});
