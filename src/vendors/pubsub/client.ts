import type { v1 } from '@google-cloud/pubsub';
import { createPubSub, type Connection } from './connection.ts';
import { LateError } from './failure.ts';

export type Client = v1.PublisherClient;

/** A publish request that is encoded already. */
export interface EncodedRequest {
  /** The SDK makes a header of it. */
  readonly topic: string;
  readonly bytes: Buffer;
}

/** The part of a client that speaks gRPC: https://grpc.github.io/grpc/node/grpc.Client.html */
interface Stub {
  publish: {
    (request: EncodedRequest, ...rest: readonly unknown[]): unknown;
    readonly path: string;
    readonly responseDeserialize: unknown;
  };
  makeUnaryRequest(
    path: string,
    serialize: (request: EncodedRequest) => Buffer,
    deserialize: unknown,
    request: EncodedRequest,
    ...rest: readonly unknown[]
  ): unknown;
  waitForReady(deadline: Date, callback: (error?: Error) => void): void;
}

/** Its first call connects. Its `publish` takes encoded requests. */
export async function createClient(connection: Connection): Promise<Client> {
  const [{ v1: clients }, { options }] = await Promise.all([
    import('@google-cloud/pubsub'),
    createPubSub(connection),
  ]);
  const client = new clients.PublisherClient({ ...options });
  // Finds the credentials. A client that has not found them once does not search again.
  const stub = await stubOf(client);
  const { path, responseDeserialize } = stub.publish;
  stub.publish = Object.assign(
    (request: EncodedRequest, ...rest: readonly unknown[]) =>
      stub.makeUnaryRequest(path, ({ bytes }) => bytes, responseDeserialize, request, ...rest),
    { path, responseDeserialize },
  );
  return client;
}

export async function closeClient(client: Promise<Client> | null): Promise<void> {
  await (await client?.catch(() => null))?.close();
}

/** Resolves when the client's channel is connected. @throws LateError */
export async function ready(client: Client, timeout: number): Promise<void> {
  const stub = await stubOf(client);
  await new Promise<void>((resolve, reject) => {
    stub.waitForReady(new Date(Date.now() + timeout), (error) =>
      error === undefined || error === null
        ? resolve()
        : reject(new LateError(`no connection in ${timeout} ms`)),
    );
  });
}

async function stubOf(client: Client): Promise<Stub> {
  return (await client.initialize()) as unknown as Stub;
}
