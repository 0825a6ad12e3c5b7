import { status } from '@grpc/grpc-js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Fault } from '../support/pubsub-peer/faults.ts';
import { startPubSubPeer } from '../support/pubsub-peer/peer.ts';
import { runCount } from '../support/run-count.ts';
import { histories, named, wrongIn, type Place } from './fault-histories.ts';
import { bodyOf, makeSink } from './pubsub-support.ts';

/** Bytes of the largest request for one event, and what stands around a body at most. */
const [LARGEST, AROUND] = [4096, 600];

/** All that say nothing about the event. */
const CODES = [
  status.CANCELLED,
  status.UNKNOWN,
  status.DEADLINE_EXCEEDED,
  status.NOT_FOUND,
  status.PERMISSION_DENIED,
  status.RESOURCE_EXHAUSTED,
  status.FAILED_PRECONDITION,
  status.ABORTED,
  status.INTERNAL,
  status.UNAVAILABLE,
  status.UNAUTHENTICATED,
];
const times = fc.integer({ min: 1, max: 3 });
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ kind: named('status'), code: fc.constantFrom(...CODES), times }),
  fc.record({ kind: named('drop', 'hang'), stored: fc.boolean(), times }),
);

async function open(ordering: boolean): Promise<Place<Fault>> {
  const peer = await startPubSubPeer({ topics: ['events'] });
  const options = { compression: 'never', timeout: '300ms', maxEventBytes: LARGEST, ordering };
  return {
    makeSink: () => makeSink(peer.endpoint, options).sink,
    inject: (what) => peer.inject(what),
    poison: (id, code) => {
      const details = code === 'too_large' ? 'request_size is too large' : 'refused';
      peer.injectFirst({
        kind: 'status',
        code: status.INVALID_ARGUMENT,
        details,
        holding: ({ attributes }) => attributes['idempotency-key'] === id,
      });
    },
    cut: () => peer.cut(),
    stop: () => peer.stop(),
    restart: () => peer.restart(),
    arrived: () =>
      peer.messages('events').map((message) => ({
        id: message.attributes['idempotency-key'] ?? '',
        body: bodyOf(message),
      })),
  };
}

const sizes = { fits: LARGEST - AROUND, tooLarge: LARGEST };

test.each([
  ['in the order of its user', true],
  ['in any order', false],
])('each event arrives (%s) or is a dead letter, whatever Pub/Sub does', async (_, inOrder) => {
  const subject = { open: () => open(inOrder), fault, sizes, inOrder };
  const property = fc.asyncProperty(histories(subject), async (steps) => {
    expect(await wrongIn(subject, steps)).toEqual([]);
  });
  await fc.assert(property, { numRuns: runCount({ quick: 5, long: 25 }) });
});
