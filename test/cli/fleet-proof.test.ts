import { hash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { proveFleet } from '../../src/cli/demo/fleet-proof.ts';
import { temporaryFolder } from '../support/folders.ts';

const BODY = '{"a":1}';

/** Events of one user, in the order of their numbers; of those from `after` on the kill was over. */
const sentOf = (count: number, after: number) =>
  new Map(
    Array.from({ length: count }, (_, number) => [
      `e${number}`,
      { user: 0, number, body: hash('sha256', BODY, 'hex'), before: number < after },
    ]),
  );

const record = (number: number, body = BODY): string =>
  `{"id":"e${number}","source":"s","received_at":"2026-01-01T00:00:00.000Z","event_type":"t","team_id":null,"user_id":null,"client_user_id":null,"headers":{},"event":${body}}\n`;

async function prove(killed: readonly string[], other: readonly string[]) {
  const folder = await temporaryFolder();
  for (const [name, lines] of Object.entries({ killed, other })) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'a.ndjson'), lines.join(''));
  }
  return proveFleet([join(folder, 'killed'), join(folder, 'other')], sentOf(5, 3));
}

const records = (...numbers: number[]): string[] => numbers.map((number) => record(number));

test('the proof of the fleet: holds for what is there once, or twice over the kill', async () => {
  expect(await prove(records(0, 1), records(2, 3, 4))).toEqual({
    delivered: 5,
    archived: [2, 3],
    twice: 0,
    problems: [],
  });
  expect(await prove(records(0, 1, 2), records(1, 2, 3, 4))).toMatchObject({ twice: 2, problems: [] });
});

test.each([
  ['lost', records(0, 1), records(3, 4), 'e2: answered with 2xx, but in no archive'],
  ['twice at one', records(0, 1), records(2, 3, 4, 4), 'e4: twice in'],
  ['out of order at one', records(0, 1), records(3, 2, 4), 'e2: after a later event of its user'],
  ['out of order over both', records(0, 2), records(1, 3, 4), 'e1: after a later event of its user, from'],
  [
    'sent after the kill',
    records(0, 1, 2, 3),
    records(4),
    'e3: at the killed replica, but sent after the kill',
  ],
  ['other bytes', [record(0, '{"a": 1}'), record(1)], records(2, 3, 4), 'e0: other bytes'],
  ['unknown', records(0, 1), [...records(2, 3, 4), record(9)], 'e9: never sent'],
])('the proof of the fleet fails: %s', async (_, killed, other, problem) => {
  expect((await prove(killed, other)).problems).toEqual([expect.stringContaining(problem)]);
});
