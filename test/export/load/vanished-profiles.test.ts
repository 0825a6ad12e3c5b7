import { describe, expect, test } from 'vitest';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { backfill, sandbox } from '../../history/backfill/support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { archived } from '../support.ts';
import { kindsOf, load, postgresServer } from './support.ts';

describe.each(kindsOf(postgresServer()))('profiles loaded into $kind', ({ skip, make }) => {
  test.skipIf(skip)('of each provider stay when the service answers with one of them', async () => {
    const service = await sandbox({ users: 1 });
    const [user] = service.state.users.list(service.teamId);
    const range = { startMs: 0, endMs: Number.MAX_SAFE_INTEGER };
    const profiles = user === undefined ? [] : [...service.state.health.summaries('profile', user, range)];
    expect(profiles.length).toBeGreaterThan(1);
    const events = profiles.map((data, n) => {
      const type = 'daily.data.profile.created';
      const ids = { team_id: service.teamId, user_id: user?.id, client_user_id: null };
      return contractEvent(n, {
        type,
        body: Buffer.from(JSON.stringify({ event_type: type, data, ...ids })),
      });
    });
    const database = await make();
    await load(await archived(events), database, '--table', 'profiles');
    const out = await temporaryFolder();
    const args = ['--all-users', '--resource', 'profile', '--since', '2026-01-01', '--until', '2026-02-01'];
    expect(await backfill(service, out, ...args)).toMatchObject({ code: 0 });
    expect(await load(out, database)).toMatchObject({ code: 0 });
    const ids = profiles.map(({ id }) => String(id)).toSorted();
    expect(await database.sql('SELECT id FROM profiles_latest ORDER BY id')).toEqual(ids);
  });
});
