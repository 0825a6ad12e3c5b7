import type { Command } from 'commander';
import { Audit } from '../observe/admin/audit.ts';
import { EXIT, MillraceError } from '../core/errors.ts';
import { NO_ROUTES, type RouteRecord } from '../core/route-record.ts';
import type { SqliteJournal, SqliteJournalOptions } from '../journal/sqlite-journal.ts';
import { asOwner } from './as-owner.ts';
import { CONFIG, configOf } from './config-options.ts';
import { closing, note, printResult, usageError, type Io } from './io.ts';
import { openJournal } from './operations.ts';
import { commandOf, instant, type OptionsOf, readBy, repeated } from './options.ts';

const HELP = `
Examples:
  millrace journal recover --from-first hubs --from-first archive    both get all that the journal still holds
  millrace journal recover --from 2026-11-28T10:00:00Z               all sinks get what was received since then
  millrace journal recover --from-first archive --from 2026-11-28    archive gets all, the others what came since that day

For a journal that a receiver refuses with journal_damaged: the position of each sink is lost, because the database and journal.note
are both damaged or missing. The events are there. Each sink of the config gets them again by today's routes: from the first event
in the journal, or from the first event received at a time. A time that is too early sends events twice, and one that is too late
loses some. Dead letters and quarantined events that cannot be read are named as lost.

Exit codes: 0 done, 1 failed, 2 usage or config, 3 the journal needs no recovery.`;

const OPTIONS = {
  '--from-first <sink>': repeated('this sink gets all events in the journal'),
  '--from <time>': readBy(instant, 'the other sinks get events received since this day or time (ISO 8601)'),
  ...CONFIG,
  '--json': 'print one JSON document',
};
type Options = OptionsOf<typeof OPTIONS>;

export function journalCommand(io: Io): Command {
  const command = commandOf('recover', OPTIONS, HELP)
    .description('set the position of each sink by hand')
    .action((options: Options) => recover(options, io));
  return commandOf('journal', {}, HELP)
    .description('recover a journal that has lost the positions of its sinks')
    .addCommand(command);
}

async function recover(options: Options, io: Io): Promise<void> {
  const { config } = asOwner(configOf(options, io));
  if (config.journal.type !== 'local') throw usageError('journal recover needs journal.type: local');
  const sinks = Object.keys(config.sinks);
  const { fromFirst, from } = options;
  for (const sink of fromFirst)
    if (!sinks.includes(sink)) throw usageError(`--from-first ${sink}: the config has no such sink`);
  const others = sinks.filter((sink) => !fromFirst.includes(sink));
  if (from === undefined && others.length > 0)
    throw usageError(
      `no position for ${others.join(', ')}: add --from-first SINK for each, or --from TIME for all of them`,
    );
  const open = (more: Partial<SqliteJournalOptions> = {}): Promise<SqliteJournal> =>
    openJournal(config, { onRepair: ({ detail }) => note(io, detail), ...more });
  if (!(await isRefused(open))) {
    io.setExit(EXIT.partial);
    const words = `${config.journal.path} needs no recovery: it has the positions of its sinks`;
    return printResult(io, options, { waiting: {} }, words);
  }
  await new Audit(config.journal.path).note({ who: 'command', action: 'recover', what: 'sinks', ids: sinks });
  const routes: RouteRecord = { ...NO_ROUTES, eras: [{ after: 0, tables: [config.routes] }] };
  await using journal = closing(await open({ recovery: { sinks, routes } }));
  const seq = from === undefined ? 0 : await lastBefore(journal, from);
  for (const sink of others) journal.moveCursor(sink, seq);
  await journal.flush();
  const { cursors } = await journal.status();
  const waiting = Object.fromEntries(cursors.map(({ sink, backlog }) => [sink, backlog]));
  printResult(
    io,
    options,
    { waiting },
    ...cursors.map(({ sink, backlog }) => `${sink}: ${backlog} events wait`),
  );
}

async function isRefused(open: () => Promise<SqliteJournal>): Promise<boolean> {
  try {
    await (await open()).close();
    return false;
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'journal_damaged') return true;
    throw error;
  }
}

/** The seq before the first event that was received at or after the time. */
async function lastBefore(journal: SqliteJournal, time: number): Promise<number> {
  for (let at = 0; ;) {
    const heads = await journal.heads(at);
    const found = heads.find(({ receivedAt }) => receivedAt >= time);
    if (found !== undefined) return found.seq - 1;
    const last = heads.at(-1);
    if (last === undefined) return journal.lastSeq;
    at = last.seq;
  }
}
