import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { freePort } from '../free-port.ts';
import { firstLack, lacksProgram, lacksWorking, type Lack } from '../requirements.ts';
import { MOTO_PYTHON } from './install.ts';
import { type Server, shared, startServer } from '../server.ts';
import type { Emulator } from './emulators.ts';

const OPTIONS = { region: 'us-east-1', forcePathStyle: true };
const CREDENTIALS = { accessKeyId: 'test', secretAccessKey: 'test' };

/**
 * One request at a time. moto looks at the condition of a write and then writes, and its threads come between: on a busy machine
 * two writers of one key both got the answer that they had made it, which S3 never says.
 */
const SERVER = `
import threading, moto.server as server
lock = threading.Lock()
call = server.DomainDispatcherApplication.__call__
def one_at_a_time(*given):
    with lock:
        return call(*given)
server.DomainDispatcherApplication.__call__ = one_at_a_time
server.main()
`;

/** Why moto, a stand-in of S3, cannot be run here, or null. */
export function lacksMoto(): Lack {
  return firstLack(
    MOTO_PYTHON.includes('/') ? null : lacksProgram(MOTO_PYTHON),
    lacksWorking("moto (pip install 'moto[server]')", MOTO_PYTHON, ['-c', 'import flask, moto.server']),
  );
}

/** Starts it on a free port and waits until it listens. */
export async function launchMoto(): Promise<Server> {
  const port = await freePort();
  return startServer('moto', MOTO_PYTHON, ['-c', SERVER, '-H', '127.0.0.1', '-p', String(port)], port);
}

/** The vendor's own client of it. */
export function motoClient({ url: endpoint }: Pick<Emulator, 'url'>): S3Client {
  // The SDK writes into the credentials.
  return new S3Client({ endpoint, ...OPTIONS, credentials: { ...CREDENTIALS } });
}

export async function startMoto(): Promise<Emulator> {
  const server = await shared('moto', launchMoto);
  return {
    ...server,
    settings: (endpoint = server.url) => ({ s3: { endpoint, ...OPTIONS, ...CREDENTIALS } }),
    bucket: async (name) => {
      const client = motoClient(server);
      await client.send(new CreateBucketCommand({ Bucket: name }));
      client.destroy();
      return `s3://${name}`;
    },
  };
}
