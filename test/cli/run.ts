import type { CommandNode } from '../../config/reference/commands.ts';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import type { Io } from '../../src/cli/io.ts';
import { createProgram } from '../../src/cli/program.ts';

/** An `Io` of the test's own; what is not given takes what comes and says nothing. */
export function ioOf(given: Partial<Io>): Io {
  return {
    stdout: new PassThrough().resume(),
    stderr: new PassThrough().resume(),
    stdin: Readable.from([]),
    env: {},
    signal: new AbortController().signal,
    onHangUp: () => undefined,
    onUncaught: () => undefined,
    whenOutputIsLost: () => undefined,
    setExit: () => undefined,
    ...given,
  };
}

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
  const io = ioOf({ stdout, stderr, env, signal, setExit: (code) => (exit = code) });
  try {
    await (await command(io)).exitOverride().parseAsync([...args], { from: 'user' });
  } finally {
    stdout.end();
    stderr.end();
  }
  return { stdout: await text(stdout), stderr: await text(stderr), exit };
}

/** The whole command line, or what `only` needs of it, as the tests' own io makes it. */
export async function program(only?: string): Promise<Command> {
  return createProgram(ioOf({}), only);
}

/** The command and all below it, parents first. */
export function* walk(node: CommandNode): Generator<CommandNode> {
  yield node;
  for (const child of node.commands) yield* walk(child);
}
