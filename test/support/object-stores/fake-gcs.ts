import { freePort } from '../free-port.ts';
import { type Lack, lacksProgram } from '../requirements.ts';
import type { Emulator } from './emulators.ts';
import { FAKE_GCS_SERVER } from './install.ts';
import { startResumable } from './resumable.ts';
import { type Server, shared, startServer } from '../server.ts';

const NAME = 'fake-gcs-server';

/** Why fake-gcs-server, a stand-in of Google Cloud Storage, cannot be run here, or null. */
export function lacksFakeGcs(): Lack {
  return FAKE_GCS_SERVER.includes('/') ? null : lacksProgram(NAME);
}

/** Starts it on a free port, in memory, and waits until it listens. */
export async function launchFakeGcs(): Promise<Server> {
  const port = await freePort();
  const args = ['-scheme', 'http', '-host', '127.0.0.1', '-port', String(port), '-backend', 'memory'];
  return startServer(NAME, FAKE_GCS_SERVER, [...args, '-log-level', 'error'], port);
}

export async function startFakeGcs(): Promise<Emulator> {
  const server = await shared('fake-gcs', launchFakeGcs);
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
