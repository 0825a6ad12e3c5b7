import { setFlagsFromString } from 'node:v8';
import { consoleLink } from '../observe/admin/console-access.ts';
import type { ResolvedConfig } from '../config/config.ts';
import { messageOf, MillraceError } from '../core/errors.ts';
import type { Operations } from '../core/operations.ts';
import { Cell } from '../lib/live.ts';
import { Parts } from '../lib/parts.ts';
import { startAll } from './parts.ts';
import { type AppOptions, foundation } from './system.ts';
import { makePlan, needsRestart } from './plan.ts';

/** A running system: receiver, journal, dispatcher, sinks and admin listener. */
export interface App {
  /** Where deliveries go; empty where none do. */
  readonly url: string;
  readonly operations: Operations;
  /** A link that opens the console once; null where there is none. */
  consoleLink(): string | null;
  /**
   * Takes over secrets, envelope, routes and sinks of a changed config, without losing a request.
   * @throws MillraceError when it cannot be used; everything then stays as it was
   */
  reload(config: ResolvedConfig): Promise<void>;
  /** Notes, for whoever watches, that a changed config could not be read or used. */
  noteFailedReload(error: unknown): void;
  /** Ends the intake, flushes what it can until `signal` aborts, and releases everything. Nothing durable is lost. */
  stop(signal: AbortSignal): Promise<void>;
}

/**
 * Most objects of an event live until the sinks have it, some tens of milliseconds. V8 can take such objects for long-lived
 * ones, and then creates them among the old: dead ones there keep all they refer to until the next full collection. In
 * half of all runs that was a third of all that is allocated.
 */
const EVENTS_DIE_YOUNG = '--no-allocation-site-pretenuring';
/**
 * Otherwise each 64 MiB of bodies, which are outside of V8's heap, begin a full collection of it: with 100 KB each ten a
 * second, and a third of the processor time. So they count as what is in the heap does: it collects when both have grown
 * several times.
 */
const BODIES_COUNT_AS_HEAP = '--external-memory-accounted-in-global-limit';
/**
 * V8 lets a heap grow up to four times, and that the more the slower its last collection was: on a busy machine the process
 * took a quarter more memory within minutes. Half as much again costs a collection of some milliseconds every few seconds.
 */
const HEAPS_GROW_BY_HALF = '--heap-growing-percent=50';

/**
 * Runs what the config describes: makes a plan of it, and starts the parts of `parts.ts` on that.
 * @throws MillraceError naming the key, folder or address that is in the way; nothing runs then
 */
export async function startApp(config: ResolvedConfig, options: AppOptions): Promise<App> {
  for (const flag of [EVENTS_DIE_YOUNG, BODIES_COUNT_AS_HEAP, HEAPS_GROW_BY_HALF]) setFlagsFromString(flag);
  const plan = new Cell(await makePlan(config));
  const { log } = options;
  const base = foundation(plan, { ...options, file: config.file });
  const parts = new Parts((error, part) => log.error({ err: error, part }, 'could not stop cleanly'));
  const { url, adminUrl, operations, delivery } = await startAll(base, parts);
  const { meter, tokens, role } = base;
  log.info(
    { url: url === '' ? null : url, admin: adminUrl, sinks: [...plan.value.sinks.keys()] },
    'listening',
  );

  let isStopping = false;
  const reload = async (changed: ResolvedConfig): Promise<void> => {
    if (isStopping) throw new MillraceError('shutting_down', 'the next start reads the config');
    const next = await makePlan(changed);
    for (const key of needsRestart(base.config, next.config))
      log.warn({ key }, 'a change to this key needs a restart');
    const deadline = AbortSignal.timeout(base.config.shutdown.deadline);
    // What only receives has no sinks to exchange.
    if (role !== 'receive') await delivery.prepare(next, deadline);
    await plan.replace(next);
    if (role !== 'receive') await delivery.part(deadline);
    meter.reloaded(null);
    log.info({ sinks: [...next.sinks.keys()], routes: next.config.routes.length }, 'reloaded');
  };
  return {
    url,
    operations,
    consoleLink: () =>
      adminUrl === null || !base.config.console.enabled ? null : consoleLink(adminUrl, tokens.newLink()),
    reload: (changed) => base.reloads.run(() => reload(changed)),
    noteFailedReload: (error) => meter.reloaded(messageOf(error)),
    stop: (signal) => {
      isStopping = true;
      return parts.stop(signal);
    },
  };
}
