import { readdir, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { PART_EXTENSION, SENT_EXTENSION, type FileForm } from '../../core/archive.ts';
import { parseHead, parseRecord } from '../../core/archive-record.ts';
import { isSealed, parseSealed, SEALED_TYPE, type RecordOpener } from '../../core/sealed-record.ts';
import type { SinkLog } from '../../core/sink.ts';
import { readPlain } from '../../lib/durable.ts';
import { cutLines } from '../../lib/lines.ts';
import { holeIn } from '../../lib/tail.ts';
import { Part, PartStats, type PartPlace } from './part.ts';
import { removePart } from './finish.ts';
import { identityOf, type Identified } from './recovered-ids.ts';
import type { RecoveredPart, Recovery } from './target.ts';
import { isLockFile } from './writer-folders.ts';

/**
 * Mends what a crash left in one writer's folder: removes temporary files, cuts torn ends off parts, removes parts whose
 * file is finished and listed, and what was made of parts that are gone. Anything that is not a plain file or folder is reported by name and left alone.
 * @param openFolder the writer's folder, absolute, its lock held
 * @param opener of sealed records; null when none are expected
 */
export async function recoverFolder(
  openFolder: string,
  recovery: Recovery,
  log: SinkLog,
  opener: RecordOpener | null = null,
): Promise<RecoveredPart[]> {
  const places: PartPlace[] = [];
  const sent: PartPlace[] = [];
  const made: PartPlace[] = [];
  await walk(openFolder, '', { places, sent, made, log, recovery });
  const finished = new Map<PartPlace, FileForm>();
  for (const place of places) {
    const form = await recovery.finishedAs(place);
    if (form !== null) finished.set(place, form);
  }
  const names = new Set([...finished].map(([place, form]) => new Part(place).finishedName(form)));
  const listed = await recovery.listed(names);
  const recovered: RecoveredPart[] = [];
  const there = new Set<string>();
  for (const place of places) {
    const form = finished.get(place) ?? null;
    const { part, ids } = await mendPart(place, form, log, opener);
    const state = stateOf(part, listed);
    if (part.length === 0) await removePart(part);
    else if (state === 'listed') await recovery.dispose(part);
    // The ids of a listed part still count: its last batch may not have been noted as delivered.
    if (part.length > 0) recovered.push({ part, ids, state });
    if (part.length > 0 && state !== 'listed') there.add(part.path);
  }
  for (const place of made) if (!there.has(new Part(place).path)) await recovery.clear(place);
  for (const place of sent) {
    const { ids, stats, length } = await scan(sentPath(place), log, opener);
    recovered.push({ part: new Part(place, { stats, length }), ids, state: 'listed' });
  }
  return recovered;
}

function stateOf(part: Part, listed: ReadonlySet<string>): RecoveredPart['state'] {
  if (part.form === null) return 'unfinished';
  return listed.has(part.finishedName(part.form)) ? 'listed' : 'renamed';
}

interface Found {
  readonly places: PartPlace[];
  readonly sent: PartPlace[];
  /** Of which finished files lie beside them, or where they were. */
  readonly made: PartPlace[];
  readonly recovery: Recovery;
  readonly log: SinkLog;
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
  form: FileForm | null,
  log: SinkLog,
  opener: RecordOpener | null,
): Promise<Pick<RecoveredPart, 'part' | 'ids'>> {
  const { path } = new Part(place);
  const { stats, ids, length } = await scan(path, log, opener);
  const part = new Part(place, { stats, length, form });
  const cut = await part.mend();
  if (cut > 0) log.warn({ path, bytes: cut }, 'removed an incomplete end from an unfinished file');
  await part.release();
  return { part, ids };
}

/** What is in a part, as far as it was written whole. */
async function scan(
  path: string,
  log: SinkLog,
  opener: RecordOpener | null,
): Promise<{ readonly stats: PartStats; readonly ids: readonly string[]; readonly length: number }> {
  const stats = new PartStats();
  const ids: string[] = [];
  let length = 0;
  reading: for await (const lines of cutLines(readPlain(path))) {
    for (const { number, bytes, end, ended } of lines) {
      // A batch is one write and one sync: from a hole on, nothing was acknowledged.
      if (!ended || bytes === null || holeIn(bytes, length) !== -1) break reading;
      const found = readLine(bytes, opener);
      if (found === null) {
        log.error({ path, line: number }, 'damaged record in an unfinished file; left as it is');
        stats.records += 1;
      } else {
        stats.add(found.type, Date.parse(found.receivedAt));
        if (found.event !== null) ids.push(identityOf(found.event));
      }
      length = end;
    }
  }
  return { stats, ids, length };
}

interface FoundLine {
  /** As the manifest counts it. */
  readonly type: string;
  readonly receivedAt: string;
  /** Null for a sealed record that stays closed: its user is erased, or the keys are not given any more; and for one without its body. */
  readonly event: Identified | null;
}

/** Null for what is no record. */
function readLine(line: Buffer, opener: RecordOpener | null): FoundLine | null {
  if (!isSealed(line)) {
    const whole = parseRecord(line);
    const record = whole.ok ? whole.record : parseHead(line)?.record;
    if (record === undefined) return null;
    const { id, source, event_type: type, user_id: user, received_at: receivedAt } = record;
    return { type, receivedAt, event: whole.ok ? { id, source, type, user, body: whole.body } : null };
  }
  const sealed = parseSealed(line);
  if (sealed === null) return null;
  const opened = opener?.open(sealed);
  const event = opened?.ok === true ? (readLine(opened.line, null)?.event ?? null) : null;
  return { type: SEALED_TYPE, receivedAt: sealed.received_at, event };
}
