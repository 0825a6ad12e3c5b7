import fs, { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import {
  decodeRecord,
  ERASED_MARK,
  finishRecord,
  FRAME_MAGIC,
  NO_ID,
  partsAt,
  withoutDigest,
} from '../../src/journal/segments/format.ts';
import { SegmentLog } from '../../src/journal/segments/log.ts';
import { pageAfter } from '../../src/journal/segments/pages.ts';
import { encodeRecords, eventsOf } from '../../src/journal/segments/records.ts';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { FIRST_SEGMENT, segmentsOf } from '../support/journal-files.ts';

const SECTOR = 512;

/** What a test knows of an event: its own list of these is the oracle. */
interface Written {
  readonly id: string;
  readonly body: Buffer;
}

/** Frames of a journal's only segment, and where each ends in the file. */
interface Scene {
  readonly folder: string;
  readonly file: Buffer;
  readonly ends: readonly number[];
  readonly frames: readonly (readonly Written[])[];
}

function openLog(folder: string, frames: string[] = []): SegmentLog {
  const options = { folder, salt: 12345, segmentBytes: 1e9, position: null, least: 0 };
  return new SegmentLog(options, ({ note }) => frames.push(note));
}

function appendTo(log: SegmentLog, written: readonly Written[], note: string): void {
  const frame = log.newFrame();
  const bytes = Buffer.from(encodeRecords(written.map((one) => ({ event: makeEvent(one) }))).buffer);
  for (let at = 0; at < bytes.length; at += partsAt(bytes, at).size)
    frame.add(bytes, at, partsAt(bytes, at), NO_ID);
  log.append(frame, note, 1000);
}

function scene(folder: string, sizes: readonly (readonly number[])[]): Scene {
  for (const name of segmentsOf(folder)) rmSync(name);
  const log = openLog(folder);
  const ends: number[] = [];
  let n = 0;
  const frames = sizes.map((frame) =>
    frame.map((size): Written => ({ id: `e${(n += 1)}`, body: Buffer.alloc(size, `<${n}>`) })),
  );
  for (const [index, frame] of frames.entries()) {
    appendTo(log, frame, `{"n":${index}}`);
    ends.push(log.bytes);
  }
  log.close();
  return { folder, file: readFileSync(join(folder, FIRST_SEGMENT)), ends, frames };
}

interface Reading {
  readonly events: readonly JournalEvent[];
  readonly damaged: readonly number[];
}

/** Everything, in pages as small as `count`. */
function readAll(log: SegmentLog, count = 3): Reading {
  const events: JournalEvent[] = [];
  const damaged: number[] = [];
  for (;;) {
    const after = events.at(-1)?.seq ?? 0;
    const page = pageAfter(log, after, { count, bytes: 5000 }, ({ seq }) => damaged.push(seq));
    if (page.places.length === 0) return { events, damaged };
    events.push(...eventsOf(page));
  }
}

function reopened({ folder }: Scene, file: Buffer): Reading & { readonly notes: readonly string[] } {
  writeFileSync(join(folder, FIRST_SEGMENT), file);
  const notes: string[] = [];
  const log = openLog(folder, notes);
  const found = readAll(log);
  // What was cut off is gone, and what comes now stands behind the rest.
  appendTo(log, [{ id: 'next', body: Buffer.from('next') }], '{}');
  const again = readAll(log);
  expect(again.events.slice(0, -1)).toEqual(found.events);
  expect(again.events.at(-1)).toMatchObject({ id: 'next', seq: found.events.length + 1 });
  log.close();
  return { ...found, notes };
}

function expectFrames({ events }: Reading, frames: Scene['frames']): void {
  const expected = frames.flat().map(({ id, body }, index) => ({ seq: index + 1, id, body }));
  expect(events.map(({ seq, id, body }) => ({ seq, id, body }))).toEqual(expected);
}

const frameSizes = fc.array(fc.array(fc.integer({ min: 0, max: 3000 }), { maxLength: 5 }), {
  minLength: 1,
  maxLength: 6,
});

test('fault 3: cut at any byte, a segment has all frames that are whole and nothing else', async () => {
  const made = scene(await temporaryFolder(), [[10, 0], [], [7, 30]]);
  const last = made.ends.at(-2) ?? 0;
  // Every byte of the last frame, and every seventh of those before it.
  for (let size = 64; size <= made.file.length; size += size < last ? 7 : 1) {
    const whole = made.ends.filter((end) => end <= size).length;
    const found = reopened(made, made.file.subarray(0, size));
    expectFrames(found, made.frames.slice(0, whole));
    expect(found.notes).toEqual(made.frames.slice(0, whole).map((_, index) => `{"n":${index}}`));
    expect(found.damaged).toEqual([]);
  }
});

test('fault 3: garbage behind the end, and older frames in it, count for nothing', async () => {
  const folder = await temporaryFolder();
  fc.assert(
    fc.property(frameSizes, fc.uint8Array({ maxLength: 3000 }), fc.boolean(), (sizes, noise, older) => {
      const made = scene(folder, sizes);
      const garbage = Buffer.concat([
        made.file,
        older ? made.file.subarray(64, made.ends[0]) : Buffer.alloc(0),
        noise,
      ]);
      const found = reopened(made, garbage);
      expectFrames(found, made.frames);
      expect(found.damaged).toEqual([]);
    }),
    { numRuns: 25 },
  );
});

test('of a torn frame full of what looks like the beginning of frames little is read for each', async () => {
  const made = scene(await temporaryFolder(), [[10]]);
  const log = openLog(made.folder);
  const body = Buffer.alloc(2 ** 20);
  // In one of eight parts of it at multiples of 8, whatever stands in front.
  for (let at = 0; at + 32 <= body.length; at += 16) FRAME_MAGIC.copy(body, at + (at >>> 17));
  const heads = body.length / 16 / 8;
  appendTo(log, [{ id: 'torn', body }], '{"n":1}');
  log.close();
  const torn = readFileSync(join(made.folder, FIRST_SEGMENT)).subarray(0, -512);
  const read = vi.spyOn(fs, 'readSync');
  onTestFinished(() => {
    read.mockRestore();
    syncBuiltinESMExports();
  });
  syncBuiltinESMExports();
  expectFrames(reopened(made, torn), made.frames);
  const bytes = read.mock.results.reduce((sum, { value }) => sum + Number(value), 0);
  expect(read.mock.results.length).toBeGreaterThan(heads / 2);
  expect(bytes).toBeLessThan(8 * torn.length + heads * 4200);
});

test('fault 2: a sector of the last frame that was not written costs that frame, and no other', async () => {
  const folder = await temporaryFolder();
  fc.assert(
    fc.property(frameSizes, fc.nat(), (sizes, where) => {
      const made = scene(folder, [...sizes, [2000, 100]]);
      const from = made.ends.at(-2) ?? 64;
      const sector = Math.floor((from + (where % (made.file.length - from))) / SECTOR) * SECTOR;
      const at = Math.max(from, sector);
      const file = Buffer.from(made.file);
      file.fill(0, at, Math.min(sector + SECTOR, file.length));
      const isAsItWas = file.equals(made.file);
      const found = reopened(made, file);
      expectFrames(found, isAsItWas ? made.frames : made.frames.slice(0, -1));
      expect(found.damaged).toEqual([]);
    }),
    { numRuns: 25 },
  );
});

test('fault 4: what is damaged in the middle costs the records it touches, and each is named', async () => {
  const folder = await temporaryFolder();
  fc.assert(
    fc.property(
      frameSizes,
      fc.nat(),
      fc.constantFrom(1, 16, SECTOR),
      fc.integer({ min: 1, max: 255 }),
      (sizes, where, length, flip) => {
        const made = scene(folder, [[50], ...sizes, [60]]);
        const end = made.ends.at(-2) ?? 0;
        const at = 64 + (where % (end - 64));
        const file = Buffer.from(made.file);
        for (let n = at; n < Math.min(at + length, end); n += 1) file[n] = file[n]! ^ flip;
        const { events, damaged } = reopened(made, file);
        const all = made.frames.flat();
        expect(events.map(({ seq }) => seq)).toEqual(all.map((_, index) => index + 1));
        const lost = new Set(damaged);
        for (const { seq, id, body, handling } of events) {
          if (lost.has(seq)) expect({ id, handling }).toEqual({ id: '', handling: { only: [] } });
          else expect({ id, body }).toEqual(all[seq - 1]);
        }
        // A record is at least 200 bytes here.
        expect(lost.size).toBeLessThanOrEqual(Math.ceil(length / 200) + 1);
        if (length === 1) expect(lost.size).toBeLessThanOrEqual(1);
      },
    ),
    { numRuns: 60 },
  );
});

test('a body that looks like frames and records is never taken for some, when what is in front of it is damaged', async () => {
  const forged = scene(await temporaryFolder(), [[40], [40]]).file.subarray(64);
  for (let shift = 0; shift < 8; shift += 1) {
    const folder = await temporaryFolder();
    const options = { folder, salt: 999, segmentBytes: 1e9, position: null, least: 0 };
    const receiving = new SegmentLog(options, () => undefined);
    // At one of these shifts it begins where items do.
    const body = Buffer.concat([Buffer.alloc(shift), forged]);
    for (const id of ['a', 'b', 'c']) appendTo(receiving, [{ id, body }], '{}');
    receiving.close();
    const path = join(folder, FIRST_SEGMENT);
    const file = readFileSync(path);
    file.fill(0xee, 64, 64 + 200);
    writeFileSync(path, file);
    const again = new SegmentLog(options, () => undefined);
    const { events, damaged } = readAll(again);
    expect([events.map(({ id }) => id), damaged]).toEqual([['', 'b', 'c'], [1]]);
    again.close();
  }
});

test('a segment whose header is damaged is read all the same, one of another journal is refused', async () => {
  const folder = await temporaryFolder();
  const made = scene(folder, [[10], [20, 30]]);
  const file = Buffer.from(made.file);
  file.fill(0, 0, 64);
  expectFrames(reopened(made, file), made.frames);
  copyFileSync(join(folder, FIRST_SEGMENT), join(folder, FIRST_SEGMENT.replace('1.seg', '9.seg')));
  writeFileSync(join(folder, FIRST_SEGMENT), made.file);
  const options = { folder, salt: 54321, segmentBytes: 1e9, position: null, least: 0 };
  expect(() => new SegmentLog(options, () => undefined)).toThrow('belongs to another journal');
});

test('an erased record stays readable while what its header has of the body goes, wherever a power cut ends that', () => {
  const salt = 7;
  const record = Buffer.from(encodeRecords([{ event: makeEvent({}) }]));
  const [key, digest] = ['k'.repeat(12), 'd'.repeat(8)];
  finishRecord(record, 0, partsAt(record, 0), 5, { key, digest }, salt);
  record.set(ERASED_MARK);
  const isReadable = (bytes: Buffer): void =>
    expect(decodeRecord(bytes, 0, salt)).toMatchObject({ seq: 5, erased: true });
  isReadable(record);
  for (const [at, bytes] of withoutDigest(record, 0, salt)) {
    // The checksum lies in one sector; of what follows any part may be there.
    for (let done = at === 60 ? bytes.length : 0; done <= bytes.length; done += 1) {
      record.set(bytes.subarray(0, done), at);
      isReadable(record);
    }
  }
  expect(record.subarray(40, 60).toString('latin1')).toBe(`${key}${'\0'.repeat(8)}`);
  expect(record.readUInt32LE(4)).toBe(0);
  // Without the mark it is damage, as ever.
  record.set(record.subarray(0, 4).map((byte) => ~byte));
  record.writeUInt8(1, 55);
  expect(decodeRecord(record, 0, salt)).toBeNull();
});
