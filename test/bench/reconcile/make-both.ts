import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { systemClock } from '../../../src/core/clock.ts';
import { formatRecords } from '../../../src/core/archive-record.ts';
import type { Event } from '../../../src/core/event.ts';
import { parseTarget } from '../../../src/core/route.ts';
import { SqliteJournal } from '../../../src/journal/sqlite-journal.ts';
import { archivedEvent } from '../../replay/made-up-archive.ts';

/** The level at which the files sink writes. */
const GZIP_LEVEL = 4;
const BATCH = 2000;
/** Twenty events a second. */
const APART_MS = 50;

export const FIRST_RECEIVED = Date.UTC(2026, 10, 1);

/** When the last of so many events was received. */
export function lastReceived(events: number): number {
  return FIRST_RECEIVED + (events - 1) * APART_MS;
}

/**
 * Writes the same events into a journal, confirmed by the sink `archive`, and into gzip files of that sink.
 * @param folder gets `journal` and `archive`
 */
export async function makeBoth(
  folder: string,
  { events, files }: { readonly events: number; readonly files: number },
  signal: AbortSignal,
): Promise<void> {
  const archive = join(folder, 'archive');
  mkdirSync(archive, { recursive: true });
  const journal = await SqliteJournal.open({
    path: join(folder, 'journal'),
    retention: 1e12,
    maxBytes: 1e12,
    dedupWindow: 1000,
    create: true,
    clock: systemClock,
    onFailure: (error) => {
      throw error;
    },
  });
  await journal.openCursor('archive');
  await journal.acceptUnder([{ match: ['*'], to: [parseTarget('archive')] }]);
  for (let file = 0; file < files; file += 1) {
    const first = Math.round((file * events) / files);
    const count = Math.round(((file + 1) * events) / files) - first;
    const records: Buffer[] = [];
    for (let at = 0; at < count; at += BATCH) {
      signal.throwIfAborted();
      const batch = Array.from({ length: Math.min(BATCH, count - at) }, (_, n) => eventOf(first + at + n));
      records.push(formatRecords(batch));
      await Promise.all(batch.map((event) => journal.accept(event)));
    }
    const packed = await promisify(gzip)(Buffer.concat(records), { level: GZIP_LEVEL });
    await writeFile(join(archive, `${String(file).padStart(4, '0')}.ndjson.gz`), packed);
  }
  journal.moveCursor('archive', events);
  await journal.flush();
  await journal.close();
}

function eventOf(n: number): Event {
  return { ...archivedEvent(n), receivedAt: FIRST_RECEIVED + n * APART_MS };
}
