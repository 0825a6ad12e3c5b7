import { describe, expect, test } from 'vitest';
import { archived, mealEvent } from '../support.ts';
import { backfillOf } from './backfills.ts';
import { kindsOf, load, postgresServer } from './support.ts';

describe.each(kindsOf(postgresServer()))('what is noted of loads in $kind', ({ skip, make }) => {
  test.skipIf(skip)('is not begun again when a part of it is missing', async () => {
    for (const lost of ['loads', 'events', 'duplicates', 'tables']) {
      const [database, folder] = [await make(), await archived([mealEvent(1), mealEvent(2)])];
      await load(folder, database, '--table', 'meals');
      await database.sql(`DROP TABLE _millrace_${lost}`);
      const { code, stderr } = await load(folder, database, '--table', 'meals');
      expect([code, stderr]).toEqual([1, expect.stringContaining(`no table _millrace_${lost}`)]);
      const status = await load(folder, database, '--status');
      expect([status.code, status.stderr]).toEqual([
        2,
        expect.stringContaining(`no table _millrace_${lost}`),
      ]);
      expect(await database.sql('SELECT count(*) FROM meals')).toEqual(['2']);
    }
  });

  test.skipIf(skip)('is not begun again when a load of a backfill is missing', async () => {
    const [database, folder] = [await make(), await backfillOf([{ id: 'm-1' }], [{ user_id: 'user-1' }])];
    await load(folder, database);
    await database.sql('DELETE FROM _millrace_loads');
    const { code, stderr } = await load(folder, database);
    expect([code, stderr]).toEqual([1, expect.stringContaining('_millrace_loads has no row of load 1,')]);
    expect(await database.sql('SELECT count(*) FROM meals')).toEqual(['1']);
  });

  test.skipIf(skip)('gets its pulls again by loading the backfills again', async () => {
    const [database, folder] = [await make(), await backfillOf([{ id: 'm-1' }], [{ user_id: 'user-1' }])];
    await load(folder, database);
    await database.sql('DROP TABLE _millrace_pulls');
    expect(await load(folder, database)).toMatchObject({ code: 0, summary: { replaced: 1 } });
    const counts = 'SELECT (SELECT count(*) FROM meals), count(*) FROM _millrace_pulls';
    expect(await database.sql(counts)).toEqual(['1|1']);
  });
});
