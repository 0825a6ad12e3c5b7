import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createTake } from '../../src/sources/take.ts';
import { createValidator } from '../../src/validate/envelope.ts';
import { temporaryFolder } from '../support/folders.ts';
import { toldById } from './guesses.ts';
import { eraseFrom, journalIn, userId } from './support.ts';

// A message whose encoding is not known, but whose body is plain JSON: it is known by what the body says of user and type, and kept without.
test('what is quarantined from a source for its encoding leaves no digest when its user is erased', async () => {
  const root = await temporaryFolder();
  const journal = await journalIn(join(root, 'journal'));
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
  expect((await eraseFrom(root, [journal], { id: user })).left).toEqual([]);
  expect(await journal.listQuarantine({})).toEqual([]);
  const key = JSON.stringify(['hub', user, 'daily.data.meal.created', 'msg_1']);
  expect(toldById(join(root, 'journal'), [{ source: 'hub', id: key, body }])).toBe(0);
});
