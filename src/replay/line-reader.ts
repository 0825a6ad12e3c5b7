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
  selectorOf,
  type Matcher,
  type Selection,
  type Select,
  type SelectResult,
} from './selection.ts';

export interface LineReaderOptions {
  readonly selection: Selection;
  /** Finds the envelope of an event without a record. */
  readonly validate: Validator;
  /** Without it a sealed record is a problem. */
  readonly opener?: RecordOpener | undefined;
  /** Events of erased users are not sent again. */
  readonly isErased?: IsErased | undefined;
}

const CARRIAGE_RETURN = 13;

/** Selects events from lines and from files of one event. */
export class LineReader {
  readonly #filter: HeadFilter;
  readonly #matches: Matcher;
  readonly #select: Select;
  readonly #validate: Validator;
  readonly #opener: RecordOpener | undefined;

  constructor({ selection, validate, opener, isErased }: LineReaderOptions) {
    this.#filter = new HeadFilter(selection);
    this.#matches = compileSelection(selection);
    this.#select = selectorOf(selection, isErased);
    this.#validate = validate;
    this.#opener = opener;
  }

  /** True only for a line that `select` calls `other`. */
  readonly passesOver = (bytes: Buffer, from: number, to: number): boolean =>
    this.#filter.passesOver(bytes, from, to);

  /** @param time of the file, for an event without a record */
  select({ bytes, ended }: Line, time: number): SelectResult {
    if (bytes === null) return { ok: false, reason: 'the line is too long' };
    if (this.#filter.passesOver(bytes)) return 'other';
    if (!isSealed(bytes) && !isRecord(bytes)) return this.#selectForeign(bytes, time);
    return ended ? this.#selectRecord(bytes) : { ok: false, reason: 'the line has no end' };
  }

  /** True when the name alone shows that the selection does not match. */
  passesOverBlob(path: string): boolean {
    const name = parseBlobName(path);
    if (name === null) return false;
    const { type = '', team = null, user = null } = name.known;
    // A shortened path has no ids.
    if (team === null || user === null) return false;
    return this.#matches({ type, team, user, clientUser: null }, name.receivedAt) === 'no';
  }

  /** @param body the whole file, decompressed */
  selectBlob(path: string, body: Buffer): SelectResult {
    const name = parseBlobName(path);
    if (name === null) return { ok: false, reason: 'the name is not {time}#{type}#{key}.json' };
    const result = foreignEvent(body, name, this.#validate);
    return result.ok ? this.#select(result.event, name.receivedAt) : result;
  }

  #selectRecord(line: Buffer): SelectResult {
    const item = readLine('', 0, line, parseRecord, this.#opener);
    if (item.kind === 'problem')
      return item.sealed?.why === 'erased' ? 'erased' : { ok: false, reason: item.reason };
    // A copy, so that one event does not keep its whole chunk in memory.
    const event = eventOfRecord(item.record, Buffer.from(item.body));
    if (Number.isNaN(event.receivedAt)) return { ok: false, reason: 'received_at is not a time' };
    return this.#select(event, event.receivedAt);
  }

  #selectForeign(line: Buffer, time: number): SelectResult {
    const body = Buffer.from(line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line);
    if (body.length === 0) return 'other';
    if (isRewrittenRecord(body)) {
      return { ok: false, reason: 'an archive record in a different form than the files sink writes' };
    }
    const result = foreignEvent(body, { id: null, receivedAt: time }, this.#validate);
    // The file's time is too vague for the selection.
    return result.ok ? this.#select(result.event, null) : result;
  }
}
