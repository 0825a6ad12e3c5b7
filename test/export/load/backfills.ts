import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JournalEvent } from '../../../src/core/event.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { temporaryFolder } from '../../support/folders.ts';

export const LOADED_AT = '2026-11-20T06:00:00.000Z';

export interface MadeUpMeal {
  readonly id: string;
  readonly user?: string;
  readonly day?: string;
  readonly provider?: string;
}

/** A line of `_pulls.ndjson`. */
interface Pull {
  readonly user_id: string;
  readonly provider?: string | null;
  readonly since?: string | null;
  readonly until?: string | null;
  readonly began_at?: string;
  readonly table?: string;
  readonly resource?: string;
}

/** Writes the output folder of a backfill, each meal with one food. */
export function writeBackfill(
  folder: string,
  meals: readonly MadeUpMeal[],
  pulls: readonly Pull[] = [],
  loadedAt = LOADED_AT,
): void {
  const rows = meals.map(({ id, user = 'user-1', day = '2026-01-05', provider = 'made_up' }) => ({
    meal: `{"id":"${id}","user_id":"${user}","calendar_date":"${day}","updated_at":"2026-01-05T10:00:00Z","source_provider":"${provider}","energy_value":1.100000000000000001,"_loaded_at":"${loadedAt}"}\n`,
    item: `{"meal_id":"${id}","user_id":"${user}","meal_updated_at":"2026-01-05T10:00:00Z","item_index":0,"name":"Tea","_loaded_at":"${loadedAt}"}\n`,
  }));
  writeFileSync(join(folder, 'meals.ndjson'), rows.map(({ meal }) => meal).join(''));
  writeFileSync(join(folder, 'meal_items.ndjson'), rows.map(({ item }) => item).join(''));
  const given = { resource: 'meal', table: 'meals', provider: null, began_at: loadedAt, items: meals.length };
  const lines = pulls.map((pull) => ({ ...given, since: '2026-01-01', until: '2026-01-31', ...pull }));
  writeFileSync(join(folder, '_pulls.ndjson'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const users = Map.groupBy(meals, ({ user = 'user-1' }) => user);
  const outcomes = (users.size === 0 ? [['user-1', []] as const] : [...users]).map(([user, own]) => {
    return { user_id: user, status: 'done', meals: own.length, meal_items: own.length };
  });
  writeFileSync(
    join(folder, '_backfill.ndjson'),
    outcomes.map((outcome) => `${JSON.stringify(outcome)}\n`).join(''),
  );
}

/** A new folder of a backfill. */
export async function backfillOf(
  ...args: [readonly MadeUpMeal[], (readonly Pull[])?, string?]
): Promise<string> {
  const folder = await temporaryFolder();
  writeBackfill(folder, ...args);
  return folder;
}

/** Events of meals, received at a time. */
export function eventsOf(meals: readonly MadeUpMeal[], received: string): JournalEvent[] {
  return meals.map(({ id, user = 'user-1', day = '2026-01-05', provider = 'made_up' }, n) => {
    const data = {
      id,
      user_id: user,
      calendar_date: day,
      updated_at: '2026-01-05T10:00:00Z',
      source: { provider },
    };
    const body = {
      event_type: 'daily.data.meal.created',
      data: { ...data, data: { Tea: { energy: { value: 1 } } } },
      team_id: 'team-1',
      user_id: user,
      client_user_id: null,
    };
    const event = contractEvent(n, { body: Buffer.from(JSON.stringify(body)) });
    return { ...event, id: `${received} ${id}`, receivedAt: Date.parse(received) };
  });
}
