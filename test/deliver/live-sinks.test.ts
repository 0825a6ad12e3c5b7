import { expect, test } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import type { Target } from '../../src/core/route.ts';
import { DELIVERED, type Sink, type SinkModule } from '../../src/core/sink.ts';
import { Dispatcher } from '../../src/deliver/dispatcher.ts';
import { LiveSinks, type PlannedSink, type PlannedSinks } from '../../src/deliver/live-sinks.ts';
import { makeEvent } from '../support/events.ts';
import { ArrayJournal, LIMITS, ManualClock, silentLog, until } from './support.ts';

const targetsOf = (): Target[] => [{ sink: 'a', destination: null }];

test('a reload that fails while the disk is in trouble brings the old sink back, when the disk lets it', async () => {
  const { journal, clock, dispatcher, sinks, disk, delivered, plan } = setting();
  await sinks.open(plan('before'));
  dispatcher.begin();

  disk.inTrouble = true;
  const signal = new AbortController().signal;
  const changing = sinks.change(plan('after'), signal, new Map(), () => Promise.resolve());
  await expect(changing).rejects.toThrow('Folder cannot be written');
  journal.put(makeEvent({ id: 'later' }));
  disk.inTrouble = false;
  await until(clock, () => delivered.includes('later'));
  await dispatcher.stop(AbortSignal.timeout(1000));
});

test('a sink that is not required is waited for in the background, whatever is in the way', async () => {
  const { journal, clock, dispatcher, sinks, disk, delivered, plan } = setting();
  disk.inTrouble = true;
  await expect(sinks.open(plan('a'))).rejects.toThrow('Folder cannot be written');
  await new LiveSinks(dispatcher, { log: silentLog, clock }, (name) => name === 'a').open(plan('a'));
  dispatcher.begin();
  journal.put(makeEvent({ id: 'made-up' }));
  disk.inTrouble = false;
  await until(clock, () => delivered.includes('made-up'));
  await dispatcher.stop(AbortSignal.timeout(1000));
});

/** A dispatcher, and plans with one sink on a disk that can be in trouble. */
function setting() {
  const journal = new ArrayJournal();
  const clock = new ManualClock();
  const retry = { initial: 10, max: 100, giveUpAfter: 0 };
  const limits = { maxPending: 10, maxPendingBytes: 1e6 };
  const dispatcher = new Dispatcher({ journal, clock, log: silentLog, retry, ...limits, targetsOf });
  const sinks = new LiveSinks(dispatcher, { log: silentLog, clock });
  const disk = { inTrouble: false };
  const delivered: string[] = [];
  const plan = (fingerprint: string): PlannedSinks => {
    const module: SinkModule = { parseOptions: (value) => value, createSink: () => sinkOn(disk, delivered) };
    const sink: PlannedSink = {
      module,
      options: {},
      keeper: null,
      continues: null,
      fingerprint,
      redacting: null,
    };
    return { sinks: new Map([['a', sink]]) };
  };
  return { journal, clock, dispatcher, sinks, disk, delivered, plan };
}

function sinkOn(disk: { readonly inTrouble: boolean }, delivered: string[]): Sink {
  return {
    limits: LIMITS,
    open: () =>
      disk.inTrouble
        ? Promise.reject(new MillraceError('folder_unwritable', 'the disk is in trouble'))
        : Promise.resolve(),
    send(batch) {
      delivered.push(...batch.map(({ event }) => event.id));
      return Promise.resolve(batch.map(() => DELIVERED));
    },
    close: () => Promise.resolve(),
  };
}
