import { createServer } from 'node:http';
import { listen } from './listen.ts';
import type { Server, SharedServer } from './server.ts';

/** Loaded when they are asked for: a run of one file asks for none of them. */
const PROGRAMS: Readonly<Record<SharedServer, () => Promise<Server>>> = {
  moto: async () => (await import('./object-stores/moto.ts')).launchMoto(),
  azurite: async () => (await import('./azurite.ts')).launchAzurite(),
  'fake-gcs': async () => (await import('./object-stores/fake-gcs.ts')).launchFakeGcs(),
  kafka: async () => (await import('./kafka/cluster.ts')).launchKafka(),
  package: async () => (await import('./packed.ts')).packProject(),
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
