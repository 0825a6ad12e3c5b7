import { formatRecords, parseRecord } from '../../core/archive-record.ts';
import type { JournalEvent } from '../../core/event.ts';
import { copyCompact } from '../../lib/json-compact.ts';
import type { LoadedRecord } from '../../tables/database/shapes.ts';

const END = Buffer.from('}');

/**
 * The event as an archive would have it, for rows that are the same as those of an archive. Where the row's `event` would
 * not have the body's exact bytes, for white space or escapes in it, `body_base64` has them: there is no archive to ask.
 */
export function toRecord(event: JournalEvent): LoadedRecord {
  const line = formatRecords([event]).subarray(0, -1);
  const parsed = parseRecord(line);
  if (!parsed.ok) throw new Error(`event ${event.id}: ${parsed.reason}`);
  const { record } = parsed;
  const { body } = event;
  if (hasBase64(line, body) || isCompact(body)) return { record, body, text: line };
  const exact = Buffer.from(`,"body_base64":"${body.toString('base64')}"`);
  return { record, body, text: Buffer.concat([line.subarray(0, -1), exact, END]) };
}

/** The archive's line has the exact bytes in one way or the other: as they are, or as text beside them. */
function hasBase64(line: Buffer, body: Buffer): boolean {
  return !line.subarray(-1 - body.length, -1).equals(body);
}

let room = Buffer.alloc(0);

/** Whether the body comes out of the shaper as it went in. */
function isCompact(body: Buffer): boolean {
  if (room.length < body.length * 2) room = Buffer.alloc(body.length * 4);
  return room.subarray(0, copyCompact(body, 0, body.length, room, 0)).equals(body);
}
