import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { standIn } from '../backfill/stand-in.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig, type Ended } from '../support/millrace.ts';

const NO_DOCUMENTS = ['', '<html>', '{"detail":"maintenance"}', '{"meals":[{"id":"other"},{"id":"b"'];

async function parts() {
  const service = await standIn({ users: 2, meals: 4 });
  const folder = await temporaryFolder();
  const users = service.users.flatMap((user) => ['--user', user]);
  const range = ['--since', '2026-01-01', '--until', '2026-01-31'];
  const args = ['reconcile', '--config', writeConfig(folder), '--service', '--json', ...range, ...users];
  const run = (...more: readonly string[]): Promise<Ended> =>
    millrace([...args, ...more], { env: service.env, cwd: folder });
  return { service, folder, run };
}

test.each(NO_DOCUMENTS)(
  'an answer that is no document is asked for again, and leaves nothing: %s',
  async (body) => {
    const { service, folder, run } = await parts();
    const second = service.users[1] ?? '';
    service.instead = (_, user) => (user === second && service.asked.get(user) === 1 ? body : null);
    const ended = await run('--fill', join(folder, 'fill'));
    expect([ended.code, JSON.parse(ended.stdout)]).toMatchObject([4, { meals: 8, missing: 8, rejects: 0 }]);
    const rows = readFileSync(join(folder, 'fill', 'meals.ndjson'), 'utf8')
      .split('\n')
      .filter(Boolean);
    expect(rows.map((row) => (JSON.parse(row) as { id: string }).id).toSorted()).toEqual(service.mealIds());
  },
);
