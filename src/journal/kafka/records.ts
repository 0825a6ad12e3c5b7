import { MillraceError, messageOf } from '../../core/errors.ts';
import type { Event } from '../../core/event.ts';
import type { KeyUse, SharedKeys } from '../../seal/shared-keys.ts';
import type { Message } from '../../sinks/kafka/message.ts';
import type { Appender } from './appender.ts';
import type { Read } from './cluster.ts';
import { keptOf, recordOf, type Extra, type Kept } from './record.ts';
import { openMessage, outsideOf, sealMessage, type Outside } from './sealed.ts';
import { idsOf, outlineOf, type Outline } from './window.ts';

/** A record, as far as it can be opened. */
export interface Looked {
  /** Null for one that nobody here has written. */
  readonly outline: Outline | null;
  /** Null also for one whose key is destroyed. */
  readonly kept: Kept | null;
  /** Of a sealed one, the key that opened it. */
  readonly use: KeyUse | null;
  /** Of a sealed one, the name of its key. */
  readonly name: string | null;
}

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

  constructor(keys: SharedKeys | null) {
    this.keys = keys;
  }

  /**
   * @param use the key that it was sealed with before: what was destroyed meanwhile is not sealed anew
   * @returns `erased` when its key is destroyed by now
   */
  async append(
    to: Place,
    event: Event,
    extra: Extra,
    use: KeyUse | null = null,
  ): Promise<'appended' | 'erased'> {
    const message = recordOf(event, to.key, extra);
    if (this.keys === null) {
      await write(to, message);
      return 'appended';
    }
    if (use !== null && (await this.#isGone(use))) return 'erased';
    const own = use ?? (await this.#keyOf(event));
    const ids = idsOf({ event, ...extra }).map(
      ({ print, second }) => [print.toString('base64'), second] as const,
    );
    const about = { at: event.receivedAt, ids, again: typeof extra.again === 'string' };
    await write(to, sealMessage(message, own, about));
    // Whoever cannot open it has not got it.
    return (await this.#isGone(own)) ? 'erased' : 'appended';
  }

  /** In order. @throws MillraceError keys_unusable when one of them can be opened by nobody who has only these keys */
  async open(records: readonly Read[]): Promise<readonly Looked[]> {
    const found: Looked[] = [];
    for (let from = 0; from < records.length; from += AT_ONCE) {
      const some = records.slice(from, from + AT_ONCE).map((record) => {
        const outside = outsideOf(record);
        return { record, outside: outside === 'damaged' ? null : outside };
      });
      const sealed = await Promise.all(
        some.flatMap(({ record, outside }) => (outside === null ? [] : [this.#unseal(record, outside)])),
      );
      for (const { record, outside } of some) {
        const looked = outside === null ? plain(record) : sealed.shift();
        if (looked !== undefined) found.push(looked);
      }
    }
    return found;
  }

  /** Whether what a key sealed may be used: not when it is destroyed, nor, until somebody has looked, when that is not known. */
  stateOf(use: KeyUse): 'good' | 'gone' | 'unsure' {
    return this.keys?.stateOf(use) ?? 'good';
  }

  async #unseal(record: Read, outside: Outside): Promise<Looked> {
    if (this.keys === null)
      throw new MillraceError('keys_unusable', 'the topic has sealed records: journal.encrypt is missing');
    const { name, id } = outside;
    const use = await this.keys.find(name, id);
    const outline = outlineOf(record);
    if (use === 'destroyed') return { outline, kept: null, use: null, name };
    const inside = openMessage(record.value, outside, use);
    const kept = inside === null ? null : keptOf(inside);
    // What the key does not open was written by nobody here.
    return { outline: kept === null ? null : outline, kept, use, name };
  }

  async #keyOf(event: Event): Promise<KeyUse> {
    try {
      return await (this.keys as SharedKeys).keyOf(event);
    } catch (error) {
      throw unconfirmed(error);
    }
  }

  async #isGone(use: KeyUse): Promise<boolean> {
    try {
      return (await this.keys?.isGone(use)) === true;
    } catch (error) {
      throw unconfirmed(error);
    }
  }
}

function plain(record: Read): Looked {
  const outline = outlineOf(record);
  return { outline, kept: outline === null ? null : keptOf(record), use: null, name: null };
}

function write({ appender, place, room = null }: Place, message: Message): Promise<void> {
  return appender.append(place, message, room);
}

/** The sender comes again, as when the brokers do not answer. */
function unconfirmed(error: unknown): MillraceError {
  return new MillraceError('not_confirmed', `journal.encrypt: ${messageOf(error)}`, { cause: error });
}
