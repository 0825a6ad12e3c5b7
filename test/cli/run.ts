import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { Io } from '../../src/cli/io.ts';

/** Runs one command inside the test and returns what it wrote. Rejects with whatever the command throws. */
export async function run(
  command: (io: Io) => Command | Promise<Command>,
  args: readonly string[],
  env: Io['env'] = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<{ stdout: string; stderr: string; exit: number }> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  let exit = 0;
  const io: Io = {
    stdout,
    stderr,
    stdin: Readable.from([]),
    env,
    signal,
    onHangUp: () => undefined,
    onUncaught: () => undefined,
    whenOutputIsLost: () => undefined,
    setExit: (code) => (exit = code),
  };
  try {
    await (await command(io)).exitOverride().parseAsync([...args], { from: 'user' });
  } finally {
    stdout.end();
    stderr.end();
  }
  return { stdout: await text(stdout), stderr: await text(stderr), exit };
}
