import { MillraceError, messageOf } from '../../core/errors.ts';
import type { Event } from '../../core/event.ts';
import { within } from '../../lib/abort.ts';
import type { KeyRef, SharedKeys } from '../../seal/shared-keys.ts';
import type { Message } from '../../sinks/kafka/message.ts';
import type { Appender } from './appender.ts';
import type { Read } from './cluster.ts';
import { keptOf, recordOf, type Extra, type Kept } from './record.ts';
import { openMessage, outsideOf, sealMessage, type Outside } from './sealed.ts';
import { anew } from './ids.ts';
import { idsOf, outlineOf, type Outline } from './window.ts';

/** A record, as far as it can be opened. */
export interface Looked {
  /** Null for one that nobody here has written. */
  readonly outline: Outline | null;
  /** Null also for one whose key is destroyed. */
  readonly kept: Kept | null;
  /** Of a sealed one, which key opened it. */
  readonly use: KeyRef | null;
  /** Of a sealed one, the name of its key. */
  readonly name: string | null;
}

/** `erased`: its key is destroyed, and nobody can open it. */
export type Appended = 'erased' | void;

/** Where a record goes, and how. */
interface Place {
  readonly appender: Appender;
  /** What says the partition. */
  readonly place: Buffer | number;
  /** What it is kept under. */
  readonly key: Buffer | null;
  /** Bytes that its batch must have left. */
  readonly room?: number | null;
}

/** Asked for at once. */
const AT_ONCE = 32;

/** Writes and reads the records of the topics: with keys, each is sealed with that of its user. */
export class Records {
  readonly keys: SharedKeys | null;

  readonly #timeout: number;

  /** @param timeout milliseconds for what is asked of the keys before an event is written */
  constructor(keys: SharedKeys | null, timeout: number) {
    this.keys = keys;
    this.#timeout = timeout;
  }

  /**
   * @param use the key that it was sealed with before: what was destroyed meanwhile is not sealed anew
   * @returns `erased` when its key is destroyed by now
   */
  append(to: Place, event: Event, extra: Extra, use: KeyRef | null = null): Promise<Appended> {
    if (this.keys === null) return write(to, recordOf(event, to.key, extra));
    return this.#appendSealed(to, event, extra, use);
  }

  async #appendSealed(to: Place, event: Event, extra: Extra, use: KeyRef | null): Promise<Appended> {
    const message = recordOf(event, to.key, extra);
    const own = await this.#asking((keys) =>
      use === null ? keys.keyOf(event) : keys.find(use.name, use.id),
    );
    if (own === 'destroyed') return 'erased';
    const ids = idsOf({ event, ...extra }).map(({ print, second }) => {
      return [(own.isLater ? anew(print, own.id) : print).toString('base64'), second] as const;
    });
    const about = { at: event.receivedAt, ids, again: typeof extra.again === 'string' };
    await write(to, sealMessage(message, own, about));
    // Whoever cannot open it has not got it.
    return (await this.#asking((keys) => keys.isGone(own))) ? 'erased' : undefined;
  }

  /** Whether what its user sent before can be opened by nobody any more: what comes again is none of it. */
  async isAnew(event: Event): Promise<boolean> {
    return this.keys !== null && (await this.#asking((keys) => keys.keyOf(event))).isLater;
  }

  /** In order. @throws MillraceError keys_unusable when one of them can be opened by nobody who has only these keys */
  async open(records: readonly Read[]): Promise<readonly Looked[]> {
    const { looked, failure } = await this.openUpTo(records);
    if (failure !== null) throw failure;
    return looked;
  }

  /** Those before the first that cannot be opened, and why it cannot. */
  async openUpTo(
    records: readonly Read[],
  ): Promise<{ readonly looked: readonly Looked[]; readonly failure: Error | null }> {
    const found: Looked[] = [];
    for (let from = 0; from < records.length; from += AT_ONCE) {
      const some = records.slice(from, from + AT_ONCE).map((record) => {
        const outside = outsideOf(record);
        return { record, outside: outside === 'damaged' ? null : outside };
      });
      const sealed = await Promise.allSettled(
        some.map(async ({ record, outside }) =>
          outside === null ? plain(record) : this.#unseal(record, outside),
        ),
      );
      for (const one of sealed) {
        if (one.status === 'rejected') return { looked: found, failure: one.reason as Error };
        found.push(one.value);
      }
    }
    return { looked: found, failure: null };
  }

  /** Whether what a key sealed may be used: not when it is destroyed, nor, until somebody has looked, when that is not known. */
  stateOf(use: KeyRef): 'good' | 'gone' | 'unsure' {
    return this.keys?.stateOf(use) ?? 'good';
  }

  async #unseal(record: Read, outside: Outside): Promise<Looked> {
    if (this.keys === null)
      throw new MillraceError('keys_elsewhere', 'the topic has sealed records: journal.encrypt is missing');
    const { name, id } = outside;
    const use = await this.keys.find(name, id);
    const outline = outlineOf(record);
    if (use === 'destroyed') return { outline, kept: null, use: null, name };
    const inside = openMessage(record.value, outside, use);
    const kept = inside === null ? null : keptOf(inside);
    // What the key does not open was written by nobody here.
    return { outline: kept === null ? null : outline, kept, use: { name, id, era: use.era }, name };
  }

  /** Whoever waits for an answer to a delivery does not wait for a store. */
  async #asking<T>(ask: (keys: SharedKeys) => Promise<T>): Promise<T> {
    if (this.keys === null) throw new Error('there are no keys');
    try {
      return await within(ask(this.keys), this.#timeout, NEVER, new Error('no answer in time'));
    } catch (error) {
      // The sender comes again, as when the brokers do not answer.
      throw new MillraceError('not_confirmed', `journal.encrypt: ${messageOf(error)}`, { cause: error });
    }
  }
}

const NEVER = new AbortController().signal;

function plain(record: Read): Looked {
  const outline = outlineOf(record);
  return { outline, kept: outline === null ? null : keptOf(record), use: null, name: null };
}

function write({ appender, place, room = null }: Place, message: Message): Promise<void> {
  return appender.append(place, message, room);
}
