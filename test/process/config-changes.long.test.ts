import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Place } from '../support/place.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';

const type = join(import.meta.dirname, 'gated-sink.ts');

/** A place whose config the test changes step by step, and sinks whose gates it opens. */
async function bench() {
  const place = await Place.make();
  const sink = (name: string, more: object = {}): object => {
    mkdirSync(place.at(name), { recursive: true });
    return { type, folder: place.at(name), shut: 'is sent again', limits: { order: 'user' }, ...more };
  };
  /** Everything goes to the sinks named. */
  const configure = (sinks: Record<string, object>, to: readonly string[], more: object = {}): void =>
    place.write({ ...more, sinks, routes: [{ match: '*', to }], shutdown: { deadline: '1s' } });
  const taken = (name: string): string[] => {
    const notes = place.at(name, 'delivered');
    return existsSync(notes) ? sorted(readFileSync(notes, 'utf8').trim().split('\n')) : [];
  };
  return {
    place,
    sink,
    configure,
    taken,
    open: (name: string) => writeFileSync(place.at(name, 'gate'), ''),
  };
}

const sorted = (ids: Iterable<string>): string[] => [...new Set(ids)].toSorted();

/** What a start says that ends, or that it is up. */
async function startedOnce(config: string): Promise<string> {
  const started = new ReceiverProcess(config);
  const up = started.listening().then(
    () => true,
    () => false,
  );
  if (await Promise.race([up, started.exited.then(() => false)])) {
    await started.kill('SIGKILL');
    return 'reloaded';
  }
  expect((await started.exited).code).toBe(2);
  return started.stderr;
}

test.each(['by a reload', 'between two starts', 'after kill -9'])(
  'a sink that is down with a backlog is taken out %s: refused with the count and the choices, then continued by another',
  async (how) => {
    const { place, sink, configure, taken, open } = await bench();
    const a = sink('a');
    open('a');
    configure({ a, b: sink('b') }, ['a', 'b']);
    const receiver: Serving = await (how === 'after kill -9' ? place.startProcess() : place.start());
    const sent = await receiver.send(50);
    const taking = async (): Promise<string> => {
      if (how !== 'by a reload') return startedOnce(place.config);
      const { msg, error } = await receiver.reload();
      return `${String(msg)} ${String(error)} ${receiver.stderr.split('\n').slice(-6).join('\n')}`;
    };
    if (how === 'between two starts') await receiver.stop();
    if (how === 'after kill -9') await receiver.kill('SIGKILL');
    configure({ a }, ['a']);
    const refused = await taking();
    for (const said of ['sinks.b: 50 events wait for it', 'continues: b', 'millrace sink drop b'])
      expect(refused).toContain(said);
    // The config as it lies there names no b: what waits for it is named, and is a difference.
    const abandoned = [{ code: 'abandoned', sink: 'b', count: 50 }];
    expect(await place.json('reconcile')).toMatchObject({ code: 4, differences: abandoned });
    configure({ a, c: sink('c', { continues: 'b' }) }, ['a', 'c']);
    expect(await taking()).toContain('reloaded');
    open('c');
    await (how === 'by a reload' ? receiver : await place.start()).drained();
    expect(taken('c')).toEqual(sorted(sent.keys()));
    await place.ok('reconcile');
  },
);

test.each(['while it runs', 'while it is down'])(
  'what waits for a sink that is gone becomes dead letters when a person drops it, %s; retried, it has them all when it is back',
  async (how) => {
    const { place, sink, configure, taken, open } = await bench();
    const [a, b] = [sink('a'), sink('b')];
    open('a');
    configure({ a, b }, ['a', 'b']);
    let receiver: Serving = await (how === 'while it runs' ? place.start() : place.startProcess());
    const sent = await receiver.send(20);
    configure({ a }, ['a']);
    if (how === 'while it runs') {
      expect(await receiver.reload()).toMatchObject({ msg: expect.stringContaining('reload failed') });
      expect(await place.ok('sink', 'drop', 'b')).toContain('still open: 20');
      for (const [id, body] of await receiver.send(5, 20)) sent.set(id, body);
      expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
    } else {
      await receiver.kill('SIGKILL');
      expect(await place.ok('sink', 'drop', 'b')).toContain('b: 20 dead letters');
      receiver = await place.start();
    }
    const dead = (await place.documents('dead-letters', 'list', '--sink', 'b', '--limit', '100')) as {
      id: string;
      code: string;
    }[];
    expect(sorted(dead.map(({ id }) => id))).toEqual(sorted(sent.keys()));
    expect(new Set(dead.map(({ code }) => code))).toEqual(new Set(['sink_dropped']));
    expect((await place.run('sink', 'drop', 'unknown')).code).not.toBe(0);
    await place.ok('reconcile');

    open('b');
    configure({ a, b }, ['a', 'b']);
    await receiver.stop();
    const retry = async () => expect(await place.ok('dead-letters', 'retry', '--all')).toContain('retried 2');
    if (how === 'while it runs') await retry();
    const again = await place.start();
    if (how !== 'while it runs') await retry();
    await again.drained();
    expect(taken('b')).toEqual(sorted(sent.keys()));
  },
);

test('events that are let out of quarantine after a sink was dropped are not counted as delivered to it', async () => {
  const { place, sink, configure, taken, open } = await bench();
  const [a, b] = [sink('a'), sink('b')];
  for (const name of ['a', 'b']) open(name);
  configure({ a, b }, ['a', 'b'], { envelope: { teams: ['00000000-0000-4000-8000-000000000000'] } });
  const receiver = await place.start();
  const [id] = (await receiver.send(1)).keys();
  await receiver.stop();
  configure({ a }, ['a']);
  await place.run('sink', 'drop', 'b');
  expect(await place.ok('quarantine', 'retry', '--all')).toContain('retried 1');
  configure({ a, b }, ['a', 'b']);
  await (await place.start()).drained();
  expect([taken('a'), taken('b')]).toEqual([[id], []]);
  expect((await place.json('reconcile')).sinks).toMatchObject([
    { sink: 'a', delivered: 1 },
    { sink: 'b', delivered: 0, elsewhere: 1 },
  ]);
});

test('a files sink that is taken out together with one whose large events it keeps stays for as long as that', async () => {
  const { place, sink, configure, taken, open } = await bench();
  const a = sink('a');
  const kept = { type: 'files', path: place.at('kept') };
  const b = sink('b', {
    takes: 20,
    limits: { order: 'user', eventBytes: 700 },
    oversize: 'claim-check',
    claimCheck: 'kept',
  });
  for (const name of ['a', 'b']) open(name);
  configure({ a, b, kept }, ['a', 'b']);
  const receiver = await place.start();
  const sent = await receiver.send(60);
  configure({ a }, ['a']);
  expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
  await until('both to have left', () =>
    ['b', 'kept'].every((name) =>
      receiver.logLines().some(({ msg, sink: done }) => msg === 'removed sink is done' && done === name),
    ),
  );
  expect(taken('b')).toEqual(sorted(sent.keys()));
  expect((await receiver.status()).journal.cursors.map(({ sink: left }) => left)).toEqual(['a']);
});
