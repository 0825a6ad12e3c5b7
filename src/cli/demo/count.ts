import { hash } from 'node:crypto';
import type { Places } from '../../archive/places.ts';
import { readArchive } from '../../archive/read.ts';
import { verifyArchive } from '../../archive/verify.ts';
import type { DemoHistory } from './history.ts';
import type { DemoAnswers } from './requests.ts';

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
  /** The stand-in of the service: its events in the archive, and its meals in the tables. */
  readonly history: Omit<DemoHistory, 'events' | 'problems'> & { readonly events: number };
  /** What does not add up; empty when `ok`. */
  readonly problems: readonly string[];
}

/** Compares the archive with the answers: it must have each accepted event once, byte for byte, and nothing else. */
export async function countArchive(
  archive: string,
  places: Places,
  answers: DemoAnswers,
  history: DemoHistory,
): Promise<DemoCounts> {
  const problems = [...answers.problems, ...history.problems];
  const missing = new Map([...answers.bodies, ...history.events]);
  const files = new Set<string>();
  let delivered = 0;
  let events = 0;
  for await (const item of readArchive(archive, { places })) {
    files.add(item.file);
    if (item.kind !== 'record') {
      problems.push(`${item.file}:${item.line ?? ''}: ${item.reason}`);
      continue;
    }
    const { id } = item.record;
    if (history.events.has(id)) events += 1;
    else delivered += 1;
    const expected = missing.get(id);
    if (expected === undefined)
      problems.push(
        `${id}: ${answers.bodies.has(id) || history.events.has(id) ? 'twice' : 'never accepted'}`,
      );
    else if (expected !== hash('sha256', item.body, 'hex'))
      problems.push(`${id}: other bytes than were sent`);
    missing.delete(id);
  }
  for (const id of missing.keys()) problems.push(`${id}: accepted, but not in the archive`);
  const report = await verifyArchive(archive, { places });
  for (const { file, code } of report.differences) problems.push(`${file}: ${code}`);
  const { accepted, duplicate, quarantined, refused } = answers.counts;
  const { users, meals, meal_items, tables } = history;
  return {
    ok: problems.length === 0,
    sent: answers.sent,
    accepted,
    duplicates: duplicate,
    quarantined,
    refused,
    delivered,
    archive,
    files: files.size,
    history: { users, events, meals, meal_items, tables },
    problems: problems.slice(0, 20),
  };
}
