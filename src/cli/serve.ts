import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Logger } from 'pino';
import { startApp, type App } from '../app/app.ts';
import type { AppOptions } from '../app/system.ts';
import type { ResolvedConfig } from '../config/config.ts';
import { resolveConfig } from '../config/load.ts';
import { EXIT, messageOf, MillraceError } from '../core/errors.ts';
import { untilAborted } from '../lib/abort.ts';
import { keepUser } from '../lib/act-as-owner.ts';
import { Serial } from '../lib/serial.ts';
import { aboutDuration } from '../lib/units.ts';
import { asOwner } from './as-owner.ts';
import { usageError, type Io } from './io.ts';
import { createLog } from './log.ts';
import { CONFIG, isServed } from './config-options.ts';
import { commandOf, oneOf, type OptionsOf } from './options.ts';

const HELP = `
Examples:
  MILLRACE_SECRET=whsec_… millrace serve
  millrace serve --config /etc/millrace/millrace.yaml
  millrace serve --role receive      one half of a fleet: journal.type kafka

Logs to stderr, in JSON unless it is a terminal (see log.format); the line with "msg":"listening" has the actual URL. SIGTERM stops
accepting deliveries, flushes the sinks within shutdown.deadline and exits with 0; a second SIGTERM exits at once. SIGHUP reads the
config again: secrets, envelope, routes and sinks change without losing a request. An invalid config changes nothing. Acknowledged
events are never lost. While another process has the journal, such as a receiver that is stopping, it waits for shutdown.deadline.

Exit codes: 0 stopped by a signal, 1 failed, or a command uses something it needs, 2 usage or config, or another receiver has the
journal, 4 the key store is an older copy, or its ledger was changed. After 2 and 4 a restart does not help.`;

const OPTIONS = {
  '--role <role>': oneOf(
    ['receive', 'deliver'],
    'with journal.type kafka: what this process does (default: both)',
  ),
  ...CONFIG,
};
type Options = OptionsOf<typeof OPTIONS>;

export function serveCommand(io: Io): Command {
  return commandOf('serve', OPTIONS, HELP)
    .description('receive signed webhooks, keep them durably, deliver them to the sinks')
    .action(async (options: Options) => {
      const stopped = untilAborted(io.signal).then(() => null);
      const loaded = await Promise.race([resolveConfig({ file: options.config, env: io.env }), stopped]);
      if (loaded === null) return io.setExit(EXIT.done);
      asOwner(loaded);
      keepUser();
      const { role } = options;
      if (role !== undefined && loaded.config.journal.type === 'local')
        throw usageError(`--role ${role} needs journal.type: kafka, where a fleet shares the journal`);
      const log = createLog(io, loaded.config.log);
      for (const warning of [...loaded.warnings, ...(io.envWarnings?.() ?? [])]) log.warn(warning);
      if (loaded.config.signing.scheme === 'none') {
        log.warn('signing.scheme is none: anyone who can reach the endpoint can send events');
      }
      // A stdout sink reports the loss itself, and other sinks continue.
      io.whenOutputIsLost('stay');
      const failure = Promise.withResolvers<MillraceError>();
      const broken = uncaught(io, log);
      // Before the receiver listens: without a listener a SIGHUP would end the process.
      const started = Promise.withResolvers<App>();
      const reloads = new Serial();
      const reloadNow = (): Promise<void> =>
        reloads.run(async () => reload(await started.promise, options.config, io, log));
      io.onHangUp(() => {
        if (!io.signal.aborted) void reloadNow().catch(() => undefined);
      });
      const starting = startWhenFree(loaded, io.signal, {
        log,
        onFailure: failure.resolve,
        reload: reloadNow,
        ...(role === undefined ? {} : { role }),
      });
      const end = new AbortController();
      const { deadline } = loaded.config.shutdown;
      const overdue = Promise.race([stopped, broken.promise])
        .then(() => pause(deadline, null, { ref: false }))
        .finally(() => end.abort());
      const app = await Promise.race([starting, broken.promise, overdue]).catch((error: unknown) =>
        refuse(error, loaded),
      );
      if (app === null) {
        if (end.signal.aborted) log.warn('shutdown.deadline passed before the start was over; stopped');
        return io.setExit(broken.happened ? EXIT.failed : EXIT.done);
      }
      started.resolve(app);
      const failed = await Promise.race([failure.promise, broken.promise, stopped]);
      if (failed !== null) log.fatal({ code: failed.code, detail: failed.detail }, 'journal failed; exiting');
      else log.info('stopping');
      // After a failure it only answers the open requests, with errors.
      const until = failed === null ? end.signal : AbortSignal.timeout(FAILURE_DEADLINE_MS);
      await app.stop(until);
      if (until.aborted) log.warn('shutdown.deadline passed; undelivered events stay in the journal');
      else log.info('stopped');
      io.setExit(failed === null && !broken.happened ? EXIT.done : EXIT.failed);
    });
}

/** Time that a receiver needs to close its journal after its shutdown.deadline. */
const CLOSE_MS = 2000;
const RETRY_MS = 200;

/**
 * Starts the app. While another process has the journal, tries again for as long as a receiver that is stopping may take.
 * @returns null when `signal` aborts during that time
 */
async function startWhenFree(
  loaded: ResolvedConfig,
  signal: AbortSignal,
  options: AppOptions,
): Promise<App | null> {
  const wait = loaded.config.shutdown.deadline + CLOSE_MS;
  const end = performance.now() + wait;
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await startApp(loaded, options);
    } catch (error) {
      if (!isJournalHeld(error) || performance.now() > end) throw error;
      const { code, detail } = error;
      if (isFirst) options.log.warn({ code, detail }, `waiting up to ${aboutDuration(wait)} for the journal`);
      await pause(RETRY_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return null;
    }
  }
}

function isJournalHeld(error: unknown): error is MillraceError {
  return error instanceof MillraceError && error.code === 'journal_in_use';
}

/**
 * Supervisors restart after 1, but not after 2. A command that uses the journal or a folder ends by itself: 1. Another receiver that
 * has the journal needs a person: 2.
 */
function refuse(error: unknown, { config }: ResolvedConfig): never {
  if (!(error instanceof MillraceError) || !error.retryable) throw error;
  const exit = isJournalHeld(error) && isServed(config) ? EXIT.usage : EXIT.failed;
  throw new MillraceError(error.code, error.detail, { cause: error, exit });
}

/** Logs an uncaught error; the state is unknown then, so the receiver stops. */
function uncaught(io: Io, log: Logger): { readonly promise: Promise<null>; readonly happened: boolean } {
  const { promise, resolve } = Promise.withResolvers<null>();
  const state = { promise, happened: false };
  io.onUncaught((error, module) => {
    log.fatal({ err: error, ...(module === null ? {} : { module }) }, 'uncaught error; stopping');
    state.happened = true;
    resolve(null);
  });
  return state;
}

const FAILURE_DEADLINE_MS = 1000;

/** Reads the config and `.env` again. Rejects for an invalid config, which changes nothing and is logged. */
async function reload(app: App, file: string | undefined, io: Io, log: Logger): Promise<void> {
  let restoreEnv: (() => void) | undefined;
  try {
    restoreEnv = await io.readEnvAgain?.();
    const loaded = await resolveConfig({ file, env: io.env });
    for (const warning of [...loaded.warnings, ...(io.envWarnings?.() ?? [])]) log.warn(warning);
    await app.reload(loaded);
  } catch (error) {
    restoreEnv?.();
    app.noteFailedReload(error);
    log.error({ error: messageOf(error) }, 'reload failed; the previous config stays in force');
    throw error;
  }
}
