import { hash } from 'node:crypto';
import type { JournalEvent } from '../../core/event.ts';

/** What a `historical.data.*` event calls for: it carries no data, only what to fetch now. */
export interface Completion {
  readonly resource: string;
  readonly user: string;
  readonly provider: string | null;
  /** As the event says them. */
  readonly start: string;
  readonly end: string;
}

const TYPE = /^historical\.data\.([a-z0-9_]+)\.created$/;

/** Null for any other event; a text that says what is missing for one that cannot be followed. */
export function readCompletion({
  type,
  body,
}: Pick<JournalEvent, 'type' | 'body'>): Completion | string | null {
  const resource = TYPE.exec(type)?.[1];
  if (resource === undefined) return null;
  const { data } = JSON.parse(body.toString()) as { data?: Record<string, unknown> | null };
  const { user_id: user, start_date: start, end_date: end, provider } = data ?? {};
  if (typeof user !== 'string') return 'data.user_id is missing';
  if (typeof start !== 'string' || typeof end !== 'string')
    return 'data.start_date or data.end_date is missing';
  return { resource, user, provider: typeof provider === 'string' ? provider : null, start, end };
}

/** The same for every repetition of one completion, whatever the delivery's id. */
export function completionKey({ user, resource, provider, start, end }: Completion): string {
  return hash('sha256', JSON.stringify([user, resource, provider, start, end]), 'hex').slice(0, 32);
}
