import { readLine } from '../archive/read-line.ts';
import { eventOfRecord, parseRecord } from '../core/archive-record.ts';
import type { IsErased } from '../core/ingest.ts';
import { isSealed, type RecordOpener } from '../core/sealed-record.ts';
import type { Line } from '../lib/lines.ts';
import type { Validator } from '../receive/validate/envelope.ts';
import { parseBlobName } from './blob-name.ts';
import { foreignEvent, isRewrittenRecord } from './foreign-event.ts';
import { HeadFilter, isRecord } from './head-filter.ts';
import {
  compileSelection,
  takerOf,
  type Matcher,
  type Selection,
  type Take,
  type Taken,
} from './selection.ts';

export interface Reading {
  readonly selection: Selection;
  /** Finds the envelope of an event that no archive record stands around. */
  readonly validate: Validator;
  /** Opens what is sealed; without it a sealed record is a problem that says so. */
  readonly opener?: RecordOpener | undefined;
  /** Events of erased users are not sent again. */
  readonly isErased?: IsErased | undefined;
}

const CARRIAGE_RETURN = 13;

/** Turns lines and small files into the events that a selection takes. */
export class LineReader {
  readonly #filter: HeadFilter;
  readonly #matches: Matcher;
  readonly #select: Take;
  readonly #validate: Validator;
  readonly #opener: RecordOpener | undefined;

  constructor({ selection, validate, opener, isErased }: Reading) {
    this.#filter = new HeadFilter(selection);
    this.#matches = compileSelection(selection);
    this.#select = takerOf(selection, isErased);
    this.#validate = validate;
    this.#opener = opener;
  }

  /** True for a line that `take` would say `passed` of; false says nothing. */
  readonly passesOver = (bytes: Buffer, from: number, to: number): boolean =>
    this.#filter.passesOver(bytes, from, to);

  /** @param time of the file, for an event that no record dates */
  take({ bytes, ended }: Line, time: number): Taken {
    if (bytes === null) return { ok: false, reason: 'the line is too long' };
    if (this.#filter.passesOver(bytes)) return 'passed';
    if (!isSealed(bytes) && !isRecord(bytes)) return this.#takeForeign(bytes, time);
    return ended ? this.#takeRecord(bytes) : { ok: false, reason: 'the line has no end' };
  }

  /** True when the name says already that the selection does not take the event. */
  passesOverBlob(path: string): boolean {
    const name = parseBlobName(path);
    if (name === null) return false;
    const { type = '', team = null, user = null } = name.known;
    // Folders of a name that was shortened say nothing.
    if (team === null || user === null) return false;
    return this.#matches({ type, team, user, clientUser: null }, name.receivedAt) === 'no';
  }

  /** @param body the whole file, decompressed */
  takeBlob(path: string, body: Buffer): Taken {
    const name = parseBlobName(path);
    if (name === null) return { ok: false, reason: 'the name is not {time}#{type}#{key}.json' };
    const result = foreignEvent(body, name, this.#validate);
    return result.ok ? this.#select(result.event, name.receivedAt) : result;
  }

  #takeRecord(line: Buffer): Taken {
    const item = readLine('', 0, line, parseRecord, this.#opener);
    if (item.kind === 'problem')
      return item.sealed?.why === 'erased' ? 'erased' : { ok: false, reason: item.reason };
    // A copy: a whole chunk of the file must not be kept for the sake of one event in it.
    const event = eventOfRecord(item.record, Buffer.from(item.body));
    if (Number.isNaN(event.receivedAt)) return { ok: false, reason: 'received_at is not a time' };
    return this.#select(event, event.receivedAt);
  }

  #takeForeign(line: Buffer, time: number): Taken {
    const body = Buffer.from(line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line);
    if (body.length === 0) return 'passed';
    if (isRewrittenRecord(body)) {
      return { ok: false, reason: 'an archive record in a different form than the files sink writes' };
    }
    const result = foreignEvent(body, { id: null, receivedAt: time }, this.#validate);
    // The file's time is good enough to name a folder after, not to decide by.
    return result.ok ? this.#select(result.event, null) : result;
  }
}
