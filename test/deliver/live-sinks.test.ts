import { describe, expect, test } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import { DELIVERED, type Sink } from '../../src/core/sink.ts';
import { LiveSinks, type PlannedSinks } from '../../src/deliver/live-sinks.ts';
import { makeEvent } from '../support/events.ts';
import { makeDispatcher, planned } from './running.ts';
import { ArrayJournal, LIMITS, ManualClock, silentLog, until } from './support.ts';

test('a reload that fails while the disk is in trouble brings the old sink back, when the disk lets it', async () => {
  const { journal, clock, dispatcher, sinks, disk, got, plan } = several(['a']);
  await sinks.open(plan('before'));
  dispatcher.begin();

  disk.inTrouble = true;
  const signal = new AbortController().signal;
  const changing = sinks.change(plan('after'), signal, new Map(), () => Promise.resolve());
  await expect(changing).rejects.toThrow('Folder cannot be read or written');
  journal.put(makeEvent({ id: 'later' }));
  disk.inTrouble = false;
  await until(clock, () => got('a').includes('later'));
  await dispatcher.stop(AbortSignal.timeout(1000));
});

test('a sink that is not required is waited for in the background, whatever is in the way', async () => {
  const { journal, clock, dispatcher, sinks, disk, got, plan } = several(['a']);
  disk.inTrouble = true;
  await expect(sinks.open(plan('a'))).rejects.toThrow('Folder cannot be read or written');
  await new LiveSinks(dispatcher, { log: silentLog, clock }, (name) => name === 'a').open(plan('a'));
  dispatcher.begin();
  journal.put(makeEvent({ id: 'made-up' }));
  disk.inTrouble = false;
  await until(clock, () => got('a').includes('made-up'));
  await dispatcher.stop(AbortSignal.timeout(1000));
});

describe('a change of several sinks', () => {
  test('a sink that answers continues while another has not answered yet', async () => {
    const { clock, journal, dispatcher, sinks, hanging, got, plan } = several(['slow', 'fast']);
    await sinks.open(plan('before'));
    dispatcher.begin();
    hanging.add('slow');
    journal.put(makeEvent({ id: 'one' }));
    await until(clock, () => got('fast').includes('one'));
    const changing = sinks.change(plan('after'), LIVE, new Map(), () => Promise.resolve());
    journal.put(makeEvent({ id: 'two' }));
    await until(clock, () => got('fast').includes('two'));
    // Past the time in which a sink answers that has nothing in its way.
    for (let round = 0; round < 5; round += 1) clock.next();
    journal.put(makeEvent({ id: 'three' }));
    await until(clock, () => got('fast').includes('three'));
    hanging.clear();
    await changing;
    dispatcher.begin();
    await until(clock, () => got('slow').length >= 3 && got('fast').length >= 3);
    expect(got('fast')).toEqual(['one', 'two', 'three']);
    await dispatcher.stop(AbortSignal.timeout(1000));
  });

  test('of two that have not answered each is exchanged as soon as it has', async () => {
    const { clock, journal, dispatcher, sinks, hanging, opened, plan } = several(['a', 'b']);
    await sinks.open(plan('before'));
    dispatcher.begin();
    for (const name of ['a', 'b']) hanging.add(name);
    journal.put(makeEvent({ id: 'one' }));
    const changing = sinks.change(plan('after'), LIVE, new Map(), () => Promise.resolve());
    await until(clock, () => hanging.waiting === 2);
    hanging.delete('b');
    await until(clock, () => opened.includes('b after'));
    expect(opened).not.toContain('a after');
    hanging.delete('a');
    await changing;
    await dispatcher.stop(AbortSignal.timeout(1000));
  });

  test('a sink can open a folder that another has closed', async () => {
    const { dispatcher, sinks, opened, plan } = several(['a', 'b', 'c']);
    await sinks.open(plan('before', { a: 'p', b: 'q', c: 'r' }));
    await sinks.change(plan('after', { a: 'q', b: 'r', c: 's' }), LIVE, new Map(), () => Promise.resolve());
    expect(opened.slice(3).toSorted()).toEqual(['a after', 'b after', 'c after']);
    await dispatcher.stop(AbortSignal.timeout(1000));
  });
});

const LIVE = new AbortController().signal;

/** Sinks that can be made not to answer; each may own a folder, which has one owner. */
class Hanging extends Set<string> {
  waiting = 0;
  #release = new Map<string, PromiseWithResolvers<void>>();

  async wait(name: string): Promise<void> {
    if (!this.has(name)) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#release.set(name, { promise, resolve, reject });
    this.waiting += 1;
    await promise;
  }

  override delete(name: string): boolean {
    this.#release.get(name)?.resolve();
    return super.delete(name);
  }

  override clear(): void {
    for (const name of this) this.delete(name);
  }
}

/** A dispatcher, and plans with these sinks, on a disk that can be in trouble. */
function several(names: readonly string[]) {
  const journal = new ArrayJournal();
  const clock = new ManualClock();
  const all = names.map((sink) => ({ sink, destination: null }));
  const dispatcher = makeDispatcher({ journal, clock, targetsOf: () => all });
  const sinks = new LiveSinks(dispatcher, { log: silentLog, clock });
  const hanging = new Hanging();
  const disk = { inTrouble: false };
  const opened: string[] = [];
  const delivered = new Map<string, string[]>(names.map((name) => [name, []]));
  const owners = new Map<string, string>();
  const sinkOf = (name: string, fingerprint: string, folder = name): Sink => ({
    limits: LIMITS,
    open: () => {
      if (disk.inTrouble)
        return Promise.reject(new MillraceError('folder_unwritable', 'the disk is in trouble'));
      if (owners.has(folder)) return Promise.reject(new MillraceError('folder_in_use', folder));
      owners.set(folder, name);
      opened.push(`${name} ${fingerprint}`);
      return Promise.resolve();
    },
    async send(batch) {
      await hanging.wait(name);
      delivered.get(name)?.push(...batch.map(({ event }) => event.id));
      return batch.map(() => DELIVERED);
    },
    close: () => {
      if (owners.get(folder) === name) owners.delete(folder);
      return Promise.resolve();
    },
  });
  const plan = (fingerprint: string, folders: Readonly<Record<string, string>> = {}): PlannedSinks => ({
    sinks: new Map(
      names.map((name) => [name, planned(() => sinkOf(name, fingerprint, folders[name]), { fingerprint })]),
    ),
  });
  const got = (name: string): readonly string[] => delivered.get(name) ?? [];
  return { journal, clock, dispatcher, sinks, hanging, disk, opened, got, plan };
}
