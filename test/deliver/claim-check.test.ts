import { gunzipSync } from 'node:zlib';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { DELIVERED } from '../../src/core/sink.ts';
import { LiveSinks, type PlannedSinks } from '../../src/deliver/live-sinks.ts';
import { parseOptions } from '../../src/sinks/files/config.ts';
import { createSink } from '../../src/sinks/files/sink.ts';
import { makeEvent, TEAM, USER } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/until.ts';
import { makeDispatcher, planned } from './running.ts';
import { ArrayJournal, ManualClock, ScriptedSink, silentLog } from './support.ts';

test('fault 13: with a claim check the large event is kept whole and a pointer is sent in its place', async () => {
  const path = await temporaryFolder();
  const clock = new ManualClock();
  const files = createSink(parseOptions({ path }), { name: 'archive', log: silentLog, clock });
  const hub = new ScriptedSink(() => DELIVERED, { eventBytes: 1000 });
  const journal = new ArrayJournal();
  const dispatcher = makeDispatcher({
    journal,
    clock,
    targetsOf: () => [{ sink: 'hub', destination: 'large' }],
  });
  const large = makeEvent({
    id: 'msg_large/../x',
    body: Buffer.from(JSON.stringify({ blob: 'x'.repeat(5000) })),
  });
  journal.put(makeEvent({ id: 'small' }));
  journal.put(large);
  await Promise.all([
    dispatcher.add('archive', files),
    dispatcher.add('hub', hub, { keep: files.keep!.bind(files) }),
  ]);
  dispatcher.begin();
  // The files sink may open after the hub has its first batch: what could not be kept yet is tried again.
  await until('the pointer to be delivered', () => (clock.next(), journal.cursors.get('hub') === 2));
  expect(journal.deadLetters).toEqual([]);
  const pointer = hub.taken.find(({ event }) => event.id === large.id)!.event;
  expect(pointer).toMatchObject({ team: TEAM, user: USER, type: large.type, handling: { claimCheck: true } });
  const { claim_check: claim } = JSON.parse(pointer.body.toString()) as {
    claim_check: { path: string; sha256: string; bytes: number };
  };
  expect(claim).toMatchObject({ sha256: hash('sha256', large.body, 'hex'), bytes: large.body.length });
  expect(claim.path).toMatch(new RegExp(`^claim-checks/${TEAM}/2026-11-21/[^/]+\\.json\\.gz$`));
  expect(gunzipSync(readFileSync(join(path, claim.path)))).toEqual(large.body);
  await dispatcher.stop(AbortSignal.timeout(5000));
});

test('a reload that exchanges the keeper after the sink that uses it leaves the large events a way through', async () => {
  const folder = await temporaryFolder();
  const clock = new ManualClock();
  const journal = new ArrayJournal();
  const dispatcher = makeDispatcher({
    journal,
    clock,
    targetsOf: () => [{ sink: 'hub', destination: null }],
  });
  const hubs: ScriptedSink[] = [];
  const hub = (): ScriptedSink =>
    hubs[hubs.push(new ScriptedSink(() => DELIVERED, { eventBytes: 1000 })) - 1]!;
  const planOf = (path: string): PlannedSinks => {
    const archive = () => createSink(parseOptions({ path }), { name: 'archive', log: silentLog, clock });
    return {
      sinks: new Map([
        ['hub', planned(hub, { fingerprint: path, keeper: 'archive' })],
        ['archive', planned(archive, { fingerprint: path })],
      ]),
    };
  };
  const [before, after] = [planOf(join(folder, 'before')), planOf(join(folder, 'after'))];
  const live = new LiveSinks(dispatcher, { log: silentLog, clock });
  await live.open(before);
  await live.change(after, AbortSignal.timeout(5000), new Map(), () => Promise.resolve());
  dispatcher.begin();
  journal.put(makeEvent({ body: Buffer.alloc(5000, 'x') }));
  await until('the pointer to be delivered', () => (clock.next(), journal.cursors.get('hub') === 1));
  expect(hubs.at(-1)?.taken).toHaveLength(1);
  await dispatcher.stop(AbortSignal.timeout(5000));
});
