import { existsSync, globSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { afterAll } from 'vitest';
import { freePort } from './free-port.ts';
import { pauseChild } from './child-server.ts';
import { describeUnless } from './describe-unless.ts';
import { lacksProgram, type Lack } from './requirements.ts';
import { startServer } from './server.ts';

interface PubSubEmulator {
  /** `127.0.0.1:port`: what `PUBSUB_EMULATOR_HOST` and the sinks' `endpoint` take. */
  readonly endpoint: string;
  /** Stops its process in its tracks: connections stay, and nothing is answered until `resume`. */
  pause(): Promise<void>;
  resume(): void;
  stop(): Promise<void>;
}

const JAR = 'platform/pubsub-emulator/lib/cloud-pubsub-emulator-*-all.jar';
const ROOTS = ['/usr/lib/google-cloud-sdk', '/opt/google-cloud-sdk', '/usr/local/google-cloud-sdk'];

/** Why Google's emulator cannot be run here, or null. */
export function lacksPubSubEmulator(): Lack {
  return lacksProgram('java') ?? (findJar() === null ? "needs gcloud's pubsub-emulator component" : null);
}

/** Tests against an emulator of their own; where there is none they are skipped, with the reason in the title. */
export function describeOnEmulator(
  title: string,
  body: (emulator: PubSubEmulator) => void | Promise<void>,
): void {
  describeUnless(lacksPubSubEmulator(), title, async () => {
    const emulator = await startPubSubEmulator();
    afterAll(() => emulator.stop());
    await body(emulator);
  });
}

/** Starts Google's emulator on a free port and waits until it listens. Ask `lacksPubSubEmulator` first. */
export async function startPubSubEmulator(): Promise<PubSubEmulator> {
  const jar = findJar();
  if (jar === null) throw new Error('the emulator is not installed');
  const port = await freePort();
  const args = ['-Xmx512m', '-jar', jar, '--host=127.0.0.1', `--port=${port}`];
  const { child, stop } = await startServer('the emulator', 'java', args, port);
  return {
    endpoint: `127.0.0.1:${port}`,
    pause: () => pauseChild(child),
    resume: () => void child.kill('SIGCONT'),
    stop,
  };
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
