import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { formatRecords } from '../../../src/core/archive-record.ts';
import type { Event } from '../../../src/core/event.ts';
import { MADE_UP_TEAM, newDeliveryId } from '../../../src/sandbox/made-up-events.ts';
import { madeUpMeals, type MealPlan } from '../../../src/sandbox/made-up-meals.ts';

const DAY_MS = 86_400_000;
const DAYS = 365;
const PLAN: MealPlan = { seed: 7, sinceMs: Date.UTC(2025, 0, 1), days: DAYS, mealsPerDay: 5 };
const TYPE = 'daily.data.meal.created';
const RECEIVED = Date.UTC(2026, 10, 1);
/** The level at which the files sink writes. */
const GZIP_LEVEL = 3;

/** Writes an archive of meal events in gzip files of as many records each; returns its bytes before compression. */
export async function makeArchive(
  folder: string,
  { events, files }: { readonly events: number; readonly files: number },
  signal: AbortSignal,
): Promise<number> {
  await mkdir(folder, { recursive: true });
  const meals = mealEvents();
  let bytes = 0;
  for (let file = 0; file < files; file += 1) {
    signal.throwIfAborted();
    const first = Math.round((file * events) / files);
    const count = Math.round(((file + 1) * events) / files) - first;
    const records = formatRecords(Array.from({ length: count }, (_, n) => meals(first + n)));
    bytes += records.length;
    const packed = await promisify(gzip)(records, { level: GZIP_LEVEL });
    await writeFile(join(folder, `${String(file).padStart(4, '0')}.ndjson.gz`), packed);
  }
  return bytes;
}

/** Meals of one user after another, the bodies as the service sends them. */
function mealEvents(): (n: number) => Event {
  let user = 0;
  let meals = mealsOf(user);
  return (n) => {
    let next = meals.next();
    if (next.done === true) {
      meals = mealsOf((user += 1));
      next = meals.next();
    }
    const userId = idOf(user);
    const clientUser = `made-up-client-${user}`;
    const about = { team_id: MADE_UP_TEAM, user_id: userId, client_user_id: clientUser };
    const id = newDeliveryId();
    return {
      id,
      source: 'webhooks',
      type: TYPE,
      team: MADE_UP_TEAM,
      user: userId,
      clientUser,
      receivedAt: RECEIVED + n * 1000,
      headers: {
        'webhook-id': id,
        'webhook-timestamp': '1790000000',
        'webhook-signature': 'v1,bWFkZSB1cA==',
      },
      body: Buffer.from(JSON.stringify({ event_type: TYPE, data: next.value, ...about })),
    };
  };
}

function mealsOf(user: number): Iterator<object> {
  const { sinceMs } = PLAN;
  const query = { user: idOf(user), providers: ['made_up_one', 'made_up_two'] };
  return madeUpMeals(PLAN, { ...query, startMs: sinceMs, endMs: sinceMs + DAYS * DAY_MS });
}

function idOf(user: number): string {
  return `00000000-0000-4000-8000-${String(user).padStart(12, '0')}`;
}
