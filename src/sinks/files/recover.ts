import { readdir, rename, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { writeArchiveFile } from '../../archive/write-file.ts';
import { PART_EXTENSION, SENT_EXTENSION } from '../../core/archive.ts';
import { eventOfRecord, parseHead, parseRecord } from '../../core/archive-record.ts';
import type { Compression } from '../../core/compression.ts';
import { isSealed, parseSealed, SEALED_TYPE, type RecordOpener } from '../../core/sealed-record.ts';
import type { SinkContext } from '../../core/sink.ts';
import { readPlain, syncFolder } from '../../lib/durable.ts';
import { cutLines } from '../../lib/lines.ts';
import { holeIn } from '../../lib/tail.ts';
import { finishedPlace, Part, PartStats, type PartPlace } from './part.ts';
import { removePart } from './finish.ts';
import { identityOf, type Identified } from './recovered-ids.ts';
import type { RecoveredPart, Recovery } from './archive.ts';
import { isLockFile } from './writer-folders.ts';

/** What reads records that a crash left. */
export interface Reading extends Pick<SinkContext, 'log' | 'isErased'> {
  /** Of sealed records; null when none are expected. */
  readonly opener?: RecordOpener | null;
}

/**
 * Mends what a crash left in one writer's folder: removes temporary files, cuts torn ends off parts, takes records of
 * erased users out of them, removes parts whose file is finished and listed, and what was made of parts that are gone. Anything that is not a plain file or folder is reported by name and left alone.
 * @param openFolder the writer's folder, absolute, its lock held
 */
export async function recoverFolder(
  openFolder: string,
  recovery: Recovery,
  reading: Reading,
): Promise<RecoveredPart[]> {
  const places: PartPlace[] = [];
  const sent: PartPlace[] = [];
  const made: PartPlace[] = [];
  await walk(openFolder, '', { places, sent, made, log: reading.log, recovery });
  const finished = new Map<PartPlace, Compression>();
  for (const place of places) {
    const compression = await recovery.finishedAs(place);
    if (compression !== null) finished.set(place, compression);
  }
  const names = Array.from(finished, ([place, compression]) => finishedPlace(place, compression).name);
  const listed = await recovery.listed(new Set(names));
  const recovered: RecoveredPart[] = [];
  const there = new Set<string>();
  for (const place of places) {
    const compression = finished.get(place) ?? null;
    const { part, ids } = await mendPart(place, compression, reading);
    const state = stateOf(part, listed);
    if (part.length === 0) await removePart(part);
    else if (state === 'listed') await recovery.dispose(part);
    // The ids of a listed part still count: its last batch may not have been noted as delivered.
    if (part.length > 0) recovered.push({ part, ids, state });
    if (part.length > 0 && state !== 'listed') there.add(part.path);
  }
  for (const place of made) if (!there.has(new Part(place).path)) await recovery.clear(place);
  for (const place of sent) {
    const { ids, stats, length } = await scan(sentPath(place), reading);
    recovered.push({ part: new Part(place, { stats, length }), ids, state: 'listed' });
  }
  return recovered;
}

function stateOf(part: Part, listed: ReadonlySet<string>): RecoveredPart['state'] {
  if (part.compression === null) return 'unfinished';
  return listed.has(part.finishedName(part.compression)) ? 'listed' : 'renamed';
}

interface Found {
  readonly places: PartPlace[];
  readonly sent: PartPlace[];
  /** Of which finished files lie beside them, or where they were. */
  readonly made: PartPlace[];
  readonly recovery: Recovery;
  readonly log: Reading['log'];
}

/** Where the records of a part lie that are in their place. */
export function sentPath({ openFolder, folder, stem }: PartPlace): string {
  return join(openFolder, folder, `${stem}${SENT_EXTENSION}`);
}

/** Collects the parts; removes temporary files and empty folders. */
async function walk(openFolder: string, folder: string, found: Found): Promise<void> {
  const { log, recovery } = found;
  for (const entry of await readdir(join(openFolder, folder), { withFileTypes: true })) {
    const { name } = entry;
    if (folder === '' && isLockFile(name)) continue;
    const path = join(openFolder, folder, name);
    if (entry.isDirectory()) {
      await walk(openFolder, folder === '' ? name : `${folder}/${name}`, found);
      await rmdir(path).catch(() => undefined);
    } else if (!entry.isFile()) {
      log.warn({ path }, 'not a plain file; not followed');
    } else if (name.endsWith('.tmp')) {
      await unlink(path);
    } else if (name.endsWith(PART_EXTENSION)) {
      found.places.push({ openFolder, folder, stem: name.slice(0, -PART_EXTENSION.length) });
    } else if (name.endsWith(SENT_EXTENSION)) {
      found.sent.push({ openFolder, folder, stem: name.slice(0, -SENT_EXTENSION.length) });
    } else {
      const stem = recovery.stemOf(name);
      if (stem !== null) found.made.push({ openFolder, folder, stem });
      else if (!recovery.isOwn(name)) log.warn({ path }, 'not a file of this archive; left alone');
    }
  }
}

/** Reads a part, cuts off what was not written whole, and makes the rest durable, so that it may count as delivered. */
async function mendPart(
  place: PartPlace,
  compression: Compression | null,
  reading: Reading,
): Promise<Pick<RecoveredPart, 'part' | 'ids'>> {
  const { log } = reading;
  const { path } = new Part(place);
  let scanned = await scan(path, reading);
  if (scanned.erased > 0) {
    await leaveOutErased(place, scanned.length, reading);
    log.warn({ path, records: scanned.erased }, 'removed records of erased users from an unfinished file');
    scanned = await scan(path, reading);
  }
  const { stats, ids, length } = scanned;
  const part = new Part(place, { stats, length, compression });
  const cut = await part.mend();
  if (cut > 0) log.warn({ path, bytes: cut }, 'removed an incomplete end from an unfinished file');
  await part.release();
  return { part, ids };
}

/** Users may have been erased while nobody knew of the part. */
async function leaveOutErased(place: PartPlace, length: number, reading: Reading): Promise<void> {
  const { path, temporaryPath } = new Part(place);
  const kept = async function* (): AsyncGenerator<Buffer> {
    for await (const lines of cutLines(readPlain(path, length)))
      for (const { bytes } of lines)
        if (bytes !== null && readLine(bytes, reading)?.isErased !== true)
          yield Buffer.concat([bytes, LINE_BREAK]);
  };
  await writeArchiveFile(temporaryPath, kept, 'none', new AbortController().signal, await stat(path));
  await rename(temporaryPath, path);
  await syncFolder(dirname(path));
}

const LINE_BREAK = Buffer.from('\n');

interface Scanned {
  readonly stats: PartStats;
  readonly ids: readonly string[];
  readonly length: number;
  /** Records of erased users among them. */
  readonly erased: number;
}

/** What is in a part, as far as it was written whole. */
async function scan(path: string, reading: Reading): Promise<Scanned> {
  const { log } = reading;
  const stats = new PartStats();
  const ids: string[] = [];
  let length = 0;
  let erased = 0;
  scanning: for await (const lines of cutLines(readPlain(path))) {
    for (const { number, bytes, end, ended } of lines) {
      // A batch is one write and one sync: from a hole on, nothing was acknowledged.
      if (!ended || bytes === null || holeIn(bytes, length) !== -1) break scanning;
      const found = readLine(bytes, reading);
      if (found === null) {
        log.error({ path, line: number }, 'damaged record in an unfinished file; left as it is');
        stats.records += 1;
      } else {
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
  /** Null for a sealed record that stays closed: its user is erased, or the keys are not given any more; and for one without its body. */
  readonly event: Identified | null;
  readonly isErased: boolean;
}

/** Null for what is no record. */
function readLine(line: Buffer, reading: Pick<Reading, 'opener' | 'isErased'>): FoundLine | null {
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
