import fc from 'fast-check';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { parseOptions } from '../../src/sinks/http/config.ts';
import { HttpSink } from '../../src/sinks/http/sink.ts';
import { runCount } from '../support/run-count.ts';
import { histories, named, wrongIn, type Place } from './fault-histories.ts';
import { Endpoint, SECRET, type Reply } from './http-support.ts';
import { makeContext } from './support.ts';

/** Bytes of the largest body. */
const LARGEST = 4096;

/** What becomes of a request; `stored`: it is taken all the same. */
type Fault = { readonly times: number } & (
  | { readonly kind: 'status'; readonly status: number; readonly retryAfter: string | null }
  | { readonly kind: 'hang' | 'drop'; readonly stored: boolean }
  /** The status is sent, and then the connection is cut. */
  | { readonly kind: 'torn' }
  | { readonly kind: 'late'; readonly ms: number }
);

/** All that say nothing about the event. */
const STATUSES = [302, 401, 403, 404, 408, 429, 500, 502, 503, 504];
const times = fc.integer({ min: 1, max: 6 });
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({
    kind: named('status'),
    status: fc.constantFrom(...STATUSES),
    retryAfter: fc.constantFrom(null, '0', '1', '60', 'soon'),
    times,
  }),
  fc.record({ kind: named('hang', 'drop'), stored: fc.boolean(), times }),
  fc.record({ kind: named('torn'), times }),
  fc.record({ kind: named('late'), ms: fc.constantFrom(1, 50, 400), times }),
);

async function open(): Promise<Place<Fault>> {
  const endpoint = await new Endpoint().start();
  const arrived: { id: string; body: Buffer }[] = [];
  const poisoned = new Map<string, number>();
  let faults: { readonly fault: Fault; left: number }[] = [];
  endpoint.reply = (_path, body, headers): Reply => {
    const id = String(headers['idempotency-key']);
    const refused = poisoned.get(id);
    if (refused !== undefined) return refused;
    const entry = faults.find(({ left }) => left > 0);
    if (entry !== undefined) entry.left -= 1;
    const store = (): void => void arrived.push({ id, body });
    return answerOf(entry?.fault ?? null, store);
  };
  const url = endpoint.url('/');
  const options = { url, secrets: [SECRET], privateNetworks: ['127.0.0.1'], timeout: '300ms' };
  const parsed = parseOptions({ ...options, maxEventBytes: LARGEST });
  const again = async (): Promise<void> => void (await endpoint.start());
  return {
    makeSink: (clock) => new HttpSink(parsed, { ...makeContext(), clock }),
    inject: (what) => {
      const entry = { fault: what, left: what.times };
      faults.push(entry);
      return { lift: () => (faults = faults.filter((each) => each !== entry)) };
    },
    poison: (id, code) => poisoned.set(id, code === 'too_large' ? 413 : 422),
    cut: () => endpoint.cut(),
    stop: () => endpoint.stop(),
    restart: again,
    arrived: () => arrived,
  };
}

function answerOf(what: Fault | null, store: () => void): Reply {
  if (what?.kind === 'status')
    return [what.status, what.retryAfter === null ? {} : { 'retry-after': what.retryAfter }];
  if (what?.kind === 'hang' || what?.kind === 'drop') {
    if (what.stored) store();
    return what.kind === 'hang' ? 'hang' : (response) => response.destroy();
  }
  store();
  if (what?.kind === 'torn') return tear;
  if (what?.kind === 'late')
    return (response) => void setTimeout(() => response.writeHead(204).end(), what.ms).unref();
  return 204;
}

function tear(response: ServerResponse): void {
  response.writeHead(200, { 'content-length': 10 }).write('half', () => response.destroy());
}

test('each event arrives in the order of its user or is a dead letter, whatever the target does', async () => {
  const sizes = { fits: LARGEST, tooLarge: LARGEST + 1 };
  const subject = { open, fault, sizes, inOrder: true };
  const property = fc.asyncProperty(histories(subject), async (steps) => {
    expect(await wrongIn(subject, steps)).toEqual([]);
  });
  await fc.assert(property, { numRuns: runCount({ quick: 20, long: 100 }) });
});
