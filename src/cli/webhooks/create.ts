import { newSecret } from '../../core/secrets.ts';
import type { Webhook } from '../../history/service/webhooks.ts';
import { note, usageError } from '../io.ts';
import type { CreateFlags } from './options.ts';
import { acceptance } from './receiver.ts';
import { mayProceed, report, type Action } from './report.ts';
import { currentRecord, fingerprintOf, now, type SecretRecord } from './secret-records.ts';
import { secretAtService, type Session } from './session.ts';

/**
 * Creates a webhook. Its secret is stored here, and the receiver has it, before the service gets it: a run that is killed leaves
 * a secret that the next run uses or finds at the service, never an endpoint with an unknown secret.
 */
export async function createWebhook(session: Session, flags: CreateFlags): Promise<void> {
  const { service, id: team, records } = session;
  const { url, events: eventTypes } = flags;
  const pending = records.all.find(
    (record) =>
      record.state === 'pending' && record.webhook === null && record.team === team && record.url === url,
  );
  const existing = (await service.webhooks.list(team)).data.filter((webhook) => webhook.url === url);
  if (existing.length > 0) return adopt(session, existing, pending ?? null, flags);

  const record = pending ?? (await storeSecret(session, flags));
  const secret = records.secretOf(record) ?? '';
  if (!mayProceed(session, await acceptance(session), secret)) return;
  const webhook = await service.webhooks.create(team, { url, eventTypes, secret });
  const action = pending === undefined ? 'created' : 'finished';
  await settle(session, record, webhook, webhook.secret ?? secret, action);
}

async function storeSecret(
  { records, store, id: team }: Session,
  { url, keepSecret }: CreateFlags,
): Promise<SecretRecord> {
  const [newest] = store.read();
  if (keepSecret === true && newest === undefined) throw usageError(`${store.name} holds no secret to keep`);
  const secret = keepSecret === true && newest !== undefined ? newest : newSecret();
  return records.store(secret, { team, webhook: null, url, replaces: null });
}

async function settle(
  session: Session,
  record: SecretRecord,
  webhook: Webhook,
  secret: string,
  action: Action,
): Promise<void> {
  const { records, io } = session;
  const settled = await records.accept(secret, record, io);
  await records.put({ ...settled, webhook: webhook.id, state: 'current', since: now() });
  report(session, { action, webhook, secret, receiver: await acceptance(session) });
}

/** Uses an existing webhook with this address: of a killed run, of this command, or of somebody else. */
async function adopt(
  session: Session,
  existing: readonly Webhook[],
  pending: SecretRecord | null,
  { events: eventTypes, url }: CreateFlags,
): Promise<void> {
  const { records, store, io, id: team } = session;
  const [webhook] = existing;
  if (webhook === undefined) return;
  if (existing.length > 1)
    note(io, `the team has ${existing.length} webhooks with the address ${url}; the first is used`);
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
    await records.remove([pending]);
  }
  const record = currentRecord(fingerprintOf(secret), { team, webhook: webhook.id, url });
  if (store.read().includes(secret)) {
    if (!records.all.some((one) => one.secret === record.secret)) await records.put(record);
    return report(session, { action: 'unchanged', webhook, secret, receiver: await acceptance(session) });
  }
  note(io, `its secret was not in ${store.name}; it is added, and the others stay`);
  await settle(session, await records.store(secret, record), webhook, secret, 'finished');
}
