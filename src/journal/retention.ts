import { MillraceError } from '../core/errors.ts';
import type { AsideEntries } from './aside-entries.ts';
import type { Cursors } from './cursors.ts';
import type { SeenIds } from './dedup.ts';
import type { Base, Consumed } from './events.ts';
import { Tally } from './hour-counts.ts';
import type { NoteKeeper } from './second-note.ts';
import { NO_ID, partsAt } from './segments/format.ts';
import type { SetAside } from './set-aside.ts';
import type { Space } from './space.ts';

/** Ids sealed in one transaction: about two milliseconds. */
export const SEAL = 1024;
/** Segments begun within the time that settled events are kept: what is past it goes with the last of its segment. */
const SEGMENTS_KEPT = 16;
/** So many are there only while what is in them is not settled, or came fast. */
const SEGMENTS_AT_MOST = 4 * SEGMENTS_KEPT;

interface ProgressParts extends Base {
  readonly seen: SeenIds;
  readonly cursors: Cursors;
  readonly setAside: SetAside;
  readonly asideEntries: AsideEntries;
  readonly space: Space;
  readonly note: NoteKeeper;
}

/** Brings the database up to what the segments say, and the segments down to what is still wanted. */
export class Progress {
  readonly #parts: ProgressParts;

  constructor(parts: ProgressParts) {
    this.#parts = parts;
  }

  /** Appends events in a frame, and then takes them out of their table; their ids were seen when they came. */
  putBack(records: Uint8Array, { table, keys }: Omit<Consumed, 'after'>, now: number): void {
    const { transactions, events } = this.#parts;
    this.makeRoomFor(records.length, now);
    const frame = events.newFrame();
    const tally = new Tally();
    const bytes = Buffer.from(records.buffer, records.byteOffset, records.length);
    for (let at = 0; at < bytes.length;) {
      const { size, receivedAt } = partsAt(bytes, at);
      frame.add(bytes, at, NO_ID);
      if (table === 'quarantine') tally.add('released', receivedAt);
      at += size;
    }
    const consumed = { table, keys, after: events.lastSeq };
    transactions.noticingFull(now, () => events.append(frame, tally, now, { consumed }));
    this.save();
  }

  /** Writes to the database what the frames have said since it was last done. */
  save(): void {
    const { transactions, events, setAside, asideEntries, cursors } = this.#parts;
    const { unsaved } = events;
    if (unsaved === null && !events.hasRolled) return;
    const back: (readonly [sink: string, after: number])[] = [];
    const saved = transactions.run(() => {
      asideEntries.note(unsaved?.entered ?? []);
      for (const { table, keys, after } of unsaved?.consumed ?? []) {
        for (const sink of setAside.remove(table, keys)) {
          // A sink that had left begins in front of them, and not behind, when it opens again.
          cursors.place(sink, after);
          back.push([sink, after]);
        }
      }
      return events.save();
    });
    for (const [sink, after] of back) cursors.placed(sink, after);
    saved();
    if (back.length > 0) this.#parts.note.write();
  }

  /** Clears away at most one segment whose events are settled and older than `retention`; true when one is gone. */
  retain(now: number, retention: number): boolean {
    const { log } = this.#parts.events;
    if (log.isDue(now - retention / SEGMENTS_KEPT) && this.#isWorthRolling()) log.roll();
    return this.#clear(now, now - retention);
  }

  /** While a sink is down nothing goes: ever more segments, each of them an open file, would be of no use. */
  #isWorthRolling(): boolean {
    const { log } = this.#parts.events;
    return log.segments.length < SEGMENTS_AT_MOST || log.isNewestNext(this.#parts.cursors.settled());
  }

  /**
   * When space is short, what is settled goes before its retention is over; an unsettled event never does.
   * @throws MillraceError journal_full
   */
  makeRoom(now: number): void {
    if (this.#parts.space.hadPlenty) return;
    const shortage = this.clearWhileShort(now);
    if (shortage !== null) throw new MillraceError('journal_full', shortage);
  }

  /**
   * The same for what is set aside or put back, which may use half of the reserve: no more may come in then, but what
   * waits is not held up.
   * @throws MillraceError journal_full
   */
  makeRoomFor(bytes: number, now: number): void {
    const { space } = this.#parts;
    if (space.hadPlenty || space.shortageFor(bytes) === null) return;
    this.clearWhileShort(now);
    const shortage = space.shortageFor(bytes);
    if (shortage !== null) throw new MillraceError('journal_full', shortage);
  }

  /** The same as `makeRoom`, and says what is still short; null: nothing. */
  clearWhileShort(now: number): string | null {
    const { log } = this.#parts.events;
    for (;;) {
      const shortage = this.#parts.space.shortage();
      if (shortage === null) return null;
      if (this.#parts.space.giveBack() || this.#clear(now)) continue;
      // When all is settled, the newest segment can go as well once another is begun, which takes some space itself.
      if (this.#parts.cursors.settled() === log.lastSeq && log.isDue(Infinity)) log.roll();
      if (!this.#clear(now)) return shortage;
    }
  }

  #clear(now: number, before?: number): boolean {
    const { log } = this.#parts.events;
    const oldest = log.removable(this.#parts.cursors.settled(), before);
    if (oldest === null) return false;
    const { transactions, seen, note, events } = this.#parts;
    // In small steps: until it is checkpointed, what one transaction writes takes twice its space.
    while (seen.isSealing) transactions.run(() => seen.advance(SEAL, log.lastSeq))();
    // What it says is in the database before it goes, and so is that it goes.
    this.save();
    const [kept, noted] = transactions.run(() => {
      events.savePosition(log.positionAfter);
      return [seen.keep(oldest.lastSeq, now), note.next()];
    });
    kept();
    // First: a segment that is gone and was not noted as settled is missing.
    noted();
    log.removeOldest();
    return true;
  }
}
