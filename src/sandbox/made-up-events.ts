import { randomBytes, randomUUID } from 'node:crypto';
import { madeUpDocument } from './made-up-documents.ts';

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

/** The nth event: types and users take turns, so that counts can be predicted. @param id of its document */
export function madeUpEvent(
  n: number,
  type: string = MADE_UP_TYPES[n % MADE_UP_TYPES.length] ?? MADE_UP_TYPES[0],
  id: string = randomUUID(),
): MadeUpEvent {
  const user = `00000000-0000-4000-8000-${String(1000 + (n % 50)).padStart(12, '0')}`;
  const unknown = { id, user_id: user, sequence: n, note: 'made up' };
  const body = {
    event_type: type,
    data: madeUpDocument({ type, n, user, team: MADE_UP_TEAM, id }) ?? unknown,
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
