import { ContainerClient } from '@azure/storage-blob';
import type { ChildProcess } from 'node:child_process';
import { createRequire } from 'node:module';
import { onTestFinished } from 'vitest';
import { freePort } from './free-port.ts';
import type { Emulator } from './object-stores/emulators.ts';
import { type Server, shared, startServer } from './server.ts';

/** The account every emulator has; its key is published with it. */
const ACCOUNT = 'devstoreaccount1';
const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

const require = createRequire(import.meta.url);
const PROGRAM = require.resolve('azurite/dist/src/blob/main.js');
/** The SDK may speak a newer version of the protocol than the emulator knows by name. */
const OPTIONS = ['--inMemoryPersistence', '--silent', '--skipApiVersionCheck', '--disableTelemetry'];

/** Azure's blob storage in a process of its own, on a free port, kept in memory. */
export interface Azurite {
  /** `http://127.0.0.1:port` */
  readonly endpoint: string;
  readonly connectionString: string;
  /** A container of the test's own, made and empty. */
  container(name: string): Promise<ContainerClient>;
  /** Stops its process in its tracks: connections stay, and nothing is answered until `resume`. */
  pause(): void;
  resume(): void;
}

/** Ends with the test. */
export async function startAzurite(): Promise<Azurite> {
  const { url, stop, child } = await launchAzurite();
  onTestFinished(stop);
  return {
    endpoint: url,
    connectionString: connectionStringOf(url),
    container: (name) => containerAt(url, name),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  };
}

/** The run's own one. */
export async function startAzureBlob(): Promise<Emulator> {
  const { url, stop } = await shared('azurite', launchAzurite);
  return {
    url,
    settings: (endpoint = url) => ({ azblob: { connectionString: connectionStringOf(endpoint) } }),
    bucket: async (name) => {
      await containerAt(url, name);
      return `azblob://${name}`;
    },
    stop,
  };
}

/** A container, made and empty, at the emulator with this endpoint. */
async function containerAt(endpoint: string, name: string): Promise<ContainerClient> {
  const container = new ContainerClient(connectionStringOf(endpoint), name);
  await container.create();
  return container;
}

/** The process, until it is stopped. */
export async function launchAzurite(): Promise<Server & { readonly child: ChildProcess }> {
  const port = await freePort();
  return startServer('azurite', process.execPath, [PROGRAM, '--blobPort', String(port), ...OPTIONS], port);
}

/** @param endpoint `http://127.0.0.1:port` of an emulator, or of a proxy in front of it */
export function connectionStringOf(endpoint: string): string {
  const account = [`AccountName=${ACCOUNT}`, `AccountKey=${KEY}`];
  return ['DefaultEndpointsProtocol=http', ...account, `BlobEndpoint=${endpoint}/${ACCOUNT}`].join(';');
}
