#!/usr/bin/env node
import { CommanderError } from 'commander';
import { createProgram } from './cli/program.ts';
import type { Io } from './cli/io.ts';
import { EXIT, MillraceError, messageOf } from './core/errors.ts';
import { ServiceError } from './service/errors.ts';

// The process: argv, signals, exit codes. Nothing else in the program may end it.

const stopping = new AbortController();
/** `timeout`, npm and shells signal a process and its group: what comes twice at once was meant once. */
const SAME_SIGNAL = 200;
let asked = 0;
for (const name of ['SIGTERM', 'SIGINT'] as const) {
  process.on(name, () => {
    // The first asks for an orderly end; the second does not wait for it.
    if (!stopping.signal.aborted) asked = performance.now();
    else if (performance.now() - asked > SAME_SIGNAL) process.exit(EXIT.failed);
    stopping.abort();
  });
}

// A reader that went away (`millrace … | head`) is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.done);
  throw error;
});

// A log reader that went away must not take the receiver with it.
process.stderr.on('error', () => undefined);

const io: Io = {
  stdout: process.stdout,
  stderr: process.stderr,
  stdin: process.stdin,
  env: process.env,
  signal: stopping.signal,
  onHangUp: (listener) => void process.on('SIGHUP', listener),
  setExit: (code) => {
    process.exitCode = code;
  },
};

try {
  await createProgram(io).parseAsync(process.argv);
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT.done : EXIT.usage;
  else {
    process.stderr.write(`millrace: ${messageOf(error)}\n`);
    process.exitCode = error instanceof MillraceError ? error.exit : EXIT.failed;
    const expected = error instanceof MillraceError || error instanceof ServiceError;
    if (!expected && error instanceof Error) process.stderr.write(`${error.stack ?? ''}\n`);
  }
}
// A handle that someone forgot must not turn an ended command into one that hangs.
setTimeout(() => process.exit(), 2000).unref();
