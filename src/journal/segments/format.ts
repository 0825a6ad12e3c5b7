import { crc32 } from 'node:zlib';

/**
 * Format of a segment: a header, then frames, one for each group commit. A frame is its head and then its records. Every item
 * begins at a multiple of 8 bytes; numbers are little-endian, and seqs and other large ones are doubles.
 *
 * Checksums begin with the journal's salt, a secret random number. So bytes that a sender has chosen are not read as an item when
 * the item before them is damaged.
 */
export const ALIGN = 8;
export const SEGMENT_HEADER = 64;
export const FRAME_HEADER = 64;
export const RECORD_HEADER = 64;
/** Bytes of the hash of an event's identity, and of its body. */
export const KEY_BYTES = 12;
export const DIGEST_BYTES = 8;

const MAGIC = Buffer.from('millrace');
const VERSION = 1;
export const FRAME_MAGIC = Buffer.from([0xf7, 0x4d, 0x52, 0x01]);
const LIVE = 0x4556_494c;
/** Written over the beginning of a record, before anything else of it is erased: the content is not checked from then on. */
export const ERASED_MARK = Buffer.from('ERAS');
const ERASED = ERASED_MARK.readUInt32LE();
/** Kinds of records besides events. */
const REPLAYED = 1;
const ENTRY = 2;
/** Bytes: twice the longest note. So much is read to check whatever looks like a head, and a body may be full of that. */
const LONGEST_NOTE = 64 * 1024;

export interface SegmentHeader {
  readonly salt: number;
  readonly firstSeq: number;
  readonly firstFrame: number;
  /** Body bytes of all events before it. */
  readonly upto: number;
  /** When the youngest event of the previous segment was received; milliseconds since the epoch. */
  readonly youngestBefore: number;
}

export interface FrameHead {
  /** Counts the frames of a journal, also those without records. */
  readonly number: number;
  readonly firstSeq: number;
  /** Number of records, and their bytes. */
  readonly count: number;
  readonly size: number;
  readonly upto: number;
  /** Milliseconds since the epoch; the dedup window of its ids begins then. */
  readonly writtenAt: number;
  /** JSON: the `FrameNote` of events.ts. */
  readonly note: string;
}

/** What the header of a record says. */
export interface RecordHead {
  readonly seq: number;
  readonly receivedAt: number;
  /** Bytes of the whole record, rounded up. */
  readonly size: number;
  readonly identityBytes: number;
  readonly headBytes: number;
  readonly bodyBytes: number;
  /** Sent again by a replay. */
  readonly replayed: boolean;
  /** Its body is an entry of the log of receipts, and no event. It is marked as erased, so that others pass over it. */
  readonly isEntry: boolean;
  readonly erased: boolean;
}

/** What a record says before it has a seq. */
export type RecordParts = Omit<RecordHead, 'seq' | 'erased'>;

export const aligned = (bytes: number): number => (bytes + ALIGN - 1) & -ALIGN;

export function encodeSegmentHeader(header: SegmentHeader): Buffer {
  const bytes = Buffer.alloc(SEGMENT_HEADER);
  MAGIC.copy(bytes);
  bytes.writeUInt32LE(VERSION, 8);
  const { salt, firstSeq, firstFrame, upto, youngestBefore } = header;
  bytes.writeUInt32LE(salt, 16);
  for (const [index, value] of [firstSeq, firstFrame, upto, youngestBefore].entries())
    bytes.writeDoubleLE(value, 24 + 8 * index);
  bytes.writeUInt32LE(crc32(bytes.subarray(16)), 12);
  return bytes;
}

/** Null when it is damaged. */
export function decodeSegmentHeader(bytes: Buffer): SegmentHeader | null {
  if (bytes.length < SEGMENT_HEADER || !bytes.subarray(0, MAGIC.length).equals(MAGIC)) return null;
  // The database names a newer format; here another number is damage.
  if (bytes.readUInt32LE(8) !== VERSION) return null;
  if (bytes.readUInt32LE(12) !== crc32(bytes.subarray(16, SEGMENT_HEADER))) return null;
  const [firstSeq, firstFrame, upto, youngestBefore] = [0, 1, 2, 3].map((index) =>
    bytes.readDoubleLE(24 + 8 * index),
  ) as [number, number, number, number];
  return { salt: bytes.readUInt32LE(16), firstSeq, firstFrame, upto, youngestBefore };
}

