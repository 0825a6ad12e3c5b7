import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseOptions } from '../../src/sinks/event-hubs/config.ts';
import { EventHubsSink } from '../../src/sinks/event-hubs/sink.ts';
import type { Fault } from '../support/amqp-peer/faults.ts';
import { startAmqpPeer } from '../support/amqp-peer/peer.ts';
import { runCount } from '../support/run-count.ts';
import { bodyOf } from './event-hubs-support.ts';
import { histories, named, wrongIn, type Place } from './fault-histories.ts';
import { makeContext } from './support.ts';

/** Bytes of the largest message that the hub takes, and what stands around a body at most. */
const [LARGEST, AROUND] = [3000, 600];

const times = fc.integer({ min: 1, max: 3 });
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ kind: named('server-busy', 'release', 'modify'), times }),
  fc.record({ kind: named('drop', 'hang', 'detach'), stored: fc.boolean(), times }),
  fc.record({ kind: named('latency'), ms: fc.constantFrom(1, 20, 400), times }),
  fc.record({ kind: named('unauthorized'), times }),
);

async function open(): Promise<Place<Fault>> {
  const peer = await startAmqpPeer({ hubs: ['events'], maxMessageBytes: LARGEST });
  const { connectionString } = peer;
  const options = { compression: 'never', timeout: '300ms', maxEventBytes: '4KiB', batch: { count: 20 } };
  const parsed = parseOptions({ connectionString, hub: 'events', ...options });
  return {
    makeSink: (clock) => new EventHubsSink(parsed, { ...makeContext(), clock }),
    inject: (what) => peer.inject(what),
    poison: (id, code) => {
      const condition = 'com.microsoft:argument-error';
      const how = code === 'rejected' ? { kind: 'reject', condition } : { kind: 'size-exceeded' };
      peer.injectFirst({ ...(how as Fault), containing: id });
    },
    cut: () => peer.cut(),
    stop: () => peer.stop(),
    restart: () => peer.restart(),
    arrived: () =>
      peer.messages('events').map((message) => ({
        id: message.properties['idempotency-key'] ?? '',
        body: bodyOf(message),
      })),
  };
}

test('each event arrives in the order of its user or is a dead letter, whatever the hub does', async () => {
  const sizes = { fits: LARGEST - AROUND, tooLarge: LARGEST };
  const subject = { open, fault, sizes, inOrder: true };
  const property = fc.asyncProperty(histories(subject), async (steps) => {
    expect(await wrongIn(subject, steps)).toEqual([]);
  });
  await fc.assert(property, { numRuns: runCount({ quick: 5, long: 25 }) });
});
