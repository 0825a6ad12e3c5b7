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
import type { Base } from './system.ts';
import { createOperations, directOperations } from '../observe/admin/operations.ts';
import { Status } from '../observe/admin/status.ts';
import { archiveKeyOf } from '../config/folders.ts';
import { replaysBeside } from '../core/place.ts';
import type { ReceivingStatus } from '../core/operations.ts';
import type { RunningErasures } from '../privacy/erase/running-erasures.ts';
import { droppedBy } from '../privacy/proof/dropped.ts';
import { countWaiting } from '../deliver/waiting.ts';
import type { Receiver } from '../receive/receiver.ts';
import { hasFinished } from '../replay/finished.ts';
import { isBacklogFull, type ReceiverParts } from './receiver.ts';

/** The parts that have a status. */
export interface RunningParts extends ReceiverParts {
  readonly erasures: RunningErasures;
  /** Null where no deliveries come in. */
  readonly receiver: Receiver | null;
}

export function makeStatus(parts: RunningParts) {
  const { plan, journal, shared, store, validate, dispatcher, delivery, erasures, board } = parts;
  const running = {
    pid: process.pid,
    sinks: () => dispatcher.status(),
    receiving: () => receivingOf(parts),
    earlier: () => parts.earlier.troubles,
  };
  const administered = journal ?? shared;
  const operations =
    administered === null
      ? directOperations(store, running)
      : createOperations({
          ...running,
          countWaiting:
            journal === null
              ? undefined
              : (sink, after) => countWaiting({ journal, sink, after, routes: delivery.routes }),
          journal: administered,
          validate,
          schema: parts.schema,
          hasSink: (name) => plan.value.config.sinks[name] !== undefined,
          dropSink: (sink) => delivery.giveUp(sink),
          noteDropped: droppedBy(parts.proof, (sink) =>
            archiveKeyOf(plan.value.config.sinks[sink]?.description.archive),
          ),
        });
  const activities = () => [...erasures.activities(), ...board.list()];
  const receiver = parts.receiver ?? NOT_RECEIVING;
  const status = new Status({
    ...parts,
    operations,
    receiver,
    isBacklogFull: () => parts.receiver !== null && isBacklogFull(parts),
    activities,
    canReplay: parts.file !== undefined,
  });
  return { made: { operations, status }, stop: () => status.stop() };
}

/** Ready, where no deliveries come in. */
const NOT_RECEIVING = {
  ready: true,
  state: 'off',
  inFlight: 0,
  decompressing: 0,
  connections: { open: 0, evicted: 0, dropped: 0 },
};

function receivingOf({ receiver, receipts, plan, meter }: RunningParts): ReceivingStatus | null {
  if (receiver === null) return null;
  const { open, max, evicted, dropped } = receiver.connections;
  return {
    connections: { open, max, evicted, dropped },
    refused: meter.refusals.lastHour(),
    refusedSince: meter.refusals.since(),
    refusedLast: meter.refusals.last,
    signing: meter.signing(plan.value.config.signing.secrets.length),
    receipts: receipts?.status() ?? null,
  };
}

/** Its thread starts with the first search. */
export function makeSearch(parts: RunningParts): Started<EventSearch | null> {
  const { config, journal, delivery, plan, dispatcher, meter } = parts;
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

/** Replays that a person starts in the console, each in its own process. */
export function makeReplays({ config, plan, file }: Base): Started<Replays | null> {
  if (!config.admin.enabled || !config.console.enabled || file === undefined) return { made: null };
  const replays = new Replays({
    config: file,
    orders: new ReplayOrders(config.journal.path),
    hasFinished: (id) => hasFinished(replaysBeside(config.journal.path), id),
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

/** @returns its URL; null without an admin listener */
export async function openAdmin(
  parts: RunningParts,
  served: Pick<AdminOptions, 'operations' | 'search' | 'replays'> & { readonly status: Status },
): Promise<Started<string | null>> {
  const { config, token, folder, log } = parts;
  const { status } = served;
  if (!config.admin.enabled) return { made: null };
  const admin = await startAdmin({
    ...parts,
    ...served,
    ...config.admin,
    archives: () => archivesOf(parts.plan.value),
    flush: (names) => flushSinks(parts, names),
    health: () => status.health(),
    metrics: () => status.metrics(),
    console: config.console.enabled ? status : null,
  });
  announceOwner(folder, { admin: admin.url, token }, log);
  return { made: admin.url, stop: () => admin.close() };
}
