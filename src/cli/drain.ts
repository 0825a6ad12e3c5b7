import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import type { ResolvedConfig } from '../config/config.ts';
import { resolveConfig } from '../config/load.ts';
import { EXIT, MillraceError } from '../core/errors.ts';
import { startDraining, type Left } from '../app/drain.ts';
import { parseDuration } from '../lib/units.ts';
import { actAsOwnerOf } from './as-owner.ts';
import { CONFIG } from './config-options.ts';
import { note, printResult, type Io } from './io.ts';
import { createLog } from './log.ts';
import { commandOf, type OptionsOf, readBy, required } from './options.ts';
import { StatusLine } from './status-line.ts';

const HELP = `
Examples:
  millrace drain --journal /mnt/millrace-2/journal --config /etc/millrace/millrace.yaml
  millrace drain --journal ./data/journal --timeout 10m
  MILLRACE_JOURNAL_PATH=/mnt/millrace-2/journal millrace dead-letters list      what it leaves there

Delivers the events of a journal that no receiver owns any more, such as the journal of a removed replica: to the sinks of the
config, by the routes under which the events were accepted. It waits for sinks that are down, until --timeout or a signal; run it
again to continue. No receiver can use the journal at the same time. Dead letters and quarantined events stay, for \`retry\` or
\`drop\`.

Exit codes: 0 the journal is empty and its volume can go, 1 failed, 2 usage or config, or another process owns the journal,
3 something is left in it.`;

/** Milliseconds between two looks. */
const EVERY_MS = 200;

const OPTIONS = {
  '--journal <path>': required('folder of the journal'),
  '--timeout <duration>': readBy(parseDuration, 'stop after this time (default: when all is delivered)'),
  ...CONFIG,
  '--json': 'print one JSON object',
};
type Options = OptionsOf<typeof OPTIONS>;

export function drainCommand(io: Io): Command {
  return commandOf('drain', OPTIONS, HELP)
    .description('deliver what a journal holds that no receiver owns any more')
    .action(async (options: Options) => {
      const loaded = await resolveConfig({ file: options.config, env: io.env });
      actAsOwnerOf(options.journal);
      const left = await drain(loaded, options, io);
      const isEmpty = Object.keys(left.waiting).length + left.deadLetters + left.quarantined === 0;
      const { delivered, waiting, deadLetters: dead_letters, quarantined } = left;
      const document = { ok: isEmpty, delivered, waiting, dead_letters, quarantined };
      printResult(io, options, document, ...linesOf(left));
      if (options.json !== true)
        note(io, isEmpty ? 'the journal is empty' : 'something is left in the journal; keep it');
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
  const status = new StatusLine(io);
  const end = timeout === undefined ? Infinity : performance.now() + timeout;
  try {
    for (;;) {
      const left = await Promise.race([draining.look(), failed.promise]);
      const [done, rest] = [sum(left.delivered), sum(left.waiting)];
      status.show(() => `${progress(left)}${status.pace(done, done + rest)}`);
      const isOver = io.signal.aborted || performance.now() >= end;
      if (isOver || Object.keys(left.waiting).length === 0) return left;
      await pause(EVERY_MS, undefined, { signal: io.signal }).catch(() => undefined);
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

function linesOf({ waiting, delivered, errors, deadLetters, quarantined }: Left): string[] {
  return [
    ...Object.entries(delivered).map(([sink, events]) => `delivered  ${events} to ${sink}`),
    ...Object.entries(waiting).map(([sink, events]) => {
      const error = errors[sink];
      return `waiting    ${events} for ${sink}${error === undefined ? '' : `: ${error}`}`;
    }),
    ...(deadLetters > 0 ? [`left       ${deadLetters} dead letters`] : []),
    ...(quarantined > 0 ? [`left       ${quarantined} quarantined`] : []),
  ];
}
