import type { ArchiveRecord } from '../core/archive.ts';
import type { ParseRecord } from '../core/archive-record.ts';
import {
  isSealed,
  type OpenedRecord,
  parseSealed,
  type RecordOpener,
  type SealedWhy,
} from '../core/sealed-record.ts';

/** Texts for users. */
const SEALED_REASONS: Readonly<Record<SealedWhy, string>> = {
  no_keys: 'sealed; the keys that open it were not given',
  erased: 'sealed; its key was destroyed by an erasure',
  unknown_key: 'sealed with a key that is not in the key store',
  damaged: 'sealed; its key does not open it, so it was changed',
};

/**
 * A record with the exact signed bytes, or a problem. `file` is relative to the archive. A problem without a line
 * concerns the rest of its file.
 */
export type ArchiveItem<R = ArchiveRecord> =
  | {
      readonly kind: 'record';
      readonly file: string;
      /** Counted from 1. */
      readonly line: number;
      readonly record: R;
      /** A view into a larger buffer: copy it to keep it. */
      readonly body: Buffer;
      /** The record's line without its line break, opened if it was sealed; a view. */
      readonly text: Buffer;
      readonly sealed: boolean;
    }
  | {
      readonly kind: 'problem';
      readonly file: string;
      readonly line: number | null;
      readonly reason: string;
      /** Set for a sealed record that cannot be opened. */
      readonly sealed?: {
        readonly why: SealedWhy;
        readonly received_at: string;
        /** The sealed line; a view. */
        readonly text: Buffer;
      };
    };

/** @param bytes of a line without its line break */
export function readLine<R>(
  file: string,
  line: number,
  bytes: Buffer,
  parse: ParseRecord<R>,
  opener?: RecordOpener,
): ArchiveItem<R> {
  let text = bytes;
  const sealed = isSealed(bytes);
  if (sealed) {
    const record = parseSealed(bytes);
    if (record === null)
      return { kind: 'problem', file, line, reason: 'not a sealed record of this version' };
    const opened: OpenedRecord = opener?.open(record) ?? { ok: false, why: 'no_keys' };
    if (!opened.ok) {
      const closed = { why: opened.why, received_at: record.received_at, text: bytes };
      return { kind: 'problem', file, line, reason: SEALED_REASONS[opened.why], sealed: closed };
    }
    text = opened.line;
  }
  const parsed = parse(text);
  if (!parsed.ok) return { kind: 'problem', file, line, reason: parsed.reason };
  return { kind: 'record', file, line, record: parsed.record, body: parsed.body, text, sealed };
}
