/** A message as it was published. */
export interface PeerMessage {
  readonly messageId: string;
  readonly data: Buffer;
  readonly attributes: Readonly<Record<string, string>>;
  /** Empty without ordering. */
  readonly orderingKey: string;
  /** Milliseconds since the epoch. */
  readonly publishedAt: number;
}

export interface Topic {
  readonly messages: PeerMessage[];
  readonly subscriptions: Set<Subscription>;
}

interface Outgoing {
  readonly ackId: string;
  readonly message: PeerMessage;
  /** Who holds it; null while it waits. */
  holder: object | null;
  deliveries: number;
}

/**
 * What one subscription has not had acknowledged, in order of arrival: waiting → held by a reader → acknowledged (gone),
 * or back to waiting. No time passes here: a deadline lapses when the reader's connection ends.
 */
export class Subscription {
  readonly topic: string;
  readonly ordered: boolean;
  readonly readers = new Set<() => void>();
  /** Acknowledged messages, in the order of the acknowledgements. */
  readonly acknowledged: PeerMessage[] = [];
  #outgoing: Outgoing[] = [];
  #acks = 0;

  constructor(topic: string, ordered: boolean) {
    this.topic = topic;
    this.ordered = ordered;
  }

  get unacknowledged(): number {
    return this.#outgoing.length;
  }

  add(message: PeerMessage): void {
    this.#acks += 1;
    this.#outgoing.push({ ackId: `ack-${this.#acks}`, message, holder: null, deliveries: 0 });
    this.#wake();
  }

  /** Hands up to `count` waiting messages to a holder. */
  take(count: number, holder: object): readonly Outgoing[] {
    const taken = this.#outgoing.filter((each) => each.holder === null).slice(0, count);
    for (const each of taken) {
      each.holder = holder;
      each.deliveries += 1;
    }
    return taken;
  }

  /** Messages a holder has and has not acknowledged. */
  heldBy(holder: object): number {
    return this.#outgoing.filter((each) => each.holder === holder).length;
  }

  acknowledge(ackIds: readonly string[]): void {
    const done = new Set(ackIds);
    for (const { ackId, message } of this.#outgoing) if (done.has(ackId)) this.acknowledged.push(message);
    this.#outgoing = this.#outgoing.filter(({ ackId }) => !done.has(ackId));
    this.#wake();
  }

  /** Makes messages wait again; where order is kept, whatever follows them under their key too. */
  giveBack(ackIds: readonly string[]): void {
    const refused = new Set(ackIds);
    const keys = new Set<string>();
    for (const each of this.#outgoing) {
      const { orderingKey } = each.message;
      if (refused.has(each.ackId)) {
        each.holder = null;
        if (this.ordered && orderingKey !== '') keys.add(orderingKey);
      } else if (keys.has(orderingKey)) each.holder = null;
    }
    this.#wake();
  }

  release(holder: object): void {
    for (const each of this.#outgoing) if (each.holder === holder) each.holder = null;
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.readers) wake();
  }
}
