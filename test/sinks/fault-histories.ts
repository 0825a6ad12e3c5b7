import fc from 'fast-check';
import type { Clock } from '../../src/core/clock.ts';
import type { Sink } from '../../src/core/sink.ts';
import type { Dispatcher } from '../../src/deliver/dispatcher.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { makeDispatcher } from '../deliver/running.ts';
import { ArrayJournal, ManualClock } from '../deliver/support.ts';
import { until } from '../support/until.ts';

/** Where a sink delivers to, and what goes wrong there. */
export interface Place<Fault> {
  /** A sink for it, not opened. */
  makeSink(clock: Clock): Sink;
  inject(fault: Fault): { lift(): void };
  /** From now on whatever holds this event is refused, before any other fault strikes. */
  poison(id: string, code: Code): void;
  /** Cuts every connection. */
  cut(): void;
  stop(): Promise<void>;
  restart(): Promise<void>;
  /** All that it has taken, in order of arrival. */
  arrived(): readonly { readonly id: string; readonly body: Buffer }[];
}

export interface Subject<Fault> {
  readonly open: () => Promise<Place<Fault>>;
  readonly fault: fc.Arbitrary<Fault>;
  /** Bytes of a body that is small enough in any case, and of one that is too large in any case. */
  readonly sizes: { readonly small: number; readonly tooLarge: number };
  /** Whether the events of one user arrive in order. */
  readonly inOrder: boolean;
}

/** Why an event can become a dead letter. */
type Code = 'too_large' | 'rejected';

interface Event {
  readonly user: number;
  readonly bytes: number;
  readonly poison: Code | null;
}

type Step<Fault> =
  | { readonly do: 'put'; readonly events: readonly Event[] }
  | { readonly do: 'fault'; readonly fault: Fault }
  | { readonly do: 'cut' | 'away' }
  /** Our own end, with so many milliseconds for what is in flight, and the next start. */
  | { readonly do: 'restart'; readonly ms: number }
  /** Until so many more are settled, or as many as there are. */
  | { readonly do: 'wait'; readonly more: number };

interface Given extends Event {
  readonly id: string;
  readonly body: Buffer;
}

const SINK = 'a';
const USERS = 4;

/** Histories for `wrongIn`. */
export function histories<Fault>(subject: Subject<Fault>): fc.Arbitrary<Step<Fault>[]> {
  return fc.array(stepOf(subject), { minLength: 4, maxLength: 20, size: 'max' });
}

/**
 * Follows a history with a sink behind the real dispatcher. What the cursor has passed has always arrived or is a dead letter,
 * and in the end all has arrived, whole and in the order of its user, but for what could never be taken, which is dead.
 * @returns what is not so, in words
 */
export async function wrongIn<Fault>(
  subject: Subject<Fault>,
  steps: readonly Step<Fault>[],
): Promise<string[]> {
  const world = new World(await subject.open(), subject);
  try {
    await world.follow(steps);
    return world.wrong();
  } finally {
    await world.end();
  }
}

/** One of these words. */
function named<Name extends string>(...names: Name[]): fc.Arbitrary<Name> {
  return fc.constantFrom(...names);
}

function stepOf<Fault>({ fault, sizes }: Subject<Fault>): fc.Arbitrary<Step<Fault>> {
  const event: fc.Arbitrary<Event> = fc.record({
    user: fc.nat({ max: USERS - 1 }),
    bytes: fc.oneof(
      { weight: 12, arbitrary: fc.integer({ min: 60, max: sizes.small }) },
      { weight: 1, arbitrary: fc.constantFrom(sizes.tooLarge, 2 * sizes.tooLarge) },
    ),
    poison: fc.oneof(
      { weight: 12, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.constantFrom<Code>('too_large', 'rejected') },
    ),
  });
  const events = fc.array(event, { minLength: 1, maxLength: 25 });
  return fc.oneof(
    { weight: 5, arbitrary: fc.record({ do: named('put'), events }) },
    { weight: 5, arbitrary: fc.record({ do: named('fault'), fault }) },
    { weight: 1, arbitrary: fc.record({ do: named('cut', 'away') }) },
    { weight: 1, arbitrary: fc.record({ do: named('restart'), ms: fc.constantFrom(0, 1, 30) }) },
    { weight: 2, arbitrary: fc.record({ do: named('wait'), more: fc.integer({ min: 1, max: 20 }) }) },
  );
}

