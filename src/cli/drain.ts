import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import type { ResolvedConfig } from '../config/config.ts';
import { resolveConfig } from '../config/load.ts';
import { EXIT, MillraceError } from '../core/errors.ts';
import { startDraining, type Left } from '../app/drain.ts';
import { parseDuration } from '../lib/units.ts';
import { actAsOwnerOfJournal } from './as-owner.ts';
import { CONFIG } from './config-options.ts';
import { note, print, type Io } from './io.ts';
import { createLog } from './log.ts';
import { commandOf, type OptionsOf, readBy, required } from './options.ts';
import { StatusLine } from './status-line.ts';

const HELP = `
Examples:
  millrace drain --journal /mnt/millrace-2/journal --config /etc/millrace/millrace.yaml
  millrace drain --journal ./data/journal --timeout 10m
  MILLRACE_JOURNAL_PATH=/mnt/millrace-2/journal millrace dead-letters list      what it leaves there

Delivers what a journal still holds that no receiver owns any more, such as that of a replica that was scaled in: to the sinks
of the config, by the routes under which its events were accepted. Nothing new is received. It waits for sinks that are down, until
--timeout or a signal; run it again to continue. While it runs it owns the journal: a receiver or a second drain does not start.
Dead letters and quarantined events stay in the journal, for \`retry\` or \`drop\`.

Exit codes: 0 the journal is empty and its volume can go, 1 failed, 2 usage or config, or another process owns the journal,
3 something is left in it.`;

/** Milliseconds between two looks. */
const LOOK_EVERY = 200;

const OPTIONS = {
  '--journal <path>': required('folder of the journal'),
  '--timeout <duration>': readBy(parseDuration, 'stop after so long (default: when all is delivered)'),
  ...CONFIG,
  '--json': 'print one JSON object',
};
type Options = OptionsOf<typeof OPTIONS>;

export function drainCommand(io: Io): Command {
  return commandOf('drain', OPTIONS, HELP)
    .description('deliver what a journal holds that no receiver owns any more')
    .action(async (options: Options) => {
      const loaded = await resolveConfig({ file: options.config, env: io.env });
      actAsOwnerOfJournal(options.journal);
      const left = await drain(loaded, options, io);
      const isEmpty = Object.keys(left.waiting).length + left.deadLetters + left.quarantined === 0;
      const { delivered, waiting, deadLetters: dead_letters, quarantined } = left;
      const document = { ok: isEmpty, delivered, waiting, dead_letters, quarantined };
      if (options.json === true) print(io, JSON.stringify(document));
      else report(io, isEmpty, left);
      io.setExit(isEmpty ? EXIT.done : EXIT.partial);
    });
}

async function drain(loaded: ResolvedConfig, { journal, timeout }: Options, io: Io): Promise<Left> {
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  const draining = await startDraining(loaded, resolve(journal), {
    log: createLog(io, { level: 'warn' }),
    onFailure: failed.reject,
  }).catch((error: unknown) => {
    if (error instanceof MillraceError && error.code === 'journal_in_use')
      throw new MillraceError('folder_in_use', error.detail);
    throw error;
  });
  const line = new StatusLine(io);
  const end = timeout === undefined ? Infinity : performance.now() + timeout;
  try {
    for (;;) {
      const left = await Promise.race([draining.look(), failed.promise]);
      line.show(
        () => `${progress(left)}${line.pace(sum(left.delivered), sum(left.delivered) + sum(left.waiting))}`,
      );
      const isOver = io.signal.aborted || performance.now() >= end;
      if (isOver || Object.keys(left.waiting).length === 0) return left;
      await pause(LOOK_EVERY, undefined, { signal: io.signal }).catch(() => undefined);
    }
  } finally {
    await draining.stop(AbortSignal.timeout(loaded.config.shutdown.deadline));
  }
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((all, count) => all + count, 0);
}

function progress({ waiting, delivered, errors }: Left): string {
  const parts = Object.entries(waiting).map(([sink, events]) => {
    const error = errors[sink];
    return `${sink}: ${delivered[sink] ?? 0} delivered, ${events} waiting${error === undefined ? '' : ` (${error})`}`;
  });
  return parts.length === 0 ? 'nothing waits' : parts.join('; ');
}

function report(
  io: Io,
  isEmpty: boolean,
  { waiting, delivered, errors, deadLetters, quarantined }: Left,
): void {
  for (const [sink, events] of Object.entries(delivered)) print(io, `delivered  ${events} to ${sink}`);
  for (const [sink, events] of Object.entries(waiting))
    print(io, `waiting    ${events} for ${sink}${errors[sink] === undefined ? '' : `: ${errors[sink]}`}`);
  if (deadLetters > 0) print(io, `left       ${deadLetters} dead letters`);
  if (quarantined > 0) print(io, `left       ${quarantined} quarantined`);
  note(io, isEmpty ? 'the journal is empty' : 'something is left in the journal; keep it');
}
