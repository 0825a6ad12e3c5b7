import { resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { consoleLink } from '../observe/admin/console.ts';
import type { ResolvedConfig } from '../config/config.ts';
import { unknownPrefixes } from '../config/routes.ts';
import { messageOf, MillraceError } from '../core/errors.ts';
import type { Route } from '../core/route.ts';
import { noteConfig } from '../journal/owner.ts';
import { Cell } from '../lib/live.ts';
import { Parts } from '../lib/parts.ts';
import { startAll } from './parts.ts';
import { type AppOptions, foundation } from './system.ts';
import { makePlan, needsRestart } from './plan.ts';

/** A running system: receiver, journal, dispatcher, sinks and admin listener. */
export type App = Awaited<ReturnType<typeof startApp>>;

/**
 * Most objects of an event live for some tens of milliseconds, until the sinks have it. V8 can create such objects in the old
 * generation, where they keep all that they refer to until the next full collection. In half of all runs that was a third of
 * all allocations.
 */
const EVENTS_DIE_YOUNG = '--no-allocation-site-pretenuring';
/**
 * Bodies are outside of V8's heap, and every 64 MiB of them would start a full collection: with 100 KB each ten a second, and a
 * third of the processor time. With this flag they count like the heap, which collects when both have grown several times.
 */
const BODIES_COUNT_AS_HEAP = '--external-memory-accounted-in-global-limit';
/**
 * V8 lets a heap grow up to four times, and more after a slow collection: on a busy machine the process needed a quarter more
 * memory within minutes. Growing by half costs a collection of some milliseconds every few seconds.
 */
const HEAPS_GROW_BY_HALF = '--heap-growing-percent=50';

/**
 * Runs a config: makes its plan, and starts the parts of `parts.ts`.
 * @throws MillraceError naming the key, folder or address concerned; nothing runs then
 */
export async function startApp(config: ResolvedConfig, options: AppOptions) {
  for (const flag of [EVENTS_DIE_YOUNG, BODIES_COUNT_AS_HEAP, HEAPS_GROW_BY_HALF]) setFlagsFromString(flag);
  const plan = new Cell(await makePlan(config));
  const { log } = options;
  const base = foundation(plan, { ...options, file: config.file });
  const parts = new Parts((error, part) => log.error({ err: error, part }, 'could not stop cleanly'));
  const { url, adminUrl, operations, delivery } = await startAll(base, parts);
  const { meter, tokens, role, clock, folder } = base;
  const noteRead = ({ file }: ResolvedConfig): void => {
    const since = new Date(clock.now()).toISOString();
    noteConfig(folder, { file: resolve(file), since, refused: null }, log);
  };
  noteRead(config);
  const warnOfPrefixes = async (routes: readonly Route[]): Promise<void> => {
    // Without a schema memory no types are known to have been seen.
    const { types } = await operations.schema().catch(() => ({ types: [] }));
    const seen = types.map(({ type }) => type);
    for (const warning of unknownPrefixes(routes, seen)) log.warn(warning);
  };
  await warnOfPrefixes(plan.value.config.routes);
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
    // A process that only receives has no sinks.
    if (role !== 'receive') await delivery.prepare(next, deadline);
    await plan.replace(next);
    if (role !== 'receive') await delivery.part(deadline);
    meter.reloaded(null);
    noteRead(changed);
    await warnOfPrefixes(next.config.routes);
    log.info({ sinks: [...next.sinks.keys()], routes: next.config.routes.length }, 'reloaded');
  };
  return {
    /** URL for deliveries; empty where none come in. */
    url,
    operations,
    /** A link that opens the console once; null without a console. */
    consoleLink: () =>
      adminUrl === null || !base.config.console.enabled ? null : consoleLink(adminUrl, tokens.newLink()),
    /**
     * Changes to the secrets, envelope, routes and sinks of another config, without losing a request.
     * @throws MillraceError when it cannot be used; nothing has changed then
     */
    reload: (changed: ResolvedConfig) => base.reloads.run(() => reload(changed)),
    /** Shows in the metrics that a changed config could not be read or used. */
    noteFailedReload: (error: unknown) => {
      meter.reloaded(messageOf(error));
      noteConfig(folder, { refused: messageOf(error) }, log);
    },
    /** Stops accepting, flushes until `signal` aborts, and closes everything. No acknowledged event is lost. */
    stop: (signal: AbortSignal) => {
      isStopping = true;
      return parts.stop(signal);
    },
  };
}
