import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { freePort } from './free-port.ts';
import { childEnvironment, MAIN } from './millrace.ts';
import { within } from './until.ts';

/** A place where commands of the documentation run as they stand, on ports that are free. */
export interface ShellPlace {
  readonly folder: string;
  /** Stands in front of the PATH. */
  readonly bin: string;
  /** What they print. Fails the test when one of them fails. */
  run(script: string, env?: Readonly<Record<string, string>>): Promise<string>;
}

/** Longest time for one script. */
const DEADLINE = 180_000;

/**
 * Puts a `millrace` in front of the PATH that runs this checkout, or the main file named, and takes free ports instead of 8080 and 9090: for the
 * receiver by its environment, for `millrace send` without a config by its URL, and in the text of the scripts.
 */
export async function shellPlace(folder: string, main = MAIN): Promise<ShellPlace> {
  const [port, admin] = [await freePort(), await freePort()];
  const bin = `${folder}-bin`;
  onTestFinished(() => rm(bin, { recursive: true, force: true }));
  mkdirSync(bin, { recursive: true });
  const node = `exec ${quoted(process.execPath)} ${quoted(main)}`;
  const url = `http://127.0.0.1:${port}/webhooks`;
  // With a config at the usual place `send` finds the port by itself.
  const send = `if [ "$1" = send ] && [ ! -e config/millrace.yaml ]; then shift; ${node} send --url ${url} "$@"; fi`;
  writeShim(bin, 'millrace', `${send}\n${node} "$@"`);
  const path = `${bin}${delimiter}${process.env['PATH'] ?? ''}`;
  return {
    folder,
    bin,
    run: (script, env = {}) => {
      const ports = { MILLRACE_SERVER_PORT: String(port), MILLRACE_ADMIN_PORT: String(admin) };
      const text = script
        .replaceAll('127.0.0.1:9090', `127.0.0.1:${admin}`)
        // A receiver that ended will never be ready: the log says why, and the test need not wait.
        .replaceAll('do sleep 0.2; done', 'do kill -0 $! || exit 1; sleep 0.2; done');
      return runScript(text, folder, { ...ports, ...env, PATH: path });
    },
  };
}

/** Adds a program to the front of a place's PATH. */
export function writeShim(bin: string, name: string, body: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\n${body}\n`);
  chmodSync(join(bin, name), 0o755);
}

async function runScript(
  script: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const child = spawn('bash', ['-c', `set -eu -o pipefail\n${script}`], {
    cwd,
    env: childEnvironment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: what it left running in the background ends with the test.
    detached: true,
  });
  onTestFinished(() => endGroup(child.pid));
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const [code] = (await within(`the end of\n${script}`, once(child, 'exit'), DEADLINE)) as [number | null];
  const log = join(cwd, 'millrace.log');
  const why = `${script}\n${output}${existsSync(log) ? readFileSync(log, 'utf8') : ''}`;
  expect({ code }, why).toEqual({ code: 0 });
  return output;
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing of it was left.
  }
}

/** As one word of a shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
