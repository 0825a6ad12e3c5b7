import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { loadPackageDefinition, type MethodDefinition, type ServiceDefinition } from '@grpc/grpc-js';
import { fromJSON } from '@grpc/proto-loader';

const require = createRequire(import.meta.url);

type Services = Readonly<Record<'Publisher' | 'Subscriber', ServiceDefinition>>;

/** The gRPC services of Pub/Sub, read from the protos that its client library ships. */
export function loadServices(): Services {
  const path = require.resolve('@google-cloud/pubsub/build/protos/protos.json');
  const json = JSON.parse(readFileSync(path, 'utf8')) as Parameters<typeof fromJSON>[0];
  const definition = fromJSON(json, { defaults: true, longs: String, enums: String });
  const root = loadPackageDefinition(definition) as unknown as {
    google: { pubsub: { v1: Record<keyof Services, { service: ServiceDefinition }> } };
  };
  const { Publisher, Subscriber } = root.google.pubsub.v1;
  return { Publisher: Publisher.service, Subscriber: Subscriber.service };
}

/** The service with requests of one method carrying their size on the wire, in bytes, as `wireBytes`. */
export function measured(service: ServiceDefinition, method: string): ServiceDefinition {
  const found = service[method] as MethodDefinition<object, object>;
  const requestDeserialize = (bytes: Buffer): object => ({
    ...found.requestDeserialize(bytes),
    wireBytes: bytes.length,
  });
  return { ...service, [method]: { ...found, requestDeserialize } };
}
