import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { awkwardBodies, contractEvent } from '../../src/sinks/contract-events.ts';
import { PubSubAdmin } from '../support/pubsub-admin.ts';
import { describeOnEmulator } from '../support/pubsub-emulator.ts';
import { makeTopicSink, unpacked } from './broker-support.ts';
import { runContract } from './run-contract.ts';
import { signal } from './support.ts';

describeOnEmulator('pubsub sink on the emulator', async (emulator) => {
  const admin = new PubSubAdmin(emulator.endpoint);
  afterAll(() => admin.close());

  const CASES = [
    { ordering: false, compression: 'auto' },
    { ordering: true, compression: 'always' },
  ] as const;

  describe.each(CASES)('%j: the sink contract', async (options) => {
    await runContract(async () => {
      const [topic, other] = [`events-${randomUUID()}`, `other-${randomUUID()}`];
      for (const name of [topic, other]) await admin.create(name, options.ordering);
      const { sink } = makeTopicSink(emulator.endpoint, { topic, ...options });
      return {
        sink,
        destinations: [other],
        arrived: async () => {
          const places = [topic, other].map(async (name) =>
            (await admin.drain(name)).map((message) => ({
              id: message.attributes['idempotency-key'] ?? '',
              destination: name === topic ? null : name,
              body: unpacked(message.data, message.attributes['blob-codec']),
            })),
          );
          return (await Promise.all(places)).flat();
        },
        outage: { begin: () => emulator.pause(), end: async () => emulator.resume() },
        dispose: async () => {
          emulator.resume();
          await sink.close(signal);
        },
      };
    });
  });

  describe('an independent subscriber', () => {
    it.each(CASES)('gets the very bytes, and each key in order (%j)', async (options) => {
      const topic = `events-${randomUUID()}`;
      await admin.create(topic, options.ordering);
      const { sink } = makeTopicSink(emulator.endpoint, { topic, ...options });
      onTestFinished(() => sink.close(signal));
      await sink.open(signal);
      const bodies = awkwardBodies();
      const events = Array.from({ length: 700 }, (_, i) => {
        const body = bodies[i];
        return contractEvent(i, { user: `user-${i % 20}`, ...(body === undefined ? {} : { body }) });
      });
      for (let at = 0; at < events.length; at += 100) {
        const batch = events.slice(at, at + 100).map((event) => ({ event, destination: null }));
        for (const result of await sink.send(batch, signal)) expect(result).toEqual({ status: 'delivered' });
      }
      const received = await admin.receive(topic, events.length);
      const byId = new Map(received.map((message) => [message.attributes['idempotency-key'], message]));
      for (const event of events) {
        const message = byId.get(event.id);
        expect(message && unpacked(message.data, message.attributes['blob-codec'])).toEqual(event.body);
      }
      if (!options.ordering) return;
      for (let user = 0; user < 20; user += 1) {
        const key = `user-${user}`;
        const ids = received
          .filter(({ orderingKey }) => orderingKey === key)
          .map(({ attributes }) => attributes['idempotency-key']);
        expect(ids).toEqual(events.filter((event) => event.user === key).map(({ id }) => id));
      }
    });
  });
});
