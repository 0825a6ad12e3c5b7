import { createInterface } from 'node:readline/promises';
import { note, printResult, usageError, type Io } from '../io.ts';
import type { DeleteFlags } from './options.ts';
import { acceptance } from './receiver.ts';
import { findWebhook, withSession, withTeam, type Team } from './session.ts';

/** Deletes a webhook at the service. Its secret stays accepted here without --forget-secret. */
export async function deleteWebhook(io: Io, wanted: string, flags: DeleteFlags): Promise<void> {
  if (flags.forgetSecret !== true)
    return withTeam(io, flags, (team) => deleteAtService(io, team, wanted, flags));
  return withSession(io, flags, async (session) => {
    const { records, store } = session;
    const isWanted = (id: string | null, url: string): boolean => id === wanted || url === wanted;
    const own = records.all.filter(({ webhook, url }) => isWanted(webhook, url));
    const { data } = await session.service.webhooks.list(session.id);
    // A killed run may have deleted it already; then only its secrets are left.
    const isThere = data.some(({ id, url }) => isWanted(id, url));
    if (isThere || own.length === 0) await deleteAtService(io, session, wanted, flags);
    if (own.length === 0) return note(io, `none of the secrets in ${store.name} is known to be its own`);
    await records.remove(own);
    note(io, `its secret was removed from ${store.name}`);
    const accepted = await acceptance(session);
    if (accepted.state === 'stale')
      note(io, `the receiver on this machine still accepts it: ${accepted.reason}`);
  });
}

async function deleteAtService(io: Io, team: Team, wanted: string, flags: DeleteFlags): Promise<void> {
  const { id, url } = await findWebhook(team, wanted);
  if (!(await isConfirmed(io, `delete ${id} ${url} and what waits for it`, flags)))
    throw usageError('nothing was deleted');
  await team.service.webhooks.delete(team.id, id);
  printResult(io, flags, { deleted: id, url, team_id: team.id }, `${id} ${url}: deleted`);
}

async function isConfirmed(io: Io, what: string, { yes }: DeleteFlags): Promise<boolean> {
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
