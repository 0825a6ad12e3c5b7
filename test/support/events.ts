import { randomUUID } from 'node:crypto';
import type { Event } from '../../src/core/event.ts';

export const TEAM = '6b0e9a52-0000-4000-8000-000000000001';
export const USER = '6b0e9a52-0000-4000-8000-0000000000aa';

/** A made-up event; everything can be overridden. */
export function makeEvent(overrides: Partial<Event> = {}): Event {
  const type = overrides.type ?? 'daily.data.meal.created';
  const user = overrides.user === undefined ? USER : overrides.user;
  return {
    id: `msg_${randomUUID()}`,
    source: 'webhooks',
    type,
    team: TEAM,
    user,
    clientUser: 'made-up-client-user',
    receivedAt: Date.UTC(2026, 10, 21, 12),
    headers: { 'webhook-id': 'made-up' },
    body: Buffer.from(
      JSON.stringify({ event_type: type, team_id: TEAM, user_id: user, client_user_id: 'made-up', data: {} }),
    ),
    ...overrides,
  };
}
