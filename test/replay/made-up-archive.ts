import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { formatRecords } from '../../src/core/archive-record.ts';
import type { Event } from '../../src/core/event.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';

/** The nth made-up event, as it was received: one a minute from the first of November on. */
export function archivedEvent(n: number): Event {
  const { id, type, body } = madeUpEvent(n);
  const { team_id, user_id, client_user_id } = JSON.parse(body.toString()) as Record<string, string>;
  return {
    id,
    source: 'webhooks',
    type,
    team: team_id ?? null,
    user: user_id ?? null,
    clientUser: client_user_id ?? null,
    receivedAt: Date.UTC(2026, 10, 1) + n * 60_000,
    headers: { 'webhook-id': id, 'webhook-timestamp': '1790000000', 'webhook-signature': 'v1,bWFkZSB1cA==' },
    body,
  };
}

const COMPRESS = {
  'ndjson.gz': (text: Buffer) => gzipSync(text, { level: 1 }),
  'ndjson.zst': (text: Buffer) => zstdCompressSync(text),
  ndjson: (text: Buffer) => text,
} as const;

/**
 * Writes files of records, gzip, zstd and plain in turn.
 * @returns what they hold, in the order of the files
 */
export function writeArchive(
  folder: string,
  { files, each, only }: { files: number; each: number; only?: keyof typeof COMPRESS },
): Event[] {
  mkdirSync(folder, { recursive: true });
  const kinds = Object.keys(COMPRESS) as (keyof typeof COMPRESS)[];
  const all: Event[] = [];
  for (let file = 0; file < files; file += 1) {
    const events = Array.from({ length: each }, (_, n) => archivedEvent(file * each + n));
    const kind = only ?? kinds[file % kinds.length] ?? 'ndjson';
    const name = `${String(file).padStart(4, '0')}.${kind}`;
    writeFileSync(join(folder, name), COMPRESS[kind](formatRecords(events)));
    all.push(...events);
  }
  return all;
}