/** Header and note of a frame; the records follow. */
export function encodeFrameHead(frame: FrameHead, salt: number): Buffer {
  const note = Buffer.byteLength(frame.note);
  const size = FRAME_HEADER + aligned(note);
  const bytes = Buffer.alloc(size);
  FRAME_MAGIC.copy(bytes);
  bytes.writeUInt32LE(size, 8);
  bytes.writeUInt32LE(note, 12);
  bytes.writeUInt32LE(frame.size, 16);
  bytes.writeUInt32LE(frame.count, 20);
  bytes.writeDoubleLE(frame.number, 24);
  bytes.writeDoubleLE(frame.firstSeq, 32);
  bytes.writeDoubleLE(frame.upto, 40);
  bytes.writeDoubleLE(frame.writtenAt, 48);
  bytes.write(frame.note, FRAME_HEADER);
  bytes.writeUInt32LE(crc32(bytes.subarray(8), salt), 4);
  return bytes;
}

/** Bytes of the frame's head at `at`; 0 when none can begin there. @param bytes have at least its header */
export function frameHeadSize(bytes: Buffer, at: number): number {
  if (bytes.readUInt32LE(at) !== FRAME_MAGIC.readUInt32LE()) return 0;
  const size = bytes.readUInt32LE(at + 8);
  const note = bytes.readUInt32LE(at + 12);
  return size === FRAME_HEADER + aligned(note) && note <= LONGEST_NOTE ? size : 0;
}

/** Null when it is damaged. @param size as `frameHeadSize` gives it; the bytes have all of it */
export function decodeFrameHead(bytes: Buffer, at: number, size: number, salt: number): FrameHead | null {
  if (bytes.readUInt32LE(at + 4) !== crc32(bytes.subarray(at + 8, at + size), salt)) return null;
  const note = bytes.readUInt32LE(at + 12);
  return {
    number: bytes.readDoubleLE(at + 24),
    firstSeq: bytes.readDoubleLE(at + 32),
    count: bytes.readUInt32LE(at + 20),
    size: bytes.readUInt32LE(at + 16),
    upto: bytes.readDoubleLE(at + 40),
    writtenAt: bytes.readDoubleLE(at + 48),
    note: bytes.toString('utf8', at + FRAME_HEADER, at + FRAME_HEADER + note),
  };
}

/** Writes the header of a record, except seq, hashes and checksums. */
export function startRecord(bytes: Buffer, at: number, parts: Omit<RecordParts, 'size'>): void {
  bytes.writeUInt32LE(LIVE, at);
  bytes.writeUInt32LE(parts.identityBytes, at + 8);
  bytes.writeUInt32LE(parts.headBytes, at + 12);
  bytes.writeUInt32LE(parts.bodyBytes, at + 16);
  bytes.writeUInt32LE(parts.isEntry ? ENTRY : parts.replayed ? REPLAYED : 0, at + 20);
  bytes.writeDoubleLE(parts.receivedAt, at + 32);
}

/** EventHashes of a record whose id is not remembered from it. */
export const NO_ID = { key: '\0'.repeat(KEY_BYTES), digest: '\0'.repeat(DIGEST_BYTES) } as const;

/** Writes seq, hashes and checksums into the header of a record. */
export function finishRecord(
  bytes: Buffer,
  at: number,
  parts: RecordParts,
  seq: number,
  { key, digest }: EventHashes,
  salt: number,
): void {
  bytes.writeDoubleLE(seq, at + 24);
  bytes.write(key, at + 40, KEY_BYTES, 'latin1');
  bytes.write(digest, at + 52, DIGEST_BYTES, 'latin1');
  bytes.writeUInt32LE(crc32(bytes.subarray(at + 8, at + 60), salt), at + 60);
  bytes.writeUInt32LE(contentChecksum(bytes, at, parts, salt), at + 4);
}

