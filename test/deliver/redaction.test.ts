import { expect, test } from 'vitest';
import type { Redaction, Target } from '../../src/core/route.ts';
import { DELIVERED } from '../../src/core/sink.ts';
import { DEFAULT_FIELDS } from '../../src/receive/validate/envelope.ts';
import { makeEvent } from '../support/events.ts';
import { makeDispatcher } from './running.ts';
import { ArrayJournal, ManualClock, ScriptedSink, until } from './support.ts';

const hiding = (...redact: string[]): readonly Redaction[] => [{ redact, fields: DEFAULT_FIELDS }];
const bodyOf = (data: unknown): Buffer =>
  Buffer.from(JSON.stringify({ event_type: 'a', client_user_id: 'c', data }));

/** Sinks that are given events by these redactions; all read the same events from the journal. */
async function dispatcherOf(sinks: Readonly<Record<string, readonly [ScriptedSink, readonly Redaction[]]>>) {
  const journal = new ArrayJournal();
  const clock = new ManualClock();
  const targets = Object.entries(sinks).map(([sink, [, redactions]]): Target => {
    return { sink, destination: null, ...(redactions.length === 0 ? {} : { redactions }) };
  });
  const dispatcher = makeDispatcher({ journal, clock, targetsOf: () => targets });
  const kept: Buffer[] = [];
  const keep = (event: { readonly body: Buffer }) => {
    kept.push(event.body);
    return Promise.resolve({ path: 'kept', sha256: '', bytes: event.body.length });
  };
  for (const [name, [sink]] of Object.entries(sinks)) await dispatcher.add(name, sink, { keep });
  dispatcher.begin();
  return { journal, clock, kept, dispatcher };
}

const takes = (): ScriptedSink => new ScriptedSink(() => DELIVERED);

test('each sink gets what its own redaction leaves of one and the same event', async () => {
  const sinks = {
    // The first finds nothing to cut: what it was given must not pass as cut for the others.
    nothing: [takes(), hiding('/data/other')],
    name: [takes(), hiding('/data/name', '/client_user_id')],
    whole: [takes(), []],
    all: [takes(), [{ only: [], fields: DEFAULT_FIELDS }]],
  } as const;
  const { journal, clock } = await dispatcherOf(sinks);
  const event = makeEvent({
    body: bodyOf({ name: 'hidden', code: 1 }),
    clientUser: 'c',
    headers: { signature: 's' },
  });
  journal.put(event);
  await until(clock, () => Object.values(sinks).every(([sink]) => sink.taken.length === 1));
  const got = (name: keyof typeof sinks) => sinks[name][0].taken[0]?.event;
  expect(got('nothing')?.body).toBe(event.body);
  expect(got('whole')).toMatchObject({ body: event.body, clientUser: 'c', headers: event.headers });
  expect(got('name')?.body.toString()).toBe(
    '{"event_type":"a","client_user_id":null,"data":{"name":null,"code":1}}',
  );
  expect(got('name')).toMatchObject({ clientUser: null, headers: {}, user: event.user });
  expect(got('all')?.body.toString()).toBe('{"event_type":"a","client_user_id":"c"}');
  expect(Object.values(got('name') ?? {})).not.toContain(event.body);
});

test('what cannot be redacted becomes a dead letter with the event as it came, and its neighbours leave', async () => {
  const sink = new ScriptedSink(() => DELIVERED);
  const { journal, clock, kept } = await dispatcherOf({ a: [sink, hiding('/data/name')] });
  const broken = Buffer.from('{"data":{"name":"hidden"}');
  journal.put(makeEvent({ id: 'before', body: bodyOf({}) }));
  journal.put(makeEvent({ id: 'broken', body: broken }));
  journal.put(makeEvent({ id: 'after', body: bodyOf({}) }));
  await until(clock, () => journal.cursors.get('a') === 3);
  expect(sink.taken.map(({ event }) => event.id)).toEqual(['before', 'after']);
  expect(journal.deadLetters).toMatchObject([
    { code: 'not_redacted', event: { id: 'broken', body: broken } },
  ]);
  expect(kept).toEqual([]);
});

test('what a mask makes larger keeps the limits of the sink; what is still too large is kept redacted', async () => {
  const sink = new ScriptedSink(() => DELIVERED, { batchBytes: 400, eventBytes: 300 });
  const redactions = [{ redact: ['/data/*'], mask: 'm'.repeat(20), fields: DEFAULT_FIELDS }];
  const { journal, clock, kept } = await dispatcherOf({ a: [sink, redactions] });
  for (let n = 0; n < 6; n += 1) journal.put(makeEvent({ body: bodyOf(['hidden', n]) }));
  journal.put(makeEvent({ id: 'large', body: bodyOf(Array.from({ length: 30 }, () => 1)) }));
  await until(clock, () => journal.cursors.get('a') === 7);
  const sizes = sink.taken.slice(0, 6).map(({ event }) => event.body.length);
  expect(Math.max(...sink.batches.slice(0, -1)) * Math.max(...sizes)).toBeLessThanOrEqual(400);
  expect(kept).toHaveLength(1);
  expect(kept[0]?.toString()).not.toContain('1,1');
  const claim = { path: 'kept', sha256: '', bytes: kept[0]?.length ?? 0 };
  expect(JSON.parse(String(sink.taken.at(-1)?.event.body))).toEqual({ claim_check: claim });
});

test('a dead letter keeps the event, and what it had to go without', async () => {
  const sink = new ScriptedSink(() => ({ status: 'refused', code: 'no', reason: 'no' }));
  const redactions = hiding('/data/name', '/client_user_id');
  const { journal, clock } = await dispatcherOf({ a: [sink, redactions] });
  const event = makeEvent({ body: bodyOf({ name: 'x' }), clientUser: 'c', headers: { signature: 's' } });
  journal.put(event);
  await until(clock, () => journal.deadLetters.length === 1);
  expect(journal.deadLetters[0]?.event).toEqual({ ...event, seq: 1, handling: { redactions } });
});
