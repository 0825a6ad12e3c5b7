import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { Dispatcher } from '../../src/deliver/dispatcher.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { ArrayJournal, ManualClock, silentLog } from '../deliver/support.ts';
import type { Fault } from '../support/amqp-peer/faults.ts';
import { runCount } from '../support/run-count.ts';
import { until } from '../support/until.ts';
import { bodyOf, makeSubject } from './event-hubs-support.ts';

vi.setConfig({ testTimeout: 600_000 });

/** Bytes of the largest message that the hub takes. */
const LARGEST = 3000;
/** Bodies above this do not fit, whatever stands around them; those below the other do. */
const [TOO_LARGE, FITS] = [LARGEST, LARGEST - 600];

interface Event {
  readonly user: number;
  readonly bytes: number;
  /** How the hub refuses whatever holds it. */
  readonly poison: 'size-exceeded' | 'reject' | null;
}

type Step =
  | { readonly do: 'put'; readonly events: readonly Event[] }
  | { readonly do: 'fault'; readonly fault: Fault }
  | { readonly do: 'cut' | 'restart' }
  /** Until so many more are settled, or as many as there are. */
  | { readonly do: 'wait'; readonly more: number };

const event: fc.Arbitrary<Event> = fc.record({
  user: fc.nat({ max: 3 }),
  bytes: fc.oneof(
    { weight: 12, arbitrary: fc.integer({ min: 60, max: FITS }) },
    { weight: 1, arbitrary: fc.constantFrom(TOO_LARGE, 2 * TOO_LARGE) },
  ),
  poison: fc.oneof(
    { weight: 12, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.constantFrom('size-exceeded' as const, 'reject' as const) },
  ),
});
const times = fc.integer({ min: 1, max: 3 });
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ kind: fc.constantFrom('server-busy' as const, 'release' as const, 'modify' as const), times }),
  fc.record({
    kind: fc.constantFrom('drop' as const, 'hang' as const, 'detach' as const),
    stored: fc.boolean(),
    times,
  }),
  fc.record({ kind: fc.constant('latency' as const), ms: fc.constantFrom(1, 20, 400), times }),
  fc.record({ kind: fc.constant('unauthorized' as const), times }),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('put' as const),
      events: fc.array(event, { minLength: 1, maxLength: 25 }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('fault' as const), fault }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('cut' as const, 'restart' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), more: fc.integer({ min: 1, max: 20 }) }),
  },
);

async function follow(steps: readonly Step[]): Promise<void> {
  const options = { compression: 'never', timeout: '300ms', maxEventBytes: '4KiB', batch: { count: 20 } };
  const { peer, sink } = await makeSubject(options, { maxMessageBytes: LARGEST });
  const journal = new ArrayJournal();
  const clock = new ManualClock();
  const dispatcher = new Dispatcher({
    journal,
    clock,
    log: silentLog,
    retry: { initial: 100, max: 1000, giveUpAfter: 0 },
    maxPending: 100,
    maxPendingBytes: 2 ** 20,
    targetsOf: () => [{ sink: 'hubs', destination: null }],
  });
  const given: (Event & { readonly id: string; readonly body: Buffer })[] = [];
  const faults: (() => void)[] = [];
  /** What has been taken and what is dead, by what peer and journal themselves have. */
  const arrived = (): string[] =>
    peer.messages('events').map(({ properties }) => properties['idempotency-key'] ?? '');
  const dead = (): string[] => journal.letters.map((letter) => letter.event.id);
  const settled = (): number => journal.cursors.get('hubs') ?? 0;
  const nothingIsLost = (): void => {
    const placed = new Set([...arrived(), ...dead()]);
    const passed = given.slice(0, settled()).map(({ id }) => id);
    expect(passed.filter((id) => !placed.has(id))).toEqual([]);
  };
  const settle = (count: number): Promise<unknown> =>
    until(`${count} events settled`, () => {
      clock.next();
      nothingIsLost();
      return settled() >= count;
    });
  const put = (events: readonly Event[]): void => {
    const first = given.length;
    for (const [index, each] of events.entries()) {
      // All of one length, so that none is found in another.
      const id = `msg_${100_000 + first + index}`;
      const body = Buffer.alloc(each.bytes, `${id} `);
      given.push({ ...each, id, body });
      // Before the other faults: what is refused once is refused always.
      if (each.poison === 'size-exceeded') peer.injectFirst({ kind: each.poison, containing: id });
      if (each.poison === 'reject')
        peer.injectFirst({ kind: 'reject', condition: 'com.microsoft:argument-error', containing: id });
    }
    for (const { id, user, body } of given.slice(first))
      journal.put(contractEvent(0, { id, user: `user-${user}`, body }));
  };
  try {
    await dispatcher.add('hubs', sink);
    dispatcher.begin();
    for (const each of steps) {
      if (each.do === 'put') put(each.events);
      else if (each.do === 'fault') faults.push(peer.inject(each.fault).lift);
      else if (each.do === 'cut') peer.cut();
      else if (each.do === 'wait') await settle(Math.min(given.length, settled() + each.more));
      else {
        await peer.stop();
        await peer.restart();
      }
      nothingIsLost();
    }
    for (const lift of faults) lift();
    await settle(given.length);

    const fit = ({ bytes, poison }: Event): boolean => bytes < TOO_LARGE && poison === null;
    expect(dead().toSorted()).toEqual(given.filter((each) => !fit(each)).map(({ id }) => id));
    for (const {
      event: { id },
      code,
    } of journal.letters) {
      const { bytes, poison } = given.find((each) => each.id === id) ?? {};
      expect(code).toBe(poison === 'reject' && (bytes ?? 0) < TOO_LARGE ? 'rejected' : 'too_large');
    }
    const first = [...new Set(arrived())];
    for (const user of [0, 1, 2, 3]) {
      const own = given.filter((each) => each.user === user && fit(each)).map(({ id }) => id);
      expect(first.filter((id) => given.find((each) => each.id === id)?.user === user)).toEqual(own);
    }
    const bodies = new Map(given.map(({ id, body }) => [id, body]));
    for (const message of peer.messages('events'))
      expect(bodyOf(message)).toEqual(bodies.get(message.properties['idempotency-key'] ?? ''));
  } finally {
    await dispatcher.stop(AbortSignal.abort());
    await peer.stop();
  }
}

it('each event arrives in the order of its user or is a dead letter, whatever the hub does', async () => {
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 20 }), follow), {
    numRuns: runCount(6),
  });
});
