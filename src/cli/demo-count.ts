import { hash } from 'node:crypto';
import { readArchive } from '../archive/read.ts';
import { verifyArchive } from '../archive/verify.ts';
import type { Tally } from './demo-requests.ts';

export interface DemoCounts {
  readonly ok: boolean;
  /** Requests, good and bad. */
  readonly sent: number;
  readonly accepted: number;
  readonly duplicates: number;
  readonly quarantined: number;
  readonly refused: number;
  /** Records read back from the archive's files. */
  readonly delivered: number;
  readonly archive: string;
  readonly files: number;
  /** What does not add up; empty when `ok`. */
  readonly problems: readonly string[];
}

/** Reads the archive back and holds it against the answers: each accepted event once, byte for byte, nothing else. */
export async function countArchive(archive: string, tally: Tally): Promise<DemoCounts> {
  const problems = [...tally.problems];
  const missing = new Map(tally.bodies);
  const files = new Set<string>();
  let delivered = 0;
  for await (const item of readArchive(archive)) {
    files.add(item.file);
    if (item.kind !== 'record') {
      problems.push(`${item.file}:${item.line ?? ''}: ${item.reason}`);
      continue;
    }
    delivered += 1;
    const { id } = item.record;
    const expected = missing.get(id);
    if (expected === undefined) problems.push(`${id}: ${tally.bodies.has(id) ? 'twice' : 'never accepted'}`);
    else if (expected !== hash('sha256', item.body, 'hex'))
      problems.push(`${id}: other bytes than were sent`);
    missing.delete(id);
  }
  for (const id of missing.keys()) problems.push(`${id}: accepted, but not in the archive`);
  const report = await verifyArchive(archive);
  for (const { file, code } of report.differences) problems.push(`${file}: ${code}`);
  const { accepted, duplicate, quarantined, refused } = tally.counts;
  return {
    ok: problems.length === 0,
    sent: tally.sent,
    accepted,
    duplicates: duplicate,
    quarantined,
    refused,
    delivered,
    archive,
    files: files.size,
    problems: problems.slice(0, 20),
  };
}
