import { JsonFault, skipValue, unexpected } from '../../lib/json-text.ts';

export type RejectCode =
  /** Not JSON: NaN, a missing comma, a line break inside a text, an object that ends too early. */
  | 'not_json'
  | 'not_utf8'
  | 'too_deep'
  /** Longer than a warehouse takes. */
  | 'too_long'
  /** A value stands where another kind is needed for the row to make sense: a text instead of an object, say. */
  | 'wrong_type'
  /** What makes the row one thing is missing. */
  | 'no_identity'
  /** The database does not take the row. */
  | 'refused'
  /** The document ends before it is complete. */
  | 'cut'
  /** The document breaks: brackets do not match, so that nothing after can be trusted. */
  | 'broken';

/** A row that is not written, and why. */
export interface RowReject {
  readonly table: string;
  readonly code: RejectCode;
  /** Names what is wrong and where. */
  readonly reason: string;
}

/** Well-formed JSON that makes no row. */
export class InvalidRow extends Error {
  readonly code: RejectCode;

  constructor(code: RejectCode, reason: string) {
    super(reason);
    this.name = 'InvalidRow';
    this.code = code;
  }
}

/** @throws the error itself when it is neither a fault of the JSON nor of the row */
export function rejectOf(table: string, error: unknown): RowReject {
  if (error instanceof InvalidRow) return { table, code: error.code, reason: error.message };
  if (!(error instanceof JsonFault)) throw error;
  const reason = `${error.message}, ${error.at} bytes into the document`;
  return { table, code: error.kind === 'depth' ? 'too_deep' : 'not_json', reason };
}

/** What is wrong with a document that does not begin as an object. */
export function notAnObject(bytes: Buffer): Error {
  const end = skipValue(bytes, 0, 1);
  if (end !== bytes.length) return unexpected(bytes, end);
  return new InvalidRow('wrong_type', 'a row has to be an object');
}
