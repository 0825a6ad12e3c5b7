import { hash } from 'node:crypto';
import type { Places } from '../../archive/places.ts';
import { readArchive } from '../../archive/read.ts';
import { verifyArchive } from '../../archive/verify.ts';
import type { DemoHistory } from './history.ts';
import type { DemoAnswers } from './requests.ts';

export type DemoCounts = Awaited<ReturnType<typeof countArchive>>;

/** Compares the archive with the answers: it must have each accepted event once, byte for byte, and nothing else. */
export async function countArchive(
  archive: string,
  places: Places,
  answers: DemoAnswers,
  history: DemoHistory,
) {
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
    /** Requests, good and bad. */
    sent: answers.sent,
    accepted,
    duplicates: duplicate,
    quarantined,
    refused,
    /** Records read back from the archive's files. */
    delivered,
    archive,
    files: files.size,
    /** The stand-in of the service: its events in the archive, and its meals in the tables. */
    history: { users, events, meals, meal_items, tables },
    /** What does not add up. */
    problems: problems.slice(0, 20),
  };
}
