import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { formatRecords } from '../../src/core/archive-record.ts';
import type { Event } from '../../src/core/event.ts';
import { MADE_UP_TEAM, newDeliveryId } from '../../src/sandbox/made-up-events.ts';
import { madeUpMeals } from '../../src/sandbox/made-up-meals.ts';

const DAY_MS = 86_400_000;
/** The level at which the files sink writes. */
const GZIP_LEVEL = 3;
const TYPE = 'daily.data.meal.created';
/** At which events are received, one after the other. */
const APART_MS = 50;

export const FIRST_RECEIVED = Date.UTC(2026, 10, 1);

/** When the nth event, from 0, was received. */
export function receivedAt(n: number): number {
  return FIRST_RECEIVED + n * APART_MS;
}

/**
 * Writes an archive in gzip files of as many records each.
 * @param take gets the events too, some at a time
 * @returns its bytes before compression
 */
export async function makeArchive(
  folder: string,
  { events, files }: { readonly events: number; readonly files: number },
  eventOf: (n: number) => Event,
  signal: AbortSignal,
  take: (batch: readonly Event[]) => Promise<unknown> = () => Promise.resolve(),
): Promise<number> {
  await mkdir(folder, { recursive: true });
  let bytes = 0;
  for (let file = 0; file < files; file += 1) {
    const records: Buffer[] = [];
    const end = Math.round(((file + 1) * events) / files);
    for (let at = Math.round((file * events) / files); at < end; at += BATCH) {
      signal.throwIfAborted();
      const batch = Array.from({ length: Math.min(BATCH, end - at) }, (_, n) => eventOf(at + n));
      records.push(formatRecords(batch));
      await take(batch);
    }
    const all = Buffer.concat(records);
    bytes += all.length;
    const packed = await promisify(gzip)(all, { level: GZIP_LEVEL });
    await writeFile(join(folder, `${String(file).padStart(4, '0')}.ndjson.gz`), packed);
  }
  return bytes;
}

const BATCH = 2000;

/** Meals of one user after another, five a day for so many days: the same on every run. */
export function* everyMeal(days: number): Generator<{ readonly user: string; readonly meal: object }> {
  const plan = { seed: 7, sinceMs: Date.UTC(2016, 0, 1), days, mealsPerDay: 5 };
  const span = { startMs: plan.sinceMs, endMs: plan.sinceMs + days * DAY_MS };
  for (let n = 0; ; n += 1) {
    const user = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
    const subject = { id: user, sources: ['made_up_one', 'made_up_two'] };
    for (const meal of madeUpMeals(plan, subject, span)) yield { user, meal };
  }
}

/** Events of them, the bodies as the service sends them. */
export function mealEvents(): (n: number) => Event {
  const meals = everyMeal(365);
  return (n) => {
    const { user, meal } = meals.next().value as { user: string; meal: object };
    const clientUser = `made-up-client-${Number(user.slice(-12))}`;
    const about = { team_id: MADE_UP_TEAM, user_id: user, client_user_id: clientUser };
    const id = newDeliveryId();
    return {
      id,
      source: 'webhooks',
      type: TYPE,
      team: MADE_UP_TEAM,
      user,
      clientUser,
      receivedAt: receivedAt(n),
      headers: {
        'webhook-id': id,
        'webhook-timestamp': '1790000000',
        'webhook-signature': 'v1,bWFkZSB1cA==',
      },
      body: Buffer.from(JSON.stringify({ event_type: TYPE, data: meal, ...about })),
    };
  };
}
