import { hash } from 'node:crypto';
import type { Envelope } from '../../core/event.ts';
import type { Inlet } from '../../core/sink.ts';
import type { IncomingMessage } from '../../core/incoming.ts';

/** What a meal of a follow-up pull is as an event: the same as one that the service sends by itself. */
const MEAL_TYPE = 'daily.data.meal.created';

/**
 * The event of one meal: the meal's exact bytes in the service's envelope. Its id is made of what it says, so that the
 * same meal, pulled again, is the same event, and a meal that has changed is another.
 * @param now milliseconds since the epoch
 */
export function toEvent(
  meal: Buffer,
  { team, user, clientUser }: Omit<Envelope, 'type'>,
  names: ReturnType<Inlet['fields']>,
  now: number,
): IncomingMessage {
  const json = JSON.stringify;
  const before = `{${json(names.type)}:${json(MEAL_TYPE)},"data":`;
  const after = [
    [names.team, team],
    [names.user, user],
    [names.clientUser, clientUser],
  ].map(([name, value]) => `,${json(name)}:${json(value)}`);
  const id = hash('sha256', Buffer.concat([Buffer.from(json([team, user])), meal]), 'hex').slice(0, 32);
  return {
    body: Buffer.concat([Buffer.from(before), meal, Buffer.from(`${after.join('')}}`)]),
    encoding: null,
    properties: { 'idempotency-key': `meal_${id}` },
    receivedAt: now,
  };
}
