import { readdir, rename, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isOfSegments } from '../../archive/kept-segments.ts';
import { writeArchiveFile } from '../../archive/write-file.ts';
import { PART_EXTENSION, SENT_EXTENSION } from '../../core/archive.ts';
import { eventOfRecord, parseHead, parseRecord } from '../../core/archive-record.ts';
import { COMPRESSIONS, type Compression } from '../../core/compression.ts';
import { isSealed, parseSealed, SEALED_TYPE, type RecordOpener } from '../../core/sealed-record.ts';
import type { SinkContext } from '../../core/sink.ts';
import { NEVER } from '../../lib/abort.ts';
import { readPlain, syncFolder } from '../../lib/durable.ts';
import { cutLines } from '../../lib/lines.ts';
import { holeIn } from '../../lib/tail.ts';
import type { Archive } from './archive.ts';
import { stemOf } from './finished-files.ts';
import { fileOf, Part, partPath, removePart, sentPath, type PartName } from './part.ts';
import { PartStats } from './part-stats.ts';
import { identityOf, type Identified } from './recovered-ids.ts';
import { isLockFile } from './writer-folders.ts';

/** A part found at open, mended. */
export interface RecoveredPart {
  readonly part: Part;
  /** Identities of its events, by `identityOf`. */
  readonly ids: readonly string[];
  /**
   * `unfinished`: can take more records. `finished`: its finished file exists, the line in the manifest does not; finish it
   * again. `listed`: all is done; only its ids matter.
   */
  readonly state: 'unfinished' | 'finished' | 'listed';
}

/** What reads records that a crash left. */
export interface RecordReading extends Pick<SinkContext, 'log' | 'isErased'> {
  /** Of sealed records; null where none are expected. */
  readonly opener?: RecordOpener | null;
}

/**
 * Mends what a crash left in one writer's folder: removes temporary files, cuts torn ends off parts, takes records of
 * erased users out of them, ends parts whose file is listed, and removes files written of parts that are gone. Logs anything
 * else by name, and leaves it alone.
 * @param openFolder the writer's folder, absolute, its lock held
 */
export async function recoverFolder(
  openFolder: string,
  archive: Archive,
  reading: RecordReading,
): Promise<RecoveredPart[]> {
  const found: FolderContent = { parts: [], sent: [], finished: [] };
  await walk(openFolder, '', found, reading.log);
  const finished = new Map<PartName, Compression>();
  for (const name of found.parts)
    for (const compression of COMPRESSIONS)
      if (!finished.has(name) && (await archive.hasFinished(name, compression)))
        finished.set(name, compression);
  const files = Array.from(finished, ([name, compression]) => fileOf(name, compression));
  const listed = await archive.listed(new Set(files));
  const recovered: RecoveredPart[] = [];
  const kept = new Set<string>();
  for (const name of found.parts) {
    const compression = finished.get(name) ?? null;
    const { part, ids } = await mendPart(name, compression, reading);
    if (part.length === 0) {
      await removePart(part);
      continue;
    }
    const isListed = compression !== null && listed.has(fileOf(name, compression));
    if (isListed) await archive.end(part);
    else kept.add(part.path);
    // The ids of a listed part still count: its last batch may not have been noted as delivered.
    const state = isListed ? 'listed' : compression === null ? 'unfinished' : 'finished';
    recovered.push({ part, ids, state });
  }
  for (const name of found.finished) if (!kept.has(partPath(name))) await archive.clear(name);
  for (const name of found.sent) {
    const { ids, stats, length } = await scan(sentPath(name), reading);
    recovered.push({ part: new Part(name, { stats, length }), ids, state: 'listed' });
  }
  return recovered;
}

interface FolderContent {
  readonly parts: PartName[];
  readonly sent: PartName[];
  /** Parts of which finished files lie there; the parts themselves may be gone. */
  readonly finished: PartName[];
}

/** Collects the files of one writer; removes temporary files and empty folders. */
async function walk(
  openFolder: string,
  folder: string,
  found: FolderContent,
  log: RecordReading['log'],
): Promise<void> {
  for (const entry of await readdir(join(openFolder, folder), { withFileTypes: true })) {
    const { name } = entry;
    if (folder === '' && isLockFile(name)) continue;
    const path = join(openFolder, folder, name);
    const stem = stemOf(name);
    if (entry.isDirectory()) {
      await walk(openFolder, folder === '' ? name : `${folder}/${name}`, found, log);
      await rmdir(path).catch(() => undefined);
    } else if (!entry.isFile()) {
      log.warn({ path }, 'not a plain file; not followed');
    } else if (name.endsWith('.tmp')) {
      await unlink(path);
    } else if (name.endsWith(PART_EXTENSION)) {
      found.parts.push({ openFolder, folder, stem: name.slice(0, -PART_EXTENSION.length) });
    } else if (name.endsWith(SENT_EXTENSION)) {
      found.sent.push({ openFolder, folder, stem: name.slice(0, -SENT_EXTENSION.length) });
    } else if (stem !== null) {
      found.finished.push({ openFolder, folder, stem });
    } else if (!isOfSegments(name)) {
      log.warn({ path }, 'not a file of this archive; left alone');
    }
  }
}

