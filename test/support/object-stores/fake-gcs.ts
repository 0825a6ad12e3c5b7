import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../free-port.ts';
import { type Lack, lacksProgram } from '../requirements.ts';
import type { Emulator } from './emulators.ts';
import { startResumable } from './resumable.ts';
import { startServer } from './server.ts';

const NAME = 'fake-gcs-server';

/** Why fake-gcs-server, a stand-in of Google Cloud Storage, cannot be run here, or null. */
export function lacksFakeGcs(): Lack {
  return program() === NAME ? lacksProgram(NAME) : null;
}

/** On the PATH, or where `.ci/run` has put it. */
function program(): string {
  const path = join(process.env['MILLRACE_TEST_TOOLS'] ?? '', NAME);
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    return NAME;
  }
}

/** Starts it on a free port, in memory, and waits until it listens. */
export async function startFakeGcs(): Promise<Emulator> {
  const port = await freePort();
  const args = ['-scheme', 'http', '-host', '127.0.0.1', '-port', String(port), '-backend', 'memory'];
  const server = await startServer(NAME, program(), [...args, '-log-level', 'error'], port);
  const front = await startResumable(server.url);
  return {
    url: front.url,
    stop: async () => {
      await front.stop();
      await server.stop();
    },
    settings: (endpoint = front.url) => ({ gs: { endpoint } }),
    bucket: async (name) => {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ name });
      const answer = await fetch(`${server.url}/storage/v1/b`, { method: 'POST', headers, body });
      if (!answer.ok) throw new Error(await answer.text());
      return `gs://${name}`;
    },
  };
}
