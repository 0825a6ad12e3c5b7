import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from 'pino';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { EtlMessage } from '../../sandbox/etl.ts';
import type { Pipelines } from '../../sandbox/events.ts';
import { Outbox, Refused, type Send } from '../../sandbox/outbox.ts';
import type { EtlDestination } from './etl.ts';

/** Milliseconds to publish waiting messages when the sandbox stops. */
const PATIENCE_MS = 5000;

interface Broker {
  readonly send: Send;
  close(): Promise<void>;
}

export interface OpenPipelines extends Pipelines {
  /** Publishes waiting messages for a while, then gives up. @returns messages that were not published */
  close(): Promise<number>;
}

/**
 * Pipelines to real brokers, with the vendors' SDKs. They connect at the first message.
 * @throws MillraceError config_invalid naming the destination and the key
 */
export async function openPipelines(
  destinations: readonly EtlDestination[],
  log: Pick<Logger, 'warn'>,
): Promise<OpenPipelines> {
  const open = new Map<string, { broker: Broker; outbox: Outbox }>();
  for (const destination of destinations) {
    const broker = await (destination.kind === 'event_hubs' ? hubs(destination) : topics(destination));
    const { name } = destination;
    const outbox = new Outbox({
      send: broker.send,
      onTrouble: (target, reason) => log.warn({ destination: name, target, reason }, 'pipeline waits'),
      onRefused: (target, reason) => log.warn({ destination: name, target, reason }, 'message refused'),
    });
    open.set(name, { broker, outbox });
  }
  return {
    destinations,
    publish: (destination, message) => open.get(destination.name)?.outbox.put(message),
    close: async () => {
      const left = await Promise.all(
        Array.from(open.values(), async ({ broker, outbox }) => {
          const count = await outbox.close(PATIENCE_MS);
          await broker.close().catch(() => undefined);
          return count;
        }),
      );
      return left.reduce((sum, count) => sum + count, 0);
    },
  };
}

/** @throws MillraceError config_invalid */
function checked<T>(name: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new MillraceError('config_invalid', `destinations.${name}: ${messageOf(error)}`, { cause: error });
  }
}

async function hubs({ name, connection, blobs }: EtlDestination): Promise<Broker> {
  const [{ parseOptions }, { Producer }, { toFailure }] = await Promise.all([
    import('../../sinks/event-hubs/config.ts'),
    import('../../vendors/event-hubs/producer.ts'),
    import('../../vendors/event-hubs/failure.ts'),
  ]);
  const options = checked(name, () => parseOptions(connection));
  const producers = new Map<string, InstanceType<typeof Producer>>();
  const producerOf = (hub: string) => {
    const known = producers.get(hub);
    if (known !== undefined && !known.worn) return known;
    void known?.retire().catch(() => undefined);
    const { connection: to, timeout, maxEventBytes: maxBytes } = options;
    const fresh = new Producer({ connection: to, hub, timeout, maxBytes });
    producers.set(hub, fresh);
    return fresh;
  };
  return {
    send: async (messages, signal) => {
      const [first] = messages;
      if (first === undefined) return;
      const hub = first.target;
      try {
        const producer = producerOf(hub);
        let left = messages;
        while (left.length > 0) {
          const batch = await producer.pack(
            first.key,
            left.map(({ body, metadata: properties }) => ({ body, properties })),
          );
          const [large] = left;
          if (batch.count === 0 && large !== undefined) {
            await writeBlob(blobs, large, batch.maxSizeInBytes);
            left = left.slice(1);
            continue;
          }
          await producer.send(batch, signal);
          left = left.slice(batch.count);
        }
      } catch (error) {
        if (error instanceof Refused) throw error;
        const failure = toFailure(error);
        throw errorOf({ ...failure, reason: `event hub ${hub}: ${failure.reason}` });
      }
    },
    close: async () => {
      await Promise.all(Array.from(producers.values(), (producer) => producer.retire()));
    },
  };
}

/** A refused message is not sent again; after another error it is retried. */
function errorOf({ kind, reason }: { readonly kind: string; readonly reason: string }): Error {
  return kind === 'rejected' || kind === 'too-large' ? new Refused(reason) : new Error(reason);
}

/** Writes a body that is too large for a hub, as the service does, and sends nothing. */
async function writeBlob(blobs: string | null, { blob, body }: EtlMessage, limit: number): Promise<void> {
  if (blobs === null)
    throw new Refused(`above the hub's limit of ${limit} bytes, and there is no blobs folder`);
  const file = join(blobs, blob);
  await mkdir(dirname(file), { recursive: true });
  // Readers of the folder see only complete files.
  await writeFile(`${file}.tmp`, body);
  await rename(`${file}.tmp`, file);
}

async function topics({ name, connection }: EtlDestination): Promise<Broker> {
  const [{ parseOptions }, { Publisher }, { toFailure }, { topicPath }] = await Promise.all([
    import('../../sinks/pubsub/config.ts'),
    import('../../sinks/pubsub/publisher.ts'),
    import('../../vendors/pubsub/failure.ts'),
    import('../../sinks/pubsub/topic.ts'),
  ]);
  const options = checked(name, () => parseOptions(connection));
  const publisher = new Publisher(options);
  return {
    send: async (messages, signal) => {
      const [first] = messages;
      if (first === undefined) return;
      const list = messages.map(({ body, metadata, key }) => {
        return { data: body, attributes: metadata, orderingKey: key ?? '' };
      });
      try {
        await publisher.publish(topicPath(options.project, first.target), list, signal);
      } catch (error) {
        throw errorOf(toFailure(error));
      }
    },
    close: () => publisher.close(),
  };
}
