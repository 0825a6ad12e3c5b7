import { bodyId, deliveryIdOf } from '../core/delivery-id.ts';
import type { Event } from '../core/event.ts';
import { membersOf } from '../lib/json-text.ts';
import type { Validator } from '../receive/validate/envelope.ts';

/** Where an event comes from that no record says it of. */
const SOURCE = 'replay';

export type ForeignResult =
  { readonly ok: true; readonly event: Event } | { readonly ok: false; readonly reason: string };

/** What is known of an event beside its bytes. */
export interface Beside {
  /** Null when only the bytes can tell it from another. */
  readonly id: string | null;
  readonly receivedAt: number;
  readonly known?: Parameters<Validator>[1];
}

/**
 * An event that was kept by somebody else: the JSON the sender sent, alone. Without an id of its own it gets one from its
 * bytes, so that it has the same one in every replay.
 */
export function foreignEvent(body: Buffer, beside: Beside, validate: Validator): ForeignResult {
  const validation = validate(body, beside.known);
  if (!validation.fit) {
    return { ok: false, reason: validation.reasons.map(({ detail }) => detail).join('; ') };
  }
  const id = beside.id === null ? `sha256_${bodyId(body)}` : deliveryIdOf(beside.id);
  const { envelope } = validation;
  const event = { id, source: SOURCE, ...envelope, receivedAt: beside.receivedAt, headers: {}, body };
  return { ok: true, event };
}

const RECORD_KEYS = ['id', 'received_at', 'event_type', 'event'] as const;

/**
 * True when the line is an archive record that something else has written anew. Its event must not be taken for the
 * sender's bytes, nor the whole of it for an event.
 */
export function isRewrittenRecord(line: Buffer): boolean {
  const keys = topLevelKeys(line);
  return RECORD_KEYS.every((key) => keys.has(key));
}

/** The names at the top level of an object, escapes as they stand; what is no object has none. */
function topLevelKeys(text: Buffer): Set<string> {
  const keys = new Set<string>();
  try {
    for (const { name } of membersOf(text, 0)) keys.add(text.toString('utf8', name[0] + 1, name[1] - 1));
  } catch {
    // What is no object, or not JSON, is said by the validator.
  }
  return keys;
}
