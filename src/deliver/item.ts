import { messageOf } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import type { Redaction, Target } from '../core/route.ts';
import type { Delivery } from '../core/sink.ts';
import { getOrMake } from '../lib/get-or-make.ts';
import { JsonCutter } from '../lib/json-cut.ts';
import { parsePath } from '../lib/json-paths.ts';

/** A target inside one sink. */
export type ItemTarget = Pick<Target, 'destination' | 'redactions'>;

/** One delivery in memory: waiting, in flight, or waiting for a retry. */
export class Item implements Delivery {
  readonly destination: string | null;
  readonly redactions: readonly Redaction[];
  readonly seq: number;
  /** Size of the body as it came. */
  readonly bytes: number;
  attempts = 0;
  /** Monotonic milliseconds; null before the first try. */
  firstTry: number | null = null;
  /** It was tried, and has to be sent again. */
  isRetried = false;
  /** As it came. Private: the sink is given this item, and must not find what was cut out. */
  readonly #original: JournalEvent;
  #redacted: JournalEvent | null;
  #refusal: string | null = null;
  readonly #isOrdered: boolean;
  #key: string | null = null;

  constructor(event: JournalEvent, { destination, redactions }: ItemTarget, isOrdered: boolean) {
    this.destination = destination;
    this.redactions = redactions ?? NO_REDACTIONS;
    this.seq = event.seq;
    this.bytes = event.body.length;
    this.#original = event;
    this.#redacted = this.redactions.length === 0 ? event : null;
    this.#isOrdered = isOrdered && event.user !== null;
  }

  static originalOf(item: Item): JournalEvent {
    return item.#original;
  }

  /** The event after its redactions, which are applied when it is first asked for: shortly before it is sent. */
  get event(): JournalEvent {
    return this.#redacted ?? this.#redact();
  }

  /** Why it cannot be redacted, and so must not be sent; null when it may. */
  get refusal(): string | null {
    if (this.#redacted === null) this.#redact();
    return this.#refusal;
  }

  /** Items with the same key stay in order: those of one user and destination. Null where no order is kept. */
  get key(): string | null {
    // Built only where it is asked for.
    if (this.#isOrdered) this.#key ??= `${this.destination ?? ''}\n${this.#original.user}`;
    return this.#key;
  }

  #redact(): JournalEvent {
    let event = this.#original;
    try {
      for (const redaction of this.redactions)
        event = getOrMake(REDACTORS, redaction, () => redactorOf(redaction))(event);
      this.#redacted = event;
    } catch (error) {
      this.#refusal = `the body cannot be redacted: ${messageOf(error)}`;
      this.#redacted = { ...this.#original, headers: {}, clientUser: null, body: Buffer.alloc(0) };
    }
    return this.#redacted;
  }
}

const NO_REDACTIONS: readonly Redaction[] = [];

/**
 * Returns the same object when nothing is redacted.
 * @throws JsonFault for a body that is no JSON object
 */
type Redactor = (event: JournalEvent) => JournalEvent;

function redactorOf({ only, redact = [], remove = [], mask = null, fields }: Redaction): Redactor {
  const { type, team, user, clientUser: clientField } = fields;
  const needed = [type, team, user, clientField].map((name) => [{ name }]);
  const lists = {
    only: only === undefined ? null : [...needed, ...only.map(parsePath)],
    mask: redact.map(parsePath),
    remove: remove.map(parsePath),
  };
  const cutter = new JsonCutter(lists, JSON.stringify(mask));
  const hidesClientUser = cutter.hides(clientField);
  return (event) => {
    const body = cutter.apply(event.body);
    // Sinks pass it on beside the body.
    const clientUser = hidesClientUser ? null : event.clientUser;
    if (body === event.body && clientUser === event.clientUser) return event;
    if (body === event.body) return { ...event, clientUser };
    // The signature is not of the bytes that are sent.
    const handling = { ...event.handling, redacted: true };
    return { ...event, body, clientUser, headers: {}, handling };
  };
}

/** A redaction is the same object for as long as its route is in force. */
const REDACTORS = new WeakMap<Redaction, Redactor>();
