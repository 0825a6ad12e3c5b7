import { createServer } from 'node:http';
import { launchAzurite } from './azurite.ts';
import { launchKafka } from './kafka/cluster.ts';
import { listen } from './listen.ts';
import { launchFakeGcs } from './object-stores/fake-gcs.ts';
import { launchMoto } from './object-stores/moto.ts';
import { packProject } from './packed.ts';
import type { Server, SharedServer } from './server.ts';

const PROGRAMS: Readonly<Record<SharedServer, () => Promise<Server>>> = {
  moto: launchMoto,
  azurite: launchAzurite,
  'fake-gcs': launchFakeGcs,
  kafka: launchKafka,
  package: packProject,
};

/** Of Vitest's own process: starts each program when the first file asks for it (`shared`), and ends it with the run. */
export default async function serve(): Promise<() => Promise<void>> {
  const started = new Map<SharedServer, Promise<Server>>();
  const desk = createServer((request, response) => {
    const name = (request.url ?? '').slice(1) as SharedServer;
    const server = started.get(name) ?? PROGRAMS[name]();
    started.set(name, server);
    server.then(
      ({ url }) => response.end(url),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  process.env['MILLRACE_TEST_SERVERS'] = `http://127.0.0.1:${await listen(desk.unref())}`;
  return async () => {
    desk.close();
    for (const server of started.values()) await (await server).stop();
  };
}