/** Reads a part, cuts off what was not written whole, and syncs the rest, so that it may count as delivered. */
async function mendPart(
  name: PartName,
  compression: Compression | null,
  reading: RecordReading,
): Promise<Pick<RecoveredPart, 'part' | 'ids'>> {
  const { log } = reading;
  const path = partPath(name);
  let scanned = await scan(path, reading);
  if (scanned.erased > 0) {
    await leaveOutErased(new Part(name, scanned), reading);
    log.warn({ path, records: scanned.erased }, 'removed records of erased users from an unfinished file');
    scanned = await scan(path, reading);
  }
  const { stats, ids, length } = scanned;
  const part = new Part(name, { stats, length, compression });
  const cut = await part.mend();
  if (cut > 0) log.warn({ path, bytes: cut }, 'removed an incomplete end from an unfinished file');
  await part.release();
  return { part, ids };
}

/** An erasure may have run while no process had the part open. */
async function leaveOutErased({ path, length, temporaryPath }: Part, reading: RecordReading): Promise<void> {
  const kept = async function* (): AsyncGenerator<Buffer> {
    for await (const lines of cutLines(readPlain(path, length)))
      for (const { bytes } of lines)
        if (bytes !== null && readLine(bytes, reading)?.isErased !== true)
          yield Buffer.concat([bytes, LINE_BREAK]);
  };
  await writeArchiveFile(temporaryPath, kept, 'none', NEVER, await stat(path));
  await rename(temporaryPath, path);
  await syncFolder(dirname(path));
}

const LINE_BREAK = Buffer.from('\n');

interface ScannedPart {
  readonly stats: PartStats;
  readonly ids: readonly string[];
  readonly length: number;
  /** Records of erased users among them. */
  readonly erased: number;
}

/** What is in a part, as far as it was written whole. */
async function scan(path: string, reading: RecordReading): Promise<ScannedPart> {
  const { log } = reading;
  const stats = new PartStats();
  const ids: string[] = [];
  let length = 0;
  let erased = 0;
  let begin = 0;
  // Lines that an interrupted write may have left: it is one write and one sync, so that none of it was acknowledged.
  let torn: number[] = [];
  const leave = (line: number): void => {
    log.error({ path, line }, 'damaged record in an unfinished file; left as it is');
    stats.records += 1;
  };
  scanning: for await (const lines of cutLines(readPlain(path))) {
    for (const { number, bytes, end, ended } of lines) {
      if (!ended || bytes === null) break scanning;
      const isHoled = holeIn(bytes, begin) !== -1;
      const found = isHoled ? null : readLine(bytes, reading);
      begin = end;
      if (isHoled || (found === null && torn.length > 0)) {
        torn.push(number);
        continue;
      }
      // A whole record follows: they may be of a write that was acknowledged.
      for (const line of torn) leave(line);
      torn = [];
      if (found === null) leave(number);
      else {
        stats.add(found.type, Date.parse(found.receivedAt));
        if (found.isErased) erased += 1;
        if (found.event !== null) ids.push(identityOf(found.event));
      }
      length = end;
    }
  }
  return { stats, ids, length, erased };
}

interface FoundLine {
  /** As the manifest counts it. */
  readonly type: string;
  readonly receivedAt: string;
  /** Null for a record without its body, and for a sealed one that cannot be opened: its user is erased, or the key is missing. */
  readonly event: Identified | null;
  readonly isErased: boolean;
}

/** Null for a line that is no record. */
function readLine(line: Buffer, reading: Pick<RecordReading, 'opener' | 'isErased'>): FoundLine | null {
  const { opener = null, isErased = () => false } = reading;
  if (!isSealed(line)) {
    const whole = parseRecord(line);
    const record = whole.ok ? whole.record : parseHead(line)?.record;
    if (record === undefined) return null;
    const { id, source, event_type: type, user_id: user, received_at: receivedAt } = record;
    const { team_id: team, client_user_id: clientUser } = record;
    if (!whole.ok) return { type, receivedAt, event: null, isErased: isErased({ team, user, clientUser }) };
    const { body } = whole;
    const event = { id, source, type, user, body };
    return { type, receivedAt, event, isErased: isErased(eventOfRecord(record, body)) };
  }
  const sealed = parseSealed(line);
  if (sealed === null) return null;
  const opened = opener?.open(sealed);
  const found = opened?.ok === true ? readLine(opened.line, { isErased }) : null;
  const { event = null, isErased: gone = false } = found ?? {};
  return { type: SEALED_TYPE, receivedAt: sealed.received_at, event, isErased: gone };
}
