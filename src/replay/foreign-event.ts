import { bodyId, deliveryIdOf } from '../core/delivery-id.ts';
import type { Event } from '../core/event.ts';
import { membersOf } from '../lib/json-text.ts';
import type { Validator } from '../receive/validate/envelope.ts';

/** Source of events without a record. */
const SOURCE = 'replay';

export type ForeignResult =
  { readonly ok: true; readonly event: Event } | { readonly ok: false; readonly reason: string };

/** Facts of an event that are not in its body. */
export interface Beside {
  /** Null for an event without an id. */
  readonly id: string | null;
  readonly receivedAt: number;
  readonly known?: Parameters<Validator>[1];
}

/** An event without a record: the sender's JSON. Without an id it gets the hash of its bytes, the same in every replay. */
export function foreignEvent(body: Buffer, beside: Beside, validate: Validator): ForeignResult {
  const validation = validate(body, beside.known);
  if (!validation.isValid) {
    return { ok: false, reason: validation.reasons.map(({ detail }) => detail).join('; ') };
  }
  const id = beside.id === null ? `sha256_${bodyId(body)}` : deliveryIdOf(beside.id);
  const { envelope } = validation;
  const event = { id, source: SOURCE, ...envelope, receivedAt: beside.receivedAt, headers: {}, body };
  return { ok: true, event };
}

const RECORD_KEYS = ['id', 'received_at', 'event_type', 'event'] as const;

/** Whether another program has rewritten an archive record: its event is not the sender's bytes any more. */
export function isRewrittenRecord(line: Buffer): boolean {
  const keys = new Set<string>();
  try {
    for (const { name } of membersOf(line, 0)) keys.add(line.toString('utf8', name[0] + 1, name[1] - 1));
  } catch {
    // The validator reports what is not a JSON object.
  }
  return RECORD_KEYS.every((key) => keys.has(key));
}
