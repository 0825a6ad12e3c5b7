import { readLine } from '../archive/read-line.ts';
import { eventOfRecord, parseRecord } from '../core/archive-record.ts';
import { messageOf } from '../core/errors.ts';
import type { IsErased } from '../core/ingest.ts';
import { isSealed, type RecordOpener } from '../core/sealed-record.ts';
import type { Line } from '../lib/lines.ts';
import type { Validator } from '../receive/validate/envelope.ts';
import { parseBlobName } from './blob-name.ts';
import { type DocumentCutter, withoutMark } from './cut-documents.ts';
import { enclosedIn, type EventPointers, findEnclosed } from './enclosed.ts';
import { type Beside, foreignEvent, isRewrittenRecord } from './foreign-event.ts';
import { isRecord, type PassesOver, passesOverBy } from './head-filter.ts';
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
  /** Where the event is in a document without a record; undefined when it is the document. */
  readonly pointers?: EventPointers | undefined;
}

/** Selects events from lines and from files of one event. */
export class LineReader {
  /** True only for a line that `select` calls `other`. */
  readonly passesOver: PassesOver;
  readonly #matches: Matcher;
  readonly #select: Select;
  readonly #options: LineReaderOptions;

  constructor(options: LineReaderOptions) {
    const { selection, isErased } = options;
    this.#options = options;
    this.passesOver = passesOverBy(selection);
    this.#matches = compileSelection(selection);
    this.#select = selectorOf(selection, isErased);
  }

  /** The line, or the documents of others that end in it; none in the middle of one. */
  documentsIn(line: Line, cutter: DocumentCutter): readonly Line[] {
    const { bytes } = line;
    if (bytes === null || isSealed(bytes) || isRecord(bytes)) {
      const cutOff = cutter.end();
      return cutOff === null ? [line] : [{ ...line, bytes: cutOff }, line];
    }
    const documents = cutter.cut(bytes).map((document) => ({ ...line, bytes: document }));
    return documents.length > 0 || cutter.hasBegun ? documents : [{ ...line, bytes: Buffer.alloc(0) }];
  }

  /** @param time of the file, for an event without a record */
  select({ bytes, ended }: Line, time: number): SelectResult {
    if (bytes === null) return { ok: false, reason: 'the line is too long' };
    if (this.passesOver(bytes)) return 'other';
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
    return this.#selectEvent(withoutMark(body), { ...name, isDated: true });
  }

  #selectRecord(line: Buffer): SelectResult {
    const item = readLine('', 0, line, parseRecord, this.#options.opener);
    if (item.kind === 'problem')
      return item.sealed?.why === 'erased' ? 'erased' : { ok: false, reason: item.reason };
    // A copy, so that one event does not keep its whole chunk in memory.
    const event = eventOfRecord(item.record, Buffer.from(item.body));
    if (Number.isNaN(event.receivedAt)) return { ok: false, reason: 'received_at is not a time' };
    return this.#select(event, event.receivedAt);
  }

  #selectForeign(document: Buffer, time: number): SelectResult {
    if (document.length === 0) return 'other';
    if (this.#options.pointers === undefined && isRewrittenRecord(document)) {
      return { ok: false, reason: 'an archive record in a different form than the files sink writes' };
    }
    // The file's time is too vague for the selection.
    return this.#selectEvent(Buffer.from(document), { id: null, receivedAt: time, isDated: false });
  }

  #selectEvent(document: Buffer, beside: Beside & { readonly isDated: boolean }): SelectResult {
    const { pointers, validate } = this.#options;
    let [body, facts] = [document, beside];
    if (pointers !== undefined) {
      try {
        const { body: found, id, known, receivedAt } = enclosedIn(document, pointers);
        body = found;
        facts = {
          id: id ?? beside.id,
          known: { ...beside.known, ...known },
          receivedAt: receivedAt ?? beside.receivedAt,
          isDated: beside.isDated || receivedAt !== null,
        };
      } catch (error) {
        return { ok: false, reason: messageOf(error) };
      }
    }
    const result = foreignEvent(body, facts, validate);
    if (result.ok) return this.#select(result.event, facts.isDated ? facts.receivedAt : null);
    return pointers === undefined ? { ok: false, reason: this.#advised(document, result.reason) } : result;
  }

  #advised(document: Buffer, reason: string): string {
    const found = findEnclosed(document, (body) => this.#options.validate(body).isValid);
    if (found === null) return reason;
    const options = Object.entries(found).flatMap(([name, at]) => (at === null ? [] : `--${name}-at ${at}`));
    return `this looks like a message with the event inside: use ${options.join(' ')}`;
  }
}