/** Null when no record begins there. @param bytes have at least its header */
export function decodeRecord(bytes: Buffer, at: number, salt: number): RecordHead | null {
  const checksum = bytes.readUInt32LE(at + 60);
  const isSame = checksum === crc32(bytes.subarray(at + 8, at + 60), salt);
  if (!isSame && !(isErasedAt(bytes, at) && checksum === checksumWithoutDigest(bytes, at, salt))) return null;
  return partsAt(bytes, at);
}

/** The header without a check. Of a record that was not finished the seq is arbitrary. */
export function partsAt(bytes: Buffer, at: number): RecordHead {
  const identityBytes = bytes.readUInt32LE(at + 8);
  const headBytes = bytes.readUInt32LE(at + 12);
  const bodyBytes = bytes.readUInt32LE(at + 16);
  const size = aligned(RECORD_HEADER + identityBytes + headBytes + bodyBytes);
  const kind = bytes.readUInt32LE(at + 20);
  return {
    seq: bytes.readDoubleLE(at + 24),
    receivedAt: bytes.readDoubleLE(at + 32),
    size,
    identityBytes,
    headBytes,
    bodyBytes,
    replayed: kind === REPLAYED,
    isEntry: kind === ENTRY,
    erased: isErasedAt(bytes, at),
  };
}

/** Hashes that stand for an event in the memory of ids; a character for each byte. */
export interface EventHashes {
  /** Of its source and id. */
  readonly key: string;
  /** Of its bytes. */
  readonly digest: string;
}

export function hashesAt(bytes: Buffer, at: number): EventHashes {
  return {
    key: bytes.toString('latin1', at + 40, at + 52),
    digest: bytes.toString('latin1', at + 52, at + 60),
  };
}

/** True when the content of a record is undamaged; an erased one has none. @param bytes have all of it */
export function isSound(bytes: Buffer, at: number, head: RecordHead, salt: number): boolean {
  return (
    (head.erased && !head.isEntry) || bytes.readUInt32LE(at + 4) === contentChecksum(bytes, at, head, salt)
  );
}

/** A record in the place of a quarantined event: it holds the entry for the log of receipts. */
export function entryRecord(entry: Buffer, receivedAt: number): Buffer {
  const bytes = Buffer.alloc(RECORD_HEADER + entry.length);
  const sizes = { identityBytes: 0, headBytes: 0, bodyBytes: entry.length };
  startRecord(bytes, 0, { ...sizes, replayed: false, isEntry: true, receivedAt });
  bytes.writeUInt32LE(ERASED);
  bytes.set(entry, RECORD_HEADER);
  return bytes;
}

export function isErasedAt(bytes: Buffer, at: number): boolean {
  return bytes.readUInt32LE(at) === ERASED;
}

/**
 * What to write into the header of an erased record, in order, each step durable before the next: from the first one on the record
 * is valid however much of the digest is left. The key stays, so that a repetition is still recognised.
 */
export function withoutDigest(
  bytes: Buffer,
  at: number,
  salt: number,
): readonly (readonly [at: number, Buffer])[] {
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32LE(checksumWithoutDigest(bytes, at, salt));
  return [
    [60, checksum],
    [60 - DIGEST_BYTES, NO_DIGEST],
    // The checksum of the content could confirm a guess, too.
    [4, Buffer.alloc(4)],
  ];
}

const NO_DIGEST = Buffer.alloc(DIGEST_BYTES);

function checksumWithoutDigest(bytes: Buffer, at: number, salt: number): number {
  return crc32(NO_DIGEST, crc32(bytes.subarray(at + 8, at + 60 - DIGEST_BYTES), salt));
}

function contentChecksum(
  bytes: Buffer,
  at: number,
  { identityBytes, headBytes, bodyBytes }: RecordParts,
  salt: number,
): number {
  return crc32(bytes.subarray(at + 8, at + RECORD_HEADER + identityBytes + headBytes + bodyBytes), salt);
}
