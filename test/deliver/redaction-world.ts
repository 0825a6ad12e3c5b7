import { DELIVERED, type Delivery as Given, type SendResult, type Sink } from '../../src/core/sink.ts';
import { LIMITS } from './support.ts';

export const TYPES = ['a.', 'b.'] as const;
export const SINKS = ['one', 'two'] as const;
export const SECRETS = ['x', 'y'] as const;
export type Type = (typeof TYPES)[number];
export type Name = (typeof SINKS)[number];

/** By type and sink, the values that do not leave; null where no route leads there. */
export type Routing = Readonly<Record<Type, Readonly<Record<Name, readonly string[] | null>>>>;
export type Mode = 'takes' | 'holds' | 'down' | 'refuses';
/** Plain lists of what was configured, posted and sent: what the rule is held against. */
export class World {
  readonly routings: Routing[] = [];
  /** The first of the routings that may be in force for a sink: while a reload runs the one before it may, too. */
  readonly first: Record<Name, number> = { one: 0, two: 0 };
  /** The same for what was retried: the feed that drains may have read it already, and sends it before the new plan decides. */
  readonly firstForRetried: Record<Name, number> = { one: 0, two: 0 };
  readonly posted = new Map<string, { readonly type: Type; readonly under: number }>();
  readonly #modes: Record<Name, Mode> = { one: 'takes', two: 'takes' };
  #turned = Promise.withResolvers<void>();
  readonly had: Record<Name, Set<string>> = { one: new Set(), two: new Set() };
  /** Values that an event had to go without when it was refused. */
  readonly refused = new Map<string, Set<string>>();
  readonly wrong: string[] = [];

  modeOf(sink: Name): Mode {
    return this.#modes[sink];
  }

  turn(sink: Name, mode: Mode): void {
    this.#modes[sink] = mode;
    this.#turned.resolve();
    this.#turned = Promise.withResolvers();
  }

  look(sink: Name, { event: { id, body, handling } }: Given): void {
    const { type, under } = this.posted.get(id)!;
    const hidden = SECRETS.filter((name) => !body.includes(`${name}-${id}`));
    const isRetried = handling.only !== undefined;
    const first = (isRetried ? this.firstForRetried : this.first)[sink];
    const allowed = this.routings.slice(first).map((now, index) => {
      const own = now[type][sink];
      if (own !== null) return own;
      const since = this.routings.slice(isRetried ? 0 : under, first + index + 1);
      const said = since.flatMap((each) =>
        isRetried ? TYPES.map((of) => each[of][sink]) : [each[type][sink]],
      );
      const today = TYPES.map((of) => now[of][sink]);
      const before = [...(this.refused.get(`${sink} ${id}`) ?? [])];
      return [...said, ...today, isRetried ? before : []].flatMap((each) => each ?? []);
    });
    if (!allowed.some((needed) => needed.every((name) => hidden.includes(name as 'x'))))
      this.wrong.push(
        `${sink} was given ${id} without ${hidden.join()} only, and not without ${allowed.join(' or ')}`,
      );
    if (this.modeOf(sink) === 'refuses') {
      const known = this.refused.get(`${sink} ${id}`) ?? new Set();
      this.refused.set(`${sink} ${id}`, new Set([...known, ...hidden]));
    } else this.had[sink].add(id);
  }

  sinkNamed(name: Name): Sink {
    return {
      limits: { ...LIMITS, batchCount: 2, inFlight: 2 },
      open: () => Promise.resolve(),
      send: async (batch) => {
        if (this.modeOf(name) === 'down') throw new Error('down');
        for (const each of batch) this.look(name, each);
        if (this.modeOf(name) === 'refuses') return batch.map(() => REFUSED);
        while (this.modeOf(name) === 'holds') await this.#turned.promise;
        return batch.map(() => DELIVERED);
      },
      close: () => Promise.resolve(),
    };
  }
}

const REFUSED: SendResult = { status: 'refused', code: 'made_up', reason: 'made up' };
