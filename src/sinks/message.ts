import type { JournalEvent } from '../core/event.ts';

/** Bodies up to this size are not worth compressing; consumers of the service's own pipelines expect the same bound. */
const PLAIN_BYTES = 1024;
/** Up to this size gzip takes less time than handing the work to another thread would. */
export const INLINE_BYTES = 16 * 1024;

/** Whether a body is sent compressed. */
export function isZipped({ body }: JournalEvent, compression: 'auto' | 'always' | 'never'): boolean {
  return compression === 'always' || (compression === 'auto' && body.length > PLAIN_BYTES);
}

/**
 * What a broker's message says of its event beside the body, by the names of the service's own pipelines. Ids that are null
 * leave nothing.
 * @param packing how the body is packed
 * @param fitted makes a text one that the broker takes
 */
export function metadataOf(
  event: JournalEvent,
  packing: Readonly<Record<string, string>>,
  fitted: (text: string) => string,
): Record<string, string> {
  const { team, user, clientUser, handling } = event;
  const metadata: Record<string, string> = { 'event-type': fitted(event.type), ...packing };
  if (user !== null) metadata['user-id'] = fitted(user);
  if (team !== null) metadata['team-id'] = fitted(team);
  if (clientUser !== null) metadata['client-user-id'] = fitted(clientUser);
  metadata['idempotency-key'] = fitted(event.id);
  if (handling.replayId !== undefined) metadata['replay-id'] = fitted(handling.replayId);
  if (handling.claimCheck === true) metadata['claim-check'] = 'true';
  return Object.assign(metadata, handling.trace);
}
