import { spawn } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { freePort } from './free-port.ts';
import { lacksProgram, skipped, type Lack } from './requirements.ts';
import { until } from './until.ts';
import { endChild, isRunning, listens } from './child-server.ts';

export interface PubSubEmulator {
  /** `127.0.0.1:port`: what `PUBSUB_EMULATOR_HOST` and the sinks' `endpoint` take. */
  readonly endpoint: string;
  /** Stops its process in its tracks: connections stay, and nothing is answered until `resume`. */
  pause(): Promise<void>;
  resume(): void;
  stop(): Promise<void>;
}

const JAR = 'platform/pubsub-emulator/lib/cloud-pubsub-emulator-*-all.jar';
const ROOTS = ['/usr/lib/google-cloud-sdk', '/opt/google-cloud-sdk', '/usr/local/google-cloud-sdk'];
/** Milliseconds a Java program may take to come up on a busy machine. */
const START = 180_000;

/** Why Google's emulator cannot be run here, or null. */
export function lacksPubSubEmulator(): Lack {
  return lacksProgram('java') ?? (findJar() === null ? "needs gcloud's pubsub-emulator component" : null);
}

/** Tests against an emulator of their own; where there is none they are skipped, with the reason in the title. */
export function describeOnEmulator(
  title: string,
  body: (emulator: PubSubEmulator) => void | Promise<void>,
): void {
  const lack = lacksPubSubEmulator();
  describe.skipIf(lack !== null)(`${title}${skipped(lack)}`, () =>
    // oxlint-disable-next-line vitest/warn-todo -- without a test in it the skipped group would not be reported
    lack === null ? withEmulator(body) : test.todo('is not run here'),
  );
}

async function withEmulator(body: (emulator: PubSubEmulator) => void | Promise<void>): Promise<void> {
  const emulator = await startPubSubEmulator();
  afterAll(() => emulator.stop());
  await body(emulator);
}

/** Starts Google's emulator on a free port and waits until it listens. Ask `lacksPubSubEmulator` first. */
export async function startPubSubEmulator(): Promise<PubSubEmulator> {
  const jar = findJar();
  if (jar === null) throw new Error('the emulator is not installed');
  const port = await freePort();
  const args = ['-Xmx512m', '-jar', jar, '--host=127.0.0.1', `--port=${port}`];
  const child = spawn('java', args, { stdio: 'ignore' });
  // A test process that is ended before its time must not leave it behind.
  process.once('exit', () => child.kill('SIGKILL'));
  try {
    await until('the emulator to listen', () => isRunning('the emulator', child) && listens(port), START);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return {
    endpoint: `127.0.0.1:${port}`,
    pause: async () => {
      child.kill('SIGSTOP');
      // Its threads stop one after the other, and one of them may answer until then.
      await until('every thread to stop', () => child.pid === undefined || isStopped(child.pid));
    },
    resume: () => void child.kill('SIGCONT'),
    stop: () => endChild(child),
  };
}

function isStopped(pid: number): boolean {
  const tasks = `/proc/${pid}/task`;
  // Where there is no such folder nobody can tell.
  if (!existsSync(tasks)) return true;
  return readdirSync(tasks).every((task) => /\) T /.test(readFileSync(`${tasks}/${task}/stat`, 'utf8')));
}

/** The newest emulator below any SDK that the environment, the PATH or the usual places lead to. */
function findJar(): string | null {
  for (const root of sdkRoots()) {
    const jar = globSync(join(root, JAR)).sort().at(-1);
    if (jar !== undefined) return jar;
  }
  return null;
}

function sdkRoots(): string[] {
  const named = process.env['CLOUDSDK_ROOT_DIR'];
  const programs = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'gcloud'));
  // `gcloud` lies in the SDK's `bin`, and is often linked to from elsewhere.
  const found = programs
    .filter((path) => existsSync(path))
    .map((path) => dirname(dirname(realpathSync(path))));
  return [...(named === undefined ? [] : [named]), ...found, ...ROOTS];
}
