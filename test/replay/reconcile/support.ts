import { Places } from '../../../src/archive/places.ts';
import { createOperations } from '../../../src/observe/admin/operations.ts';
import { reconcileCommand } from '../../../src/cli/reconcile/command.ts';
import { loadConfig } from '../../../src/config/load.ts';
import type { JournalEvent } from '../../../src/core/event.ts';
import type { Operations } from '../../../src/core/operations.ts';
import type { RecordOpener } from '../../../src/core/sealed-record.ts';
import type { SqliteJournal } from '../../../src/journal/sqlite-journal.ts';
import { reconcile } from '../../../src/replay/reconcile/reconcile.ts';
import type { ReconcileReport } from '../../../src/replay/reconcile/report.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { createValidator } from '../../../src/receive/validate/envelope.ts';
import { run } from '../../cli/run.ts';
import { userId } from '../../privacy/erase/support.ts';
import { signal, tempFolder } from '../../sinks/support.ts';
import { writeConfig } from '../../support/millrace.ts';

/** Runs `millrace reconcile` inside the test; rejects with what would end the process. */
export function runReconcile(args: readonly string[], env: Record<string, string> = {}) {
  return run(reconcileCommand, args, env);
}

/** Accounts for the hour of the made-up events: of a journal, and of the files of one sink. */
export function accountOf(
  operations: Operations,
  path: string,
  opener?: RecordOpener,
): Promise<ReconcileReport> {
  const hour = Math.floor(contractEvent(1).receivedAt / HOUR) * HOUR;
  return reconcile({
    logHead: null,
    places: new Places(),
    operations,
    earlier: new Map(),
    sinks: [{ name: 'archive', type: 'files', archive: { path, opener } }],
    window: { since: hour, until: hour + HOUR },
    signal,
  });
}

const HOUR = 3_600_000;

/** The nth made-up event, of a user if one is named, as a sink is handed it. */
export function received(n: number, user?: number): JournalEvent {
  const { user: own, ...event } = contractEvent(n);
  return { ...event, user: user === undefined ? own : userId(user), seq: n, handling: {} };
}

/** What is asked of a journal without a receiver around it. */
export function operationsOn(journal: SqliteJournal): Operations {
  const file = writeConfig(tempFolder());
  const { config } = loadConfig({ file, env: {} });
  return createOperations({
    journal,
    validate: createValidator(config.envelope),
    pid: null,
    sinks: () => [],
    hasSink: () => true,
    dropSink: () => Promise.reject(new Error('not here')),
    noteDropped: () => Promise.resolve(),
  });
}
