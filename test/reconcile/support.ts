import { PassThrough } from 'node:stream';
import { reconcileCommand } from '../../src/cli/reconcile/command.ts';

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
