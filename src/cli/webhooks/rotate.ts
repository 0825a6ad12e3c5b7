import { note, usageError } from '../io.ts';
import { newSecret } from '../../core/secrets.ts';
import { currentEntry, fingerprintOf, now, type Entry } from './ledger.ts';
import { mayProceed, report } from './report.ts';
import { findWebhook, secretAtService, type Session } from './session.ts';

/**
 * Gives a webhook a new secret. It is stored beside the old one, and the receiver has both, before the service has it:
 * whichever it signs with is accepted. The new one stands in front, so that what is signed with both counts as its own.
 * A run that was killed is finished by the next.
 * @param again begins another rotation although the last one is not over
 */
export async function rotateWebhook(
  session: Session,
  wanted: string | undefined,
  again: boolean,
): Promise<void> {
  const { service, id: team, ledger, store, flags, io } = session;
  const webhook = await findWebhook(session, wanted);
  const own = ledger.entries.filter((entry) => entry.team === team && entry.webhook === webhook.id);
  const pending = own.find(({ state }) => state === 'pending');
  if (pending === undefined && !again && own.some(({ state }) => state === 'superseded'))
    throw usageError(
      `an earlier rotation of ${webhook.id} is not over: retire its old secret (millrace webhooks rotate --retire), or add --again`,
    );
  const old = await secretAtService(session, webhook.id);
  const entry = pending ?? (await begin(session, webhook, own, old));
  let settled = entry;
  let secret = ledger.secretOf(entry) ?? '';
  const accepted = await session.receiver.accept(flags.reload);
  if (!mayProceed(session, accepted, secret)) return;
  // The one that an earlier run has given it already.
  if (old !== secret) {
    const answer = await service.webhooks.updateSecret(team, webhook.id, secret);
    const given = answer['secret'];
    if (typeof given === 'string') secret = given;
    settled = await ledger.given(secret, entry, io);
  }
  const replaced = ledger.entries.filter(
    (one) => one.webhook === webhook.id && one.secret === entry.replaces,
  );
  const since = now();
  await ledger.put(...replaced.map((one): Entry => ({ ...one, state: 'superseded', since })), {
    ...settled,
    state: 'current',
    since,
  });
  if (replaced.length === 0) note(io, `the old secret is not in ${store.name}, so there is none to retire`);
  const receiver = await session.receiver.accept(flags.reload);
  report(session, { action: 'rotated', webhook, secret, receiver });
}

/** Notes what is replaced before anything changes: afterwards the service names the new secret only. */
async function begin(
  { ledger, store, id: team, io }: Session,
  { id: webhook, url }: { readonly id: string; readonly url: string },
  own: readonly Entry[],
  old: string | null,
): Promise<Entry> {
  const known = own.find(({ state }) => state === 'current');
  const stored = store.read();
  const replaces = old === null ? (known?.secret ?? onlyOne(stored)) : fingerprintOf(old);
  if (replaces !== null && !own.some(({ secret }) => secret === replaces)) {
    if (stored.some((one) => fingerprintOf(one) === replaces))
      await ledger.put(currentEntry(replaces, { team, webhook, url }));
    else note(io, `the secret that the service signs with now is not in ${store.name}`);
  }
  return ledger.store(newSecret(), { team, webhook, url, replaces });
}

/** Where the service does not show its secret, and no run of ours has noted it, the only one that is stored must be it. */
function onlyOne(secrets: readonly string[]): string | null {
  return secrets.length === 1 ? fingerprintOf(secrets.join()) : null;
}
