import { EventSearch } from '../observe/admin/event-search.ts';
import type { SinkArchive } from '../observe/admin/archive-files.ts';
import { ReplayOrders } from '../observe/admin/replay-orders.ts';
import { Replays } from '../observe/admin/replays.ts';
import { type AdminOptions, startAdmin } from '../observe/admin/server.ts';
import { flushSinks } from '../deliver/flush.ts';
import { announceOwner } from '../journal/owner.ts';
import { JournalSearch } from '../journal/search/search.ts';
import type { Started } from '../lib/parts.ts';
import type { Plan } from './plan.ts';
import type { Running, Told } from './status.ts';
import type { Base } from './system.ts';

/** Its thread begins with the first search. */
export function makeSearch(system: Running): Started<EventSearch | null> {
  const { config, journal, delivery, plan, dispatcher, meter } = system;
  if (journal === null) return { made: null };
  const thread = new JournalSearch(config.journal.path, () => journal.status());
  const search = new EventSearch({
    journal,
    find: (query) => thread.find(query),
    targetsOf: (event) => delivery.routes.targetsOf(event),
    eraOf: (seq) => delivery.routes.eraOf(seq),
    routeOf: (type) => plan.value.table.routesFor(type),
    sinks: () => dispatcher.status(),
    attemptsOf: (seq) => meter.deliveries.of(seq),
  });
  return { made: search, stop: () => thread.close() };
}

/** Those that a person starts in the console; each is a process of its own. */
export function makeReplays({ config, plan, file }: Base): Started<Replays | null> {
  if (!config.admin.enabled || !config.console.enabled || file === undefined) return { made: null };
  const replays = new Replays({
    config: file,
    orders: new ReplayOrders(config.journal.path),
    sinks: () =>
      new Map(Object.entries(plan.value.config.sinks).map(([name, { description }]) => [name, description])),
  });
  return { made: replays, stop: (signal) => replays.close(signal) };
}

function archivesOf({ config }: Plan): readonly SinkArchive[] {
  return Object.entries(config.sinks).flatMap(([sink, { description }]) => {
    const { archive: path, keys } = description;
    return path === undefined ? [] : [{ sink, path, isSealed: keys !== undefined }];
  });
}

/** @returns its address; null where there is none */
export async function openAdmin(
  system: Running,
  told: Told & Pick<AdminOptions, 'search' | 'replays'>,
): Promise<Started<string | null>> {
  const { config, token, folder, log } = system;
  const { status } = told;
  if (!config.admin.enabled) return { made: null };
  const admin = await startAdmin({
    ...system,
    ...told,
    ...config.admin,
    archives: () => archivesOf(system.plan.value),
    flush: (names) => flushSinks(system, names),
    health: () => status.health(),
    metrics: () => status.metrics(),
    console: config.console.enabled ? status.console : null,
  });
  announceOwner(folder, { admin: admin.url, token }, log);
  return { made: admin.url, stop: () => admin.close() };
}
