#!/usr/bin/env node
import type { Io } from './cli/io.ts';
import type { Guest } from './lib/attribution.ts';

// The process: argv, signals, exit codes. Nothing else in the program may end it.

/**
 * Nothing but types is imported above the check: on an older Node the imports end in a SyntaxError, before a line here
 * could say why.
 */
const OLDEST_NODE = 24;
/** Variables that are set by `.env`, and not by the environment. */
const fromDotEnv = new Set<string>();

if (Number.parseInt(process.versions.node, 10) >= OLDEST_NODE) await main();
else {
  const have = `${process.versions.node} (${process.execPath})`;
  process.stderr.write(`millrace: needs Node ${OLDEST_NODE} or newer; this is ${have}\n`);
  process.exitCode = 1;
}

/**
 * What `.env` in the working folder sets, and the environment does not; again, as if the process began now. One that cannot be
 * read is told of, where nothing is set by it: what is missing then, the config says by name.
 * @returns takes that back
 * @throws Error when it cannot be read any more; then nothing has changed
 */
async function readDotEnv(): Promise<() => void> {
  const { readFileSync, statSync } = await import('node:fs');
  const { parseEnv } = await import('node:util');
  const { actAsOwnerOf } = await import('./lib/act-as-owner.ts');
  let text = '';
  try {
    const isThere = statSync('.env', { throwIfNoEntry: false })?.isFile() === true;
    if (isThere) actAsOwnerOf('.env');
    // Some editors write a mark of the byte order in front; it is part of no name.
    if (isThere) text = readFileSync('.env', 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    if (fromDotEnv.size > 0) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`millrace: .env cannot be read, and nothing in it is set: ${reason}\n`);
  }
  const before = Array.from(fromDotEnv, (name) => [name, process.env[name] ?? ''] as const);
  const set = (values: Iterable<readonly [string, string | undefined]>): void => {
    for (const name of fromDotEnv) Reflect.deleteProperty(process.env, name);
    fromDotEnv.clear();
    for (const [name, value] of values) {
      if (process.env[name] !== undefined) continue;
      process.env[name] = value;
      fromDotEnv.add(name);
    }
  };
  set(Object.entries(parseEnv(text)));
  return () => set(before);
}

/**
 * Has glibc give memory from 256 KiB on back to the system. By itself it moves that bound up to 32 MiB once large bodies come, and
 * keeps what they took: after 500 bodies of 1 MB, ten at a time, a receiver had grown by 120 MB (74 to 361) with the setting, and
 * by 359 MB (342 to 366) without. glibc reads it when a process begins, so this one begins again, under the same number.
 */
function returnMemory(): void {
  const name = 'MALLOC_MMAP_THRESHOLD_';
  // A parent that talks to this process would lose it.
  if (process.platform !== 'linux' || process.env[name] !== undefined || process.connected) return;
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  try {
    process.execve?.(process.execPath, args, { ...process.env, [name]: '262144' });
  } catch {
    // It needs a permission that Node can be started without.
  }
}

async function main(): Promise<void> {
  const isService = process.argv[2] === 'serve';
  if (isService) {
    // The config is still to be read. By default a reload that is asked for so early would end the process.
    process.on('SIGHUP', () => undefined);
    returnMemory();
    // Node's own end takes the listeners of signals away first, and a SIGHUP would replace the exit code.
    process.on('beforeExit', () => process.exit());
  }
  const stopping = listenForEnd();
  const { mayActAsOwners } = await import('./lib/act-as-owner.ts');
  mayActAsOwners((line) => void process.stderr.write(`${line}\n`));
  await readDotEnv();
  const { currentGuest } = await import('./lib/attribution.ts');
  const { lostOutput, wantsJson, writeFailure } = await import('./cli/failure.ts');
  const args = process.argv.slice(2);
  const io = processIo(stopping, currentGuest, (error) =>
    writeFailure(io, lostOutput(error), wantsJson(args)),
  );
  const { runProgram } = await import('./cli/program.ts');
  // Nothing has begun that would have to be ended.
  if (stopping.aborted) process.exit(isService ? 0 : 1);
  await runProgram(io, args);
  // A handle that someone forgot must not turn an ended command into one that hangs.
  setTimeout(() => process.exit(), 2000).unref();
}

/**
 * Hands an error that nobody caught to whoever answers for the code it came from: a user's own sink pays for itself only.
 * @param listener for the rest; without one the process ends, as it would anyway
 */
function onUncaught(
  currentGuest: () => Guest | null,
  listener: () => Parameters<Io['onUncaught']>[0] | null,
): void {
  process.on('uncaughtException', (error: unknown) => {
    const guest = currentGuest();
    if (guest?.blame(error) === true) return;
    const take = listener();
    if (take !== null) return take(error, guest?.name ?? null);
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.stderr.write(`millrace: ${guest === null ? '' : `${guest.name}: `}${text}\n`);
    process.exit(1);
  });
}

/** The first SIGTERM or SIGINT asks for an orderly end; the second ends the process at once. */
function listenForEnd(): AbortSignal {
  /** `timeout`, npm and shells signal a process and its group: what comes twice at once was meant once. */
  const sameSignal = 200;
  const stopping = new AbortController();
  let asked = 0;
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (!stopping.signal.aborted) asked = performance.now();
      else if (performance.now() - asked > sameSignal) process.exit(1);
      stopping.abort();
    });
  }
  return stopping.signal;
}

/**
 * What the commands see of this process.
 * @param sayLost says that stdout takes nothing more
 */
function processIo(
  signal: AbortSignal,
  currentGuest: () => Guest | null,
  sayLost: (error: NodeJS.ErrnoException) => void,
): Io {
  let uncaught: Parameters<Io['onUncaught']>[0] | null = null;
  onUncaught(currentGuest, () => uncaught);
  let afterLoss: Parameters<Io['whenOutputIsLost']>[0] | 'fail' = 'fail';
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (afterLoss === 'end' && error.code === 'EPIPE') process.exit();
    // Its reader has all it wanted; what the command found, its exit code still says.
    if (afterLoss === 'stay' || error.code === 'EPIPE') return;
    sayLost(error);
    // 0 would say that a verification has found nothing, or that all was done.
    process.exit(1);
  });

  // A log reader that went away must not take the receiver with it.
  process.stderr.on('error', () => undefined);

  return {
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: process.stdin,
    env: process.env,
    readEnvAgain: readDotEnv,
    signal,
    onHangUp: (listener) => void process.on('SIGHUP', listener),
    onUncaught: (listener) => {
      uncaught = listener;
    },
    whenOutputIsLost: (then) => {
      afterLoss = then;
    },
    setExit: (code) => {
      process.exitCode = code;
    },
  };
}
