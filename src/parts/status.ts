import { directOperations } from '../admin/direct-operations.ts';
import { createOperations } from '../admin/operations.ts';
import { Status } from '../admin/status.ts';
import { archiveKeyOf } from '../config/folders.ts';
import type { ReceivingStatus } from '../core/operations.ts';
import type { Stop } from '../lib/parts.ts';
import { droppedBy } from '../proof/dropped.ts';
import { countWaiting } from '../deliver/waiting.ts';
import { isBacklogFull } from './receiver.ts';
import { mostConnections } from './open-files.ts';
import type { System } from './system.ts';

export function makeStatus(system: System): Stop {
  const { plan, journal, shared, store, validate, dispatcher, delivery, erasures, board } = system;
  const running = {
    pid: process.pid,
    sinks: () => dispatcher.status(),
    receiving: () => receivingOf(system),
    earlier: () => system.earlier.troubles,
  };
  const administered = journal ?? shared;
  system.operations =
    administered === null
      ? directOperations(store, running)
      : createOperations({
          ...running,
          ...(journal === null
            ? {}
            : {
                countWaiting: (sink, after) =>
                  countWaiting({ journal, sink, after, routes: delivery.routes }),
              }),
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
    receiver,
    isBacklogFull: () => system.receiver !== null && isBacklogFull(system),
    activities,
    canReplay: system.file !== undefined,
  });
  system.status = status;
  return () => status.stop();
}

/** Nothing is to come in, so there is nothing to be ready for it. */
const NOT_RECEIVING = {
  ready: true,
  state: 'off',
  inFlight: 0,
  decompressing: 0,
  connections: { open: 0, evicted: 0, dropped: 0 },
};

function receivingOf({ receiver, receipts, config, plan, meter }: System): ReceivingStatus | null {
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
