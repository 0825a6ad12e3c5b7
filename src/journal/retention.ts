import { MillraceError } from '../core/errors.ts';
import { asBuffer } from '../lib/byte-writer.ts';
import type { AsideEntries } from './aside-entries.ts';
import type { Cursors } from './cursors.ts';
import type { SeenIds } from './dedup.ts';
import type { ReappendedRows, StoreBase } from './events.ts';
import { HourTally } from './hour-counts.ts';
import type { NoteKeeper } from './second-note.ts';
import { NO_ID, partsAt } from './segments/format.ts';
import type { SetAside } from './set-aside.ts';
import type { Space } from './space.ts';

/** Ids sealed in one transaction: about two milliseconds. */
export const SEAL = 1024;
/** Segments begun within the retention: an event that is past it goes with the last one of its segment. */
const SEGMENTS_KEPT = 16;
/** No segment is begun for its age when there are so many: the events in them are not settled, or came fast. */
const SEGMENTS_AT_MOST = 4 * SEGMENTS_KEPT;

interface RetentionParts extends StoreBase {
  readonly seen: SeenIds;
  readonly cursors: Cursors;
  readonly setAside: SetAside;
  readonly asideEntries: AsideEntries;
  readonly space: Space;
  readonly note: NoteKeeper;
}

/** Writes to the database what the segments say, and removes the segments that nothing needs any more. */
export class Retention {
  readonly #parts: RetentionParts;

  constructor(parts: RetentionParts) {
    this.#parts = parts;
  }

  /** Appends events that were set aside, and deletes their rows. Their ids were seen when they came. */
  reappend(records: Uint8Array, { table, keys }: Omit<ReappendedRows, 'after'>, now: number): void {
    const { transactions, events } = this.#parts;
    this.makeRoomFor(records.length, now);
    const frame = events.log.newFrame();
    const tally = new HourTally();
    const bytes = asBuffer(records);
    for (let at = 0; at < bytes.length;) {
      const parts = partsAt(bytes, at);
      frame.add(bytes, at, parts, NO_ID);
      if (table === 'quarantine') tally.add('released', parts.receivedAt);
      at += parts.size;
    }
    const consumed = { table, keys, after: events.log.lastSeq };
    transactions.noticingFull(now, () => events.append(frame, tally, now, { consumed }));
    this.save();
  }

  /** Writes to the database what the frames have said since the last time. */
  save(): void {
    const { transactions, events, setAside, asideEntries, cursors, note } = this.#parts;
    const { unsaved } = events;
    if (unsaved === null && !events.hasRolled) return;
    const { entered = [], consumed = [] } = unsaved ?? {};
    transactions.run(() => {
      if (entered.length > 0) asideEntries.note(entered);
      const sinks = consumed.flatMap(({ table, keys, after }) =>
        setAside.remove(table, keys).map((sink) => [sink, after] as const),
      );
      // A sink that was removed and is opened again begins before them.
      for (const [sink, after] of sinks) cursors.place(sink, after);
      events.save();
      if (sinks.length > 0) note.writeAfterCommit();
    });
  }

  /** Removes at most one segment whose events are settled and older than `retention`. @returns whether one was removed */
  retain(now: number, retention: number): boolean {
    const { log } = this.#parts.events;
    if (log.isDue(now - retention / SEGMENTS_KEPT) && this.#isWorthRolling()) log.roll();
    return this.#removeOldest(now, now - retention);
  }

  /** While a sink is down nothing is removed: more segments would only be more open files. */
  #isWorthRolling(): boolean {
    const { log } = this.#parts.events;
    return log.segments.length < SEGMENTS_AT_MOST || log.isNewestNext(this.#parts.cursors.settled());
  }

  /**
   * Removes settled events before their retention is over when space is short; never an unsettled one.
   * @throws MillraceError journal_full
   */
  makeRoom(now: number): void {
    if (this.#parts.space.hadPlenty) return;
    const shortage = this.clearWhileShort(now);
    if (shortage !== null) throw new MillraceError('journal_full', shortage);
  }

  /**
   * The same for events that are set aside or appended again. They may use half of the reserve, so that what waits is not held up
   * when no more may come in.
   * @throws MillraceError journal_full
   */
  makeRoomFor(bytes: number, now: number): void {
    const { space } = this.#parts;
    if (space.hadPlenty || space.shortageFor(bytes) === null) return;
    this.clearWhileShort(now);
    const shortage = space.shortageFor(bytes);
    if (shortage !== null) throw new MillraceError('journal_full', shortage);
  }

  /** As `makeRoom`. @returns what is still short; null for nothing */
  clearWhileShort(now: number): string | null {
    const { space, cursors, events } = this.#parts;
    const { log } = events;
    for (;;) {
      const shortage = space.shortage();
      if (shortage === null) return null;
      if (space.giveBack() || this.#removeOldest(now)) continue;
      // When all is settled, the newest segment can go once another is begun, which takes some space itself.
      if (cursors.settled() === log.lastSeq && log.isDue(Infinity)) log.roll();
      if (!this.#removeOldest(now)) return shortage;
    }
  }

  #removeOldest(now: number, before?: number): boolean {
    const { transactions, seen, note, events, cursors } = this.#parts;
    const { log } = events;
    const lastSeq = log.removableUpTo(cursors.settled(), before);
    if (lastSeq === null) return false;
    // In small steps: what one transaction writes takes twice its space until it is checkpointed.
    while (seen.isSealing) transactions.run(() => seen.advance(SEAL, log.lastSeq));
    // The segment's notes are in the database before it is removed, and so is its removal: a segment that is gone and not
    // noted as removed counts as lost.
    this.save();
    transactions.run(() => {
      events.savePosition(log.positionAfterRemoval);
      seen.keep(lastSeq, now);
      note.writeAfterCommit();
    });
    log.removeOldest();
    return true;
  }
}
