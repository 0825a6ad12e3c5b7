#!/usr/bin/env node
import type { Io } from './cli/io.ts';
import type { Guest } from './lib/attribution.ts';

// The process: argv, signals, exit codes. Nothing else in the program may end it.

/** Only types are imported above the check: on an older Node, other imports would end in a SyntaxError. */
const OLDEST_NODE = 24;
/** Variables set by `.env`, and not by the environment. */
const fromDotEnv = new Set<string>();
/** Warnings for variables to which `.env` gives another value than the environment. */
const overridden = new Set<string>();

if (Number.parseInt(process.versions.node, 10) >= OLDEST_NODE) await main();
else {
  const have = `${process.versions.node} (${process.execPath})`;
  process.stderr.write(`millrace: needs Node ${OLDEST_NODE} or newer; this is ${have}\n`);
  process.exitCode = 1;
}

/**
 * Sets the variables of `.env` in the working folder that the environment does not set; a second call replaces those of the
 * first. At the first call an unreadable file is only reported: the config names missing variables.
 * @returns restores the previous values
 * @throws Error when the file cannot be read at a later call; nothing has changed then
 */
async function readDotEnv(): Promise<() => void> {
  const { readFileSync, statSync } = await import('node:fs');
  const { parseEnv } = await import('node:util');
  const { actAsOwnerOf } = await import('./lib/act-as-owner.ts');
  let text = '';
  try {
    const isThere = statSync('.env', { throwIfNoEntry: false })?.isFile() === true;
    if (isThere) actAsOwnerOf('.env');
    // Some editors write a byte order mark at the beginning.
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
    overridden.clear();
    for (const [name, value] of values) {
      const inEnvironment = process.env[name];
      if (inEnvironment !== undefined && inEnvironment !== value)
        overridden.add(`.env sets ${name}, but the environment has another value, which is used`);
      if (inEnvironment !== undefined) continue;
      process.env[name] = value;
      fromDotEnv.add(name);
    }
  };
  set(Object.entries(parseEnv(text)));
  return () => set(before);
}

/**
 * Makes glibc return blocks from 256 KiB on to the system. By default it raises that limit to 32 MiB once large bodies come, and
 * keeps their memory: after 500 bodies of 1 MB, ten at a time, a receiver had grown by 120 MB (74 to 361) with the setting, and
 * by 359 MB (342 to 366) without. glibc reads the setting when a process starts, so this one starts again, under the same id.
 */
function returnMemory(): void {
  const name = 'MALLOC_MMAP_THRESHOLD_';
  // A parent with an IPC channel would lose it.
  if (process.platform !== 'linux' || process.env[name] !== undefined || process.connected) return;
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  try {
    process.execve?.(process.execPath, args, { ...process.env, [name]: '262144' });
  } catch {
    // Node's permission model may forbid it.
  }
}

async function main(): Promise<void> {
  const isService = process.argv[2] === 'serve';
  if (isService) {
    // Until the config is read, a SIGHUP would end the process.
    process.on('SIGHUP', () => undefined);
    returnMemory();
    // Otherwise Node removes the signal listeners first, and a late SIGHUP would replace the exit code.
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
  // Nothing has started yet.
  if (stopping.aborted) process.exit(isService ? 0 : 1);
  await runProgram(io, args);
  // A handle that was left open must not keep an ended command running.
  setTimeout(() => process.exit(), 2000).unref();
}

/**
 * Gives an uncaught error to the guest (a user's own sink) whose code threw it, so that only that sink fails.
 * @param listener for other errors; without one the process ends
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

/** The first SIGTERM or SIGINT stops in order; the second ends the process at once. */
function listenForEnd(): AbortSignal {
  /** `timeout`, npm and shells signal a process and its group: two signals within so many milliseconds are one. */
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
 * The process as commands see it.
 * @param sayLost reports that stdout cannot be written
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
    // The reader has closed the pipe; the exit code still has the result.
    if (afterLoss === 'stay' || error.code === 'EPIPE') return;
    sayLost(error);
    // Not 0, which would say that all was done.
    process.exit(1);
  });

  // The receiver continues when the reader of its log has ended.
  process.stderr.on('error', () => undefined);

  return {
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: process.stdin,
    env: process.env,
    readEnvAgain: readDotEnv,
    envWarnings: () => [...overridden],
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
