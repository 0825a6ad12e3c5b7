import { EXIT } from '../../core/errors.ts';
import { formatDuration } from '../../lib/units.ts';
import { note, print, usageError } from '../io.ts';
import type { Entry } from './ledger.ts';
import type { Use } from './receiver.ts';
import type { Session } from './session.ts';

export interface RetireOptions {
  /** Milliseconds for which no delivery may have needed the old secret. */
  readonly unusedFor: number;
  /** Does not ask the receiver. */
  readonly force: boolean;
}

/**
 * Takes out old secrets of rotations that no delivery needs any more, by the counts of the receiver that runs here. One
 * that is still needed, or of which nobody can tell, stays.
 */
export async function retireSecrets(
  session: Session,
  wanted: string | undefined,
  options: RetireOptions,
): Promise<void> {
  const { ledger, store, receiver, flags, io } = session;
  const old = ledger.entries.filter(
    ({ state, webhook, url }) =>
      state === 'superseded' && (wanted === undefined || webhook === wanted || url === wanted),
  );
  const uses = options.force || old.length === 0 ? new Map<string, Use>() : await receiver.uses();
  if (uses === null)
    throw usageError(
      `no receiver that runs here has read ${store.name} since it was changed, so nobody can tell whether the old secret is used: reload it, or add --force`,
    );
  const reasons = old.map((entry) => ({
    entry,
    reason: options.force ? null : whyNot(session, entry, uses, options),
  }));
  const gone = reasons.flatMap(({ entry, reason }) => (reason === null ? [entry] : []));
  if (gone.length > 0) await ledger.remove(gone);
  const accepted = gone.length > 0 ? await receiver.accept(flags.reload) : null;
  if (flags.json === true) {
    const retired = gone.map(({ webhook }) => webhook);
    const kept = reasons.flatMap(({ entry, reason }) =>
      reason === null ? [] : [{ webhook_id: entry.webhook, reason }],
    );
    print(io, JSON.stringify({ retired, kept, secret_in: store.name, receiver: accepted }));
  } else {
    if (old.length === 0) print(io, 'there is no old secret to retire');
    for (const { entry, reason } of reasons) {
      const which = `old secret of ${entry.webhook ?? entry.url}`;
      print(
        io,
        reason === null ? `${which}: removed from ${store.name}` : `${which}: stays, because ${reason}`,
      );
    }
  }
  if (accepted?.state === 'stale')
    note(io, `the receiver that runs here still accepts it: ${accepted.reason}`);
  if (gone.length < old.length || accepted?.state === 'stale') io.setExit(EXIT.partial);
}

/** Null when it can go. */
function whyNot(
  { ledger }: Session,
  entry: Entry,
  uses: ReadonlyMap<string, Use>,
  { unusedFor }: RetireOptions,
): string | null {
  const useOf = (one: Entry | undefined): Use | undefined =>
    one === undefined ? undefined : uses.get(ledger.secretOf(one) ?? '');
  const heir = ledger.entries.find(({ webhook, state }) => webhook === entry.webhook && state === 'current');
  const [use, fresh] = [useOf(entry), useOf(heir)];
  if (use === undefined) return 'the receiver does not have it';
  if (ledger.entries.some((one) => one.secret === entry.secret && one.state !== 'superseded'))
    return 'another webhook signs with it';
  if ((fresh?.matches ?? 0) === 0) return 'no delivery has been signed with the new one yet';
  const quiet = Date.now() - (use.lastUsed ?? Math.max(use.since, Date.parse(entry.since)));
  if (quiet >= unusedFor) return null;
  const time = formatDuration(Math.max(1000, Math.round(quiet / 1000) * 1000));
  const what = use.lastUsed === null ? `it has been watched for ${time} only` : `it was used ${time} ago`;
  return `${what}, and --unused-for is ${formatDuration(unusedFor)}`;
}
