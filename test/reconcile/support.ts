import { PassThrough } from 'node:stream';
import { createOperations } from '../../src/admin/operations.ts';
import { reconcileCommand } from '../../src/cli/reconcile/command.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Operations } from '../../src/core/operations.ts';
import type { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { createValidatorFor } from '../../src/validate/envelope.ts';
import { tempFolder } from '../sinks/support.ts';
import { writeConfig } from '../support/millrace.ts';

export interface Output {
  readonly exit: number;
  readonly stdout: string;
}

/** Runs `millrace reconcile` inside the test; rejects with what would end the process. */
export async function runReconcile(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Output> {
  const stdout = new PassThrough();
  let exit = 0;
  const io = {
    stdout,
    stderr: new PassThrough().resume(),
    stdin: new PassThrough(),
    env,
    signal: new AbortController().signal,
    onHangUp: () => undefined,
    onUncaught: () => undefined,
    whenOutputIsLost: () => undefined,
    setExit: (code: number) => void (exit = code),
  };
  await reconcileCommand(io).exitOverride().parseAsync(args, { from: 'user' });
  return { exit, stdout: String(stdout.read() ?? '') };
}

/** What is asked of a journal without a receiver around it. */
export function operationsOn(journal: SqliteJournal): Operations {
  const file = writeConfig(tempFolder());
  const { config } = loadConfig({ file, env: {} });
  return createOperations({
    journal,
    validate: createValidatorFor(config),
    pid: null,
    sinks: () => [],
    hasSink: () => true,
    dropSink: () => Promise.reject(new Error('not here')),
    noteDropped: () => Promise.resolve(),
  });
}
