import { createInterface } from 'node:readline/promises';
import { note, printResult, usageError, type Io } from '../io.ts';
import { findWebhook, withSession, withTeam, type StoreFlags, type Team } from './session.ts';

export interface DeleteFlags extends StoreFlags {
  readonly yes: boolean | undefined;
  readonly forgetSecret: boolean | undefined;
}

/** Deletes a webhook at the service; its secret stays accepted here unless it is to be forgotten. */
export async function deleteWebhook(io: Io, wanted: string, flags: DeleteFlags): Promise<void> {
  if (flags.forgetSecret !== true)
    return withTeam(io, flags, (team) => deleteAtService(io, team, wanted, flags));
  return withSession(io, flags, async (session) => {
    const { ledger, store, receiver } = session;
    const own = ledger.entries.filter(({ webhook, url }) => webhook === wanted || url === wanted);
    const { data } = await session.service.webhooks.list(session.id);
    // A run that was killed may have deleted it already; then only its secrets are left to forget.
    const isThere = data.some(({ id, url }) => id === wanted || url === wanted);
    if (isThere || own.length === 0) await deleteAtService(io, session, wanted, flags);
    if (own.length === 0) return note(io, `none of the secrets in ${store.name} is known to be its own`);
    await ledger.remove(own);
    note(io, `its secret was removed from ${store.name}`);
    const accepted = await receiver.accept(flags.reload);
    if (accepted.state === 'stale')
      note(io, `the receiver that runs here still accepts it: ${accepted.reason}`);
  });
}

async function deleteAtService(io: Io, team: Team, wanted: string, flags: DeleteFlags): Promise<void> {
  const { id, url } = await findWebhook(team, wanted);
  if (!(await isMeant(io, `delete ${id} ${url} and what waits for it`, flags)))
    throw usageError('nothing was deleted');
  await team.service.webhooks.delete(team.id, id);
  printResult(io, flags, { deleted: id, url, team_id: team.id }, `${id} ${url}: deleted`);
}

async function isMeant(io: Io, what: string, { yes }: DeleteFlags): Promise<boolean> {
  if (yes === true) return true;
  if (io.stdin.isTTY !== true) throw usageError(`to ${what}, add --yes`);
  const lines = createInterface({ input: io.stdin, output: io.stderr });
  try {
    const answer = await lines.question(`${what}? Type yes: `, { signal: io.signal });
    return answer.trim().toLowerCase() === 'yes';
  } finally {
    lines.close();
  }
}
