import { newSecret } from '../../core/secrets.ts';
import type { Webhook } from '../../history/service/webhooks.ts';
import { note, usageError } from '../io.ts';
import { currentEntry, fingerprintOf, now, type Entry } from './ledger.ts';
import { mayProceed, report, type Action } from './report.ts';
import { secretAtService, type Session } from './session.ts';

export interface Wanted {
  readonly url: string;
  readonly eventTypes: readonly string[];
  /** Gives the service the newest secret that is stored, instead of a new one. */
  readonly keepSecret: boolean;
}

/**
 * Creates a webhook whose secret the receiver has before the service does. The secret is made and stored here first, so
 * that a run that ends at any point leaves one that the next run uses or finds at the service, and never an endpoint that
 * signs with what nobody has.
 */
export async function createWebhook(session: Session, wanted: Wanted): Promise<void> {
  const { service, id: team, ledger, receiver, flags } = session;
  const { url, eventTypes } = wanted;
  const pending = ledger.entries.find(
    (entry) =>
      entry.state === 'pending' && entry.webhook === null && entry.team === team && entry.url === url,
  );
  const existing = (await service.webhooks.list(team)).data.filter((webhook) => webhook.url === url);
  if (existing.length > 0) return adopt(session, existing, pending ?? null, wanted);

  const entry = pending ?? (await begin(session, wanted));
  const secret = ledger.secretOf(entry) ?? '';
  const accepted = await receiver.accept(flags.reload);
  if (!mayProceed(session, accepted, secret)) return;
  const webhook = await service.webhooks.create(team, { url, eventTypes, secret });
  await settle(
    session,
    entry,
    webhook,
    webhook.secret ?? secret,
    pending === undefined ? 'created' : 'finished',
  );
}

async function begin({ ledger, store, id: team }: Session, { url, keepSecret }: Wanted): Promise<Entry> {
  const [newest] = store.read();
  if (keepSecret && newest === undefined) throw usageError(`${store.name} holds no secret to keep`);
  const secret = keepSecret && newest !== undefined ? newest : newSecret();
  return ledger.store(secret, { team, webhook: null, url, replaces: null });
}

async function settle(
  session: Session,
  entry: Entry,
  webhook: Webhook,
  secret: string,
  action: Action,
): Promise<void> {
  const { ledger, io } = session;
  const settled = await ledger.given(secret, entry, io);
  await ledger.put({ ...settled, webhook: webhook.id, state: 'current', since: now() });
  const receiver = await session.receiver.accept(session.flags.reload);
  report(session, { action, webhook, secret, receiver });
}

/** There is one of that address: made by a run that was killed, by this command before, or by somebody else. */
async function adopt(
  session: Session,
  existing: readonly Webhook[],
  pending: Entry | null,
  { eventTypes, url }: Wanted,
): Promise<void> {
  const { ledger, store, io, id: team } = session;
  const [webhook] = existing;
  if (webhook === undefined) return;
  if (existing.length > 1)
    note(io, `the team has ${existing.length} webhooks with the address ${url}; the first is meant`);
  const { event_types: current = [] } = webhook;
  if (eventTypes.length > 0 && current.toSorted().join() !== eventTypes.toSorted().join())
    note(io, `its event types are ${current.join(', ') || 'all'}; they were not changed`);
  const secret = await secretAtService(session, webhook.id);
  if (secret === null)
    throw usageError(
      `${webhook.id} has this address already, and the service does not show its secret: rotate it (millrace webhooks rotate ${webhook.id})`,
    );
  if (pending !== null) {
    if (fingerprintOf(secret) === pending.secret)
      return settle(session, pending, webhook, secret, 'finished');
    await ledger.remove([pending]);
  }
  const isStored = store.read().includes(secret);
  const entry = currentEntry(fingerprintOf(secret), { team, webhook: webhook.id, url });
  if (isStored) {
    if (!ledger.entries.some((one) => one.secret === entry.secret)) await ledger.put(entry);
    const receiver = await session.receiver.accept(session.flags.reload);
    return report(session, { action: 'unchanged', webhook, secret, receiver });
  }
  note(io, `its secret was not in ${store.name}; it is added, and those that were there stay`);
  await settle(session, await ledger.store(secret, entry), webhook, secret, 'finished');
}
