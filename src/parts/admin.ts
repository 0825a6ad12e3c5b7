import { EventSearch } from '../admin/event-search.ts';
import type { SinkArchive } from '../admin/archive-files.ts';
import { ReplayOrders } from '../admin/replay-orders.ts';
import { Replays } from '../admin/replays.ts';
import { startAdmin } from '../admin/server.ts';
import { flushSinks } from '../deliver/flush.ts';
import { announceOwner } from '../journal/owner.ts';
import { JournalSearch } from '../journal/search/search.ts';
import type { Stop } from '../lib/parts.ts';
import type { Plan } from '../plan.ts';
import type { System } from './system.ts';

/** Its thread begins with the first search. */
export function makeSearch(system: System): Stop | void {
  const { config, journal, delivery, plan, dispatcher, meter } = system;
  system.search = null;
  if (journal === null) return;
  const thread = new JournalSearch(config.journal.path, () => journal.status());
  system.search = new EventSearch({
    journal,
    find: (query) => thread.find(query),
    targetsOf: (event) => delivery.routes.targetsOf(event),
    eraOf: (seq) => delivery.routes.eraOf(seq),
    routeOf: (type) => plan.value.table.routesFor(type),
    sinks: () => dispatcher.status(),
    attemptsOf: (seq) => meter.deliveries.of(seq),
  });
  return () => thread.close();
}

/** Those that a person starts in the console; each is a process of its own. */
export function makeReplays(system: System): Stop | void {
  const { config, plan, file } = system;
  system.replays = null;
  if (!config.admin.enabled || !config.console.enabled || file === undefined) return;
  const replays = new Replays({
    config: file,
    orders: new ReplayOrders(config.journal.path),
    sinks: () =>
      new Map(
        Object.entries(plan.value.config.sinks).map(([name, { description }]) => {
          const { archive = null, writesStdout = false } = description;
          return [name, { archive, writesStdout }];
        }),
      ),
  });
  system.replays = replays;
  return (signal) => replays.close(signal);
}

function archivesOf({ config }: Plan): readonly SinkArchive[] {
  return Object.entries(config.sinks).flatMap(([sink, { description }]) => {
    const { archive: path, keys } = description;
    return path === undefined ? [] : [{ sink, path, isSealed: keys !== undefined }];
  });
}

export async function openAdmin(system: System): Promise<Stop | void> {
  const { config, status, token, folder, log } = system;
  system.adminUrl = null;
  if (!config.admin.enabled) return;
  const admin = await startAdmin({
    ...system,
    ...config.admin,
    archives: () => archivesOf(system.plan.value),
    flush: (names) => flushSinks(system, names),
    health: () => status.health(),
    metrics: () => status.metrics(),
    console: config.console.enabled ? status.console : null,
  });
  system.adminUrl = admin.url;
  announceOwner(folder, { admin: admin.url, token }, log);
  return () => admin.close();
}
