import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { DELIVERED, type SendResult } from '../../src/core/sink.ts';
import type { DeliveryPlan } from '../../src/deliver/plan-runner.ts';
import { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { roomyJournal } from '../support/inline-journal.ts';
import { until } from '../support/until.ts';
import { delivering, planned } from './running.ts';
import { ScriptedSink } from './support.ts';

const DOWN: SendResult = { status: 'retry', reason: 'made up: down', sink: true };

test('a sink that is given up while a reload waits for another one is given up at the next reload', async () => {
  const journal = await SqliteJournal.open(roomyJournal(await temporaryFolder(), systemClock));
  onTestFinished(() => journal.close());
  const sinks = new Map(
    (['slow', 'down', 'kept'] as const).map((name) => [
      name,
      new ScriptedSink(() => (name === 'down' ? DOWN : DELIVERED)),
    ]),
  );
  const hanging = Promise.withResolvers<SendResult[]>();
  sinks.get('slow')!.send = () => hanging.promise;
  const planOf = (...names: ('slow' | 'down' | 'kept')[]): DeliveryPlan => ({
    config: { routes: [{ match: ['*'], to: names.map((sink) => ({ sink, destination: null })) }] },
    sinks: new Map(names.map((name) => [name, planned(() => sinks.get(name)!, { fingerprint: name })])),
  });
  const { delivery, plan } = delivering(journal, systemClock, planOf('slow', 'down', 'kept'));
  onTestFinished(() => delivery.stop(AbortSignal.abort()));
  await delivery.start();
  await journal.accept(makeEvent());
  const isDown = (): boolean =>
    delivery.dispatcher.status().some(({ sink, lastError }) => sink === 'down' && lastError !== null);
  await until('the sink to be down', isDown);

  const signal = new AbortController().signal;
  const deadline = new AbortController();
  await delivery.prepare(planOf('down', 'kept'), signal);
  await plan.replace(planOf('down', 'kept'));
  const parting = delivery.part(deadline.signal);
  expect(await delivery.giveUp('down')).toEqual({ sink: 'down', dropped: 0, waiting: 1 });
  deadline.abort();
  await parting;

  await delivery.prepare(planOf('kept'), signal);
  await plan.replace(planOf('kept'));
  const last = new AbortController();
  const removing = delivery.part(last.signal);
  await until('its dead letter', async () => (await journal.listDeadLetters({})).length === 1);
  last.abort();
  await removing;
  expect(await journal.listDeadLetters({})).toMatchObject([{ sink: 'down', code: 'sink_dropped' }]);
  hanging.resolve([DELIVERED]);
});
