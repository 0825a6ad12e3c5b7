import { readdirSync, readFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { onTestFinished, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { createTake } from '../../src/sources/take.ts';
import { createValidator } from '../../src/validate/envelope.ts';
import { temporaryFolder } from '../support/folders.ts';
import { erasuresOver, JOURNAL_LIMITS, userId } from './support.ts';

// A message whose encoding is not known, but whose body is plain JSON: it is known by what the body says of user and type, and kept without.
test('what is quarantined from a source for its encoding leaves no digest when its user is erased', async () => {
  const root = await temporaryFolder();
  const journal = await SqliteJournal.open({
    ...JOURNAL_LIMITS,
    path: join(root, 'journal'),
    create: true,
    clock: systemClock,
    onFailure: (error) => {
      throw error;
    },
  });
  onTestFinished(() => journal.close());
  const validate = createValidator({
    fields: { type: 'event_type', team: 'team_id', user: 'user_id', clientUser: 'client_user_id' },
    userIds: 'uuid',
    require: [],
    teams: [],
  } as never);
  const take = createTake({ ingest: journal, validate, maxBytes: 1e6 });
  const user = userId(1);
  const body = Buffer.from(
    JSON.stringify({
      event_type: 'daily.data.meal.created',
      team_id: userId(9),
      user_id: user,
      client_user_id: 'c',
      n: 1,
    }),
  );
  await take('hub', [
    { body, encoding: 'x-unknown', properties: { 'idempotency-key': 'msg_1' }, receivedAt: 1 },
  ]);
  const [kept] = await journal.listQuarantine({});
  expect(kept).toMatchObject({ user: null, type: '' });
  const { erasures } = erasuresOver(join(root, 'erasure'), [journal]);
  await erasures.request({ by: 'user', id: user, team: null }, true);
  expect((await erasures.run()).left).toEqual([]);
  expect(await journal.listQuarantine({})).toEqual([]);
  // By who knows the delivery, and guesses the body.
  const key = JSON.stringify(['hub', user, 'daily.data.meal.created', 'msg_1']);
  const place = createHash('sha256').update(`3:hub${key}`).digest();
  const digest = createHash('sha256')
    .update(place.toString('latin1', 12) + createHash('sha256').update(body).digest().toString('latin1'))
    .digest()
    .subarray(0, 8);
  const files = readdirSync(join(root, 'journal')).map((name) => readFileSync(join(root, 'journal', name)));
  expect(files.some((bytes) => bytes.includes(digest))).toBe(false);
});
