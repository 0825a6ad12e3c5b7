import { hash } from 'node:crypto';
import { readArchive } from '../../archive/read.ts';
import type { Sent } from './fleet-load.ts';

export interface FleetProof {
  /** Events found at least once. */
  readonly delivered: number;
  /** Records in the archive of each replica, the killed one first. */
  readonly archived: readonly number[];
  /** Events in both archives: under way at the kill, under the same id and thus the same idempotency key. */
  readonly twice: number;
  readonly problems: readonly string[];
}

/** What can be under way at a kill: a batch of the archive, and what a deliverer sends before it has noted what is settled. */
const MOST_TWICE = 1000 + 200;

/**
 * Holds the files of both archives against the sender's own list: each event is there byte for byte, and those of a user are
 * in order. The killed replica never comes back, so all that it wrote was before all that the other took over from it.
 * @param killed its archive; the last file has no end
 */
export async function proveFleet(
  [killed, other]: readonly [string, string],
  sent: ReadonlyMap<string, Sent>,
): Promise<FleetProof> {
  const problems: string[] = [];
  const read = async (archive: string): Promise<ReadonlySet<string>> => {
    const seen = new Set<string>();
    const last = new Map<number, number>();
    for await (const item of readArchive(archive, { parts: true })) {
      if (item.kind !== 'record') {
        problems.push(`${archive}/${item.file}:${item.line ?? ''}: ${item.reason}`);
        continue;
      }
      const { id } = item.record;
      const expected = sent.get(id);
      if (expected === undefined) problems.push(`${id}: never sent`);
      else if (seen.has(id)) problems.push(`${id}: twice in ${archive}`);
      else {
        if (hash('sha256', item.body, 'hex') !== expected.body)
          problems.push(`${id}: other bytes than were sent`);
        const { user, number } = expected;
        if ((last.get(user) ?? -1) > number) problems.push(`${id}: after a later event of its user`);
        last.set(user, number);
      }
      seen.add(id);
    }
    return seen;
  };
  const [first, second] = [await read(killed), await read(other)];
  const taken = new Map<number, number>();
  for (const [id, { user, number }] of sent)
    if (first.has(id)) taken.set(user, Math.max(taken.get(user) ?? -1, number));
  let [delivered, twice] = [0, 0];
  for (const [id, { user, number, before }] of sent) {
    const [isFirst, isSecond] = [first.has(id), second.has(id)];
    if (isFirst || isSecond) delivered += 1;
    else problems.push(`${id}: answered with 2xx, but in no archive`);
    if (isFirst && !before) problems.push(`${id}: at the killed replica, but sent after the kill`);
    if (isFirst && isSecond) twice += 1;
    else if (isSecond && number < (taken.get(user) ?? -1))
      problems.push(`${id}: after a later event of its user, from the killed replica`);
  }
  if (twice > MOST_TWICE)
    problems.push(`${twice} events twice: more than the ${MOST_TWICE} that can be under way`);
  return { delivered, archived: [first.size, second.size], twice, problems: problems.slice(0, 20) };
}
