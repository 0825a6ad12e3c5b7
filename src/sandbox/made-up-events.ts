import { randomBytes, randomUUID } from 'node:crypto';

/** An event in the form of the service, visibly made up. */
export interface MadeUpEvent {
  readonly id: string;
  readonly type: string;
  readonly body: Buffer;
}

export const MADE_UP_TEAM = '00000000-0000-4000-8000-000000000001';

/** The documented kinds of types, and an unknown one. */
const MADE_UP_TYPES = [
  'daily.data.meal.created',
  'daily.data.meal.updated',
  'daily.data.sleep.created',
  'historical.data.meal.created',
  'provider.connection.created',
  'labtest.order.updated',
  'lab_report.parsing_job.created',
  'lab_report.parsing_job.updated',
  'something.never.documented',
] as const;

/** The nth event: types and users take turns, so that counts can be predicted. */
export function madeUpEvent(
  n: number,
  type: string = MADE_UP_TYPES[n % MADE_UP_TYPES.length] ?? MADE_UP_TYPES[0],
): MadeUpEvent {
  const user = `00000000-0000-4000-8000-${String(1000 + (n % 50)).padStart(12, '0')}`;
  const body = {
    event_type: type,
    data: dataOf(type, n, user),
    team_id: MADE_UP_TEAM,
    user_id: user,
    client_user_id: `made-up-client-${n % 50}`,
  };
  return { id: newDeliveryId(), type, body: Buffer.from(JSON.stringify(body)) };
}

/** A unique id in the form of the sender's ids. */
export function newDeliveryId(): string {
  return `msg_${randomBytes(20).toString('base64url')}`;
}

function dataOf(type: string, n: number, user: string): object {
  if (type.startsWith('historical.')) {
    const range = { start_date: '2026-01-01', end_date: '2026-06-30' };
    return { user_id: user, ...range, provider: 'made_up', is_final: true };
  }
  if (type.startsWith('lab_report.')) {
    const status = type.endsWith('created') ? 'started' : 'completed';
    return { id: randomUUID(), status, failure_reason: null };
  }
  if (type.includes('.meal.')) return meal(n, user);
  return { id: randomUUID(), user_id: user, sequence: n, note: 'made up' };
}

function meal(n: number, user: string): object {
  const at = new Date(Date.UTC(2026, 0, 1) + n * 60_000).toISOString();
  return {
    id: randomUUID(),
    user_id: user,
    name: `Made-up meal ${n}`,
    timestamp: at,
    created_at: at.replace('Z', '+00:00'),
    updated_at: at.replace('Z', '+00:00'),
    provider_id: `made-up-${n}`,
    source_id: 7,
    source: { app_id: 'made.up', device_id: 'made-up', provider: 'made_up', type: 'app' },
    data: { 'Porridge, made up, 1 bowl': food(210), 'Coffee, black, 1 tbsp(s)': food(2) },
  };
}

function food(kcal: number): object {
  return {
    energy: { unit: 'kcal', value: kcal },
    macros: { carbs: 12.5, protein: 3.25, sugar: 1.1, fats: { total: 0.4, saturated: 0.1 } },
    micros: { minerals: { sodium: 41 } },
  };
}
