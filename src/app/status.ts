import { createOperations, directOperations } from '../observe/admin/operations.ts';
import { Status } from '../observe/admin/status.ts';
import { archiveKeyOf } from '../config/folders.ts';
import type { Operations, ReceivingStatus } from '../core/operations.ts';
import type { RunningErasures } from '../privacy/erase/running-erasures.ts';
import type { Started } from '../lib/parts.ts';
import { droppedBy } from '../privacy/proof/dropped.ts';
import { countWaiting } from '../deliver/waiting.ts';
import type { Receiver } from '../receive/receiver.ts';
import { mostConnections } from './open-files.ts';
import { isBacklogFull, type Receiving } from './receiver.ts';

/** All that runs and has something to say of itself. */
export interface Running extends Receiving {
  readonly erasures: RunningErasures;
  /** Null where nothing comes in. */
  readonly receiver: Receiver | null;
}

export interface Told {
  readonly operations: Operations;
  readonly status: Status;
}

export function makeStatus(system: Running): Started<Told> {
  const { plan, journal, shared, store, validate, dispatcher, delivery, erasures, board } = system;
  const running = {
    pid: process.pid,
    sinks: () => dispatcher.status(),
    receiving: () => receivingOf(system),
    earlier: () => system.earlier.troubles,
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
          schema: system.schema,
          hasSink: (name) => plan.value.config.sinks[name] !== undefined,
          dropSink: (sink) => delivery.giveUp(sink),
          noteDropped: droppedBy(system.proof, (sink) =>
            archiveKeyOf(plan.value.config.sinks[sink]?.description.archive),
          ),
        });
  const activities = () => [...erasures.activities(), ...board.list()];
  const receiver = system.receiver ?? NOT_RECEIVING;
  const status = new Status({
    ...system,
    operations,
    receiver,
    isBacklogFull: () => system.receiver !== null && isBacklogFull(system),
    activities,
    canReplay: system.file !== undefined,
  });
  return { made: { operations, status }, stop: () => status.stop() };
}

/** Nothing is to come in, so there is nothing to be ready for it. */
const NOT_RECEIVING = {
  ready: true,
  state: 'off',
  inFlight: 0,
  decompressing: 0,
  connections: { open: 0, evicted: 0, dropped: 0 },
};

function receivingOf({ receiver, receipts, config, plan, meter }: Running): ReceivingStatus | null {
  if (receiver === null) return null;
  const { open, evicted, dropped } = receiver.connections;
  const max = mostConnections(config);
  return {
    connections: { open, max, evicted, dropped },
    refused: meter.refusals.lastHour(),
    refusedSince: meter.refusals.since(),
    signing: meter.signing(plan.value.config.signing.secrets.length),
    receipts: receipts?.status() ?? null,
  };
}
