import { note, usageError } from '../io.ts';
import { newSecret } from '../../core/secrets.ts';
import type { Webhook } from '../../history/service/webhooks.ts';
import type { RotateFlags } from './options.ts';
import { acceptance } from './receiver.ts';
import { mayProceed, report } from './report.ts';
import { currentRecord, fingerprintOf, now, type SecretRecord } from './secret-records.ts';
import { findWebhook, secretAtService, type Session } from './session.ts';

/**
 * Gives a webhook a new secret. The secret is stored in front of the old one, and the receiver has both, before the service gets
 * it: deliveries are accepted with either. The next run completes a run that was killed.
 */
export async function rotateWebhook(
  session: Session,
  wanted: string | undefined,
  { again }: RotateFlags,
): Promise<void> {
  const { service, id: team, records, store, io } = session;
  const webhook = await findWebhook(session, wanted);
  const own = records.all.filter((record) => record.team === team && record.webhook === webhook.id);
  const pending = own.find(({ state }) => state === 'pending');
  if (pending === undefined && again !== true && own.some(({ state }) => state === 'superseded'))
    throw usageError(
      `an earlier rotation of ${webhook.id} is not over: retire its old secret (millrace webhooks rotate --retire), or add --again`,
    );
  const old = await secretAtService(session, webhook.id);
  const record = pending ?? (await storeSecret(session, webhook, own, old));
  let settled = record;
  let secret = records.secretOf(record) ?? '';
  if (!mayProceed(session, await acceptance(session), secret)) return;
  // Equal when an earlier run has given it to the service.
  if (old !== secret) {
    const { secret: given } = await service.webhooks.updateSecret(team, webhook.id, secret);
    if (typeof given === 'string') secret = given;
    settled = await records.accept(secret, record, io);
  }
  const replaced = records.all.filter((one) => one.webhook === webhook.id && one.secret === record.replaces);
  const since = now();
  await records.put(...replaced.map((one): SecretRecord => ({ ...one, state: 'superseded', since })), {
    ...settled,
    state: 'current',
    since,
  });
  if (replaced.length === 0) note(io, `the old secret is not in ${store.name}, so there is none to retire`);
  report(session, { action: 'rotated', webhook, secret, receiver: await acceptance(session) });
}

/** Records first which secret is replaced: afterwards the service shows only the new one. */
async function storeSecret(
  { records, store, id: team, io }: Session,
  { id: webhook, url }: Pick<Webhook, 'id' | 'url'>,
  own: readonly SecretRecord[],
  old: string | null,
): Promise<SecretRecord> {
  const known = own.find(({ state }) => state === 'current');
  const stored = store.read();
  const replaces = old === null ? (known?.secret ?? onlyOne(stored)) : fingerprintOf(old);
  if (replaces !== null && !own.some(({ secret }) => secret === replaces)) {
    if (stored.some((one) => fingerprintOf(one) === replaces))
      await records.put(currentRecord(replaces, { team, webhook, url }));
    else note(io, `the secret that the service signs with now is not in ${store.name}`);
  }
  return records.store(newSecret(), { team, webhook, url, replaces });
}

/** The only stored secret: it must be the old one when the service shows none and no run has recorded one. */
function onlyOne(secrets: readonly string[]): string | null {
  return secrets.length === 1 ? fingerprintOf(secrets.join()) : null;
}
