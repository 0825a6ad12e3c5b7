import { EXIT } from '../../core/errors.ts';
import { aboutDuration, formatDuration } from '../../lib/units.ts';
import { note, printResult, usageError } from '../io.ts';
import type { RotateFlags } from './options.ts';
import { acceptance, type SecretUse, usesOf } from './receiver.ts';
import type { SecretRecord } from './secret-records.ts';
import type { Session } from './session.ts';

/** Removes old secrets that no delivery needs any more, by the counts of the receiver on this machine. */
export async function retireSecrets(
  session: Session,
  wanted: string | undefined,
  flags: RotateFlags,
): Promise<void> {
  const { records, store, io } = session;
  const old = records.all.filter(
    ({ state, webhook, url }) =>
      state === 'superseded' && (wanted === undefined || webhook === wanted || url === wanted),
  );
  const isForced = flags.force === true;
  const uses = isForced || old.length === 0 ? new Map<string, SecretUse>() : await usesOf(session);
  if (uses === null)
    throw usageError(
      `no receiver on this machine has read ${store.name} since it was changed, so the use of the old secret is unknown: reload it, or add --force`,
    );
  const reasons = old.map((record) => ({
    record,
    reason: isForced ? null : whyNot(session, record, uses, flags.unusedFor),
  }));
  const gone = reasons.flatMap(({ record, reason }) => (reason === null ? [record] : []));
  if (gone.length > 0) await records.remove(gone);
  const accepted = gone.length > 0 ? await acceptance(session) : null;
  const retired = gone.map(({ webhook }) => webhook);
  const kept = reasons.flatMap(({ record, reason }) =>
    reason === null ? [] : [{ webhook_id: record.webhook, reason }],
  );
  const lines = reasons.map(({ record, reason }) => {
    const end = reason === null ? `removed from ${store.name}` : `stays, because ${reason}`;
    return `old secret of ${record.webhook ?? record.url}: ${end}`;
  });
  printResult(
    io,
    flags,
    { retired, kept, secret_in: store.name, receiver: accepted },
    ...(old.length === 0 ? ['there is no old secret to retire'] : lines),
  );
  if (accepted?.state === 'stale')
    note(io, `the receiver on this machine still accepts it: ${accepted.reason}`);
  if (gone.length < old.length || accepted?.state === 'stale') io.setExit(EXIT.partial);
}

/** Why an old secret stays; null when it can be removed. @param unusedFor milliseconds */
function whyNot(
  { records }: Session,
  record: SecretRecord,
  uses: ReadonlyMap<string, SecretUse>,
  unusedFor: number,
): string | null {
  const useOf = (one: SecretRecord | undefined): SecretUse | undefined =>
    one === undefined ? undefined : uses.get(records.secretOf(one) ?? '');
  const successor = records.all.find(
    ({ webhook, state }) => webhook === record.webhook && state === 'current',
  );
  const use = useOf(record);
  if (use === undefined) return 'the receiver does not have it';
  if (records.all.some((one) => one.secret === record.secret && one.state !== 'superseded'))
    return 'another webhook signs with it';
  if ((useOf(successor)?.matches ?? 0) === 0) return 'no delivery has been signed with the new one yet';
  const quiet = Date.now() - (use.lastUsed ?? Math.max(use.since, Date.parse(record.since)));
  if (quiet >= unusedFor) return null;
  const time = aboutDuration(quiet);
  const what = use.lastUsed === null ? `it has been watched for ${time} only` : `it was used ${time} ago`;
  return `${what}, and --unused-for is ${formatDuration(unusedFor)}`;
}
