import { randomUUID } from 'node:crypto';
import type { Event } from '../core/event.ts';
import type { TypeNews } from './news.ts';

const SOURCE = 'schema';
const CHANGED = 'millrace.schema.changed';

/** What the members of an event are called. */
export interface EnvelopeNames {
  readonly type: string;
  readonly team: string;
}

/** Whether an event is one that tells what is new. */
export function isChangeEvent({ source, type }: Event): boolean {
  return source === SOURCE && type === CHANGED;
}

/** @param now milliseconds since the epoch */
export function changeEvent(news: TypeNews, names: EnvelopeNames, now: number): Event {
  const { type, isNew, known, fields, more, kinds, at } = news;
  const data = {
    event_type: type,
    is_new_type: isNew,
    known_fields: known,
    new_fields: fields,
    more_fields: more,
    new_kinds: kinds,
  };
  const body = {
    [names.type]: CHANGED,
    [names.team]: null,
    data: { ...data, detected_at: new Date(at).toISOString() },
  };
  return {
    id: randomUUID(),
    source: SOURCE,
    receivedAt: now,
    type: CHANGED,
    team: null,
    user: null,
    clientUser: null,
    headers: {},
    body: Buffer.from(JSON.stringify(body)),
  };
}