class World<Fault> {
  readonly #place: Place<Fault>;
  readonly #subject: Subject<Fault>;
  readonly #journal = new ArrayJournal();
  readonly #clock = new ManualClock();
  readonly #given: Given[] = [];
  readonly #lifts: (() => void)[] = [];
  #dispatcher: Dispatcher | null = null;

  constructor(place: Place<Fault>, subject: Subject<Fault>) {
    this.#place = place;
    this.#subject = subject;
  }

  async follow(steps: readonly Step<Fault>[]): Promise<void> {
    await this.#start();
    for (const step of steps) {
      await this.#take(step);
      this.#holdOn();
    }
    for (const lift of this.#lifts) lift();
    await this.#settled(this.#given.length);
  }

  wrong(): string[] {
    const arrived = this.#place.arrived();
    const first = [...new Set(arrived.map(({ id }) => id))];
    const dead = this.#dead();
    const wrong: string[] = [];
    const events = new Map(this.#given.map((event) => [event.id, event]));
    for (const { id, body } of arrived)
      if (events.get(id)?.body.equals(body) !== true) wrong.push(`${id} has other bytes`);
    for (const event of this.#given) {
      const code = this.#codeOf(event);
      const became = [dead.get(event.id), first.includes(event.id) ? 'taken' : undefined].filter(Boolean);
      if (String(became) !== (code ?? 'taken')) wrong.push(`${event.id} is ${String(became)}, not ${code}`);
    }
    if (!this.#subject.inOrder) return wrong;
    for (let user = 0; user < USERS; user += 1) {
      const own = first.filter((id) => events.get(id)?.user === user);
      if (String(own) !== String(own.toSorted())) wrong.push(`the order of ${user} is ${String(own)}`);
    }
    return wrong;
  }

  async end(): Promise<void> {
    await this.#dispatcher?.stop(AbortSignal.abort());
    await this.#place.stop();
  }

  async #take(step: Step<Fault>): Promise<void> {
    const place = this.#place;
    if (step.do === 'put') this.#put(step.events);
    else if (step.do === 'fault') this.#lifts.push(place.inject(step.fault).lift);
    else if (step.do === 'cut') place.cut();
    else if (step.do === 'wait') await this.#settled(Math.min(this.#given.length, this.#cursor + step.more));
    else if (step.do === 'restart') {
      await this.#dispatcher?.stop(step.ms === 0 ? AbortSignal.abort() : AbortSignal.timeout(step.ms));
      await this.#start();
    } else {
      await place.stop();
      await place.restart();
    }
  }

  async #start(): Promise<void> {
    this.#dispatcher = makeDispatcher({ journal: this.#journal, clock: this.#clock, maxPending: 100 });
    await this.#dispatcher.add(SINK, this.#place.makeSink(this.#clock));
    this.#dispatcher.begin();
  }

  #put(events: readonly Event[]): void {
    for (const event of events) {
      // All of one length, so that none is found in another.
      const id = `msg_${100_000 + this.#given.length}`;
      const body = Buffer.alloc(event.bytes, `${id} `);
      if (event.poison !== null) this.#place.poison(id, event.poison);
      this.#given.push({ ...event, id, body });
      this.#journal.put(contractEvent(0, { id, user: `user-${event.user}`, body }));
    }
  }

  get #cursor(): number {
    return this.#journal.cursors.get(SINK) ?? 0;
  }

  #settled(count: number): Promise<unknown> {
    return until(`${count} events settled`, () => {
      this.#clock.next();
      this.#holdOn();
      return this.#cursor >= count;
    });
  }

  /** @throws when an event is nowhere that the cursor has passed */
  #holdOn(): void {
    const placed = new Set([...this.#place.arrived().map(({ id }) => id), ...this.#dead().keys()]);
    const lost = this.#given.slice(0, this.#cursor).filter(({ id }) => !placed.has(id));
    if (lost.length > 0) throw new Error(`lost: ${lost.map(({ id }) => id).join(' ')}`);
  }

  /** Codes by id. */
  #dead(): Map<string, string> {
    return new Map(this.#journal.deadLetters.map(({ event, code }) => [event.id, code]));
  }

  #codeOf({ bytes, poison }: Event): Code | null {
    return bytes >= this.#subject.sizes.tooLarge ? 'too_large' : poison;
  }
}
