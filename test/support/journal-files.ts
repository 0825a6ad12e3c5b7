import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { defineRowHash, SUM_TRIGGERS } from '../../src/journal/sums.ts';

/** Name of the segment that a new journal begins with. */
export const FIRST_SEGMENT = 'events-0000000000000001-0000000000000001.seg';

/** Paths of a journal's segments, the oldest first. */
export function segmentsOf(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.seg'));
  return names.toSorted().map((name) => join(folder, name));
}

/** Path of the segment that is written to, or will be. */
export function newestSegment(folder: string): string {
  return (existsSync(folder) ? segmentsOf(folder).at(-1) : undefined) ?? join(folder, FIRST_SEGMENT);
}

/** Changes rows of a closed journal's database as its owner would, with their sums. */
export function editDatabase(folder: string, edit: (db: Database.Database) => void): void {
  const db = new Database(join(folder, 'journal.db'));
  defineRowHash(db);
  db.exec(SUM_TRIGGERS);
  edit(db);
  db.close();
}
