import type { JournalEvent } from '../core/event.ts';
import type { ClaimCheck } from '../core/sink.ts';

/** Puts a whole event where its pointer can be followed to; a sink's `keep`. */
export type Keep = (event: JournalEvent, signal: AbortSignal) => Promise<ClaimCheck>;

/** The event a sink gets instead of one that is too large for it: same metadata, and a body that says where to look. */
export function pointerTo(event: JournalEvent, claim: ClaimCheck): JournalEvent {
  const body = Buffer.from(JSON.stringify({ claim_check: claim }));
  return { ...event, body, handling: { ...event.handling, claimCheck: true } };
}
