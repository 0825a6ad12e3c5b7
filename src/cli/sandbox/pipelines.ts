import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from 'pino';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { EtlMessage } from '../../sandbox/etl.ts';
import type { Pipelines } from '../../sandbox/events.ts';
import { Outbox, Refused, type Send } from '../../sandbox/outbox.ts';
import type { EtlDestination } from './etl.ts';

/** Milliseconds that messages on their way have when the sandbox stops. */
const PATIENCE = 5000;

interface Broker {
  readonly send: Send;
  close(): Promise<void>;
}

/** What the sandbox publishes by, and its end. */
export interface OpenPipelines extends Pipelines {
  /**
   * Gives what is on the way some time, then lets it go.
   * @param patience milliseconds, default 5000
   * @returns messages that did not arrive
   */
  close(patience?: number): Promise<number>;
}

/**
 * Pipelines into real brokers, by the vendors' SDKs. Nothing is connected before the first message.
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
    close: async (patience = PATIENCE) => {
      const left = await Promise.all(
        Array.from(open.values(), async ({ broker, outbox }) => {
          const count = await outbox.close(patience);
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
  type Way = InstanceType<typeof Producer>;
  const producers = new Map<string, Way>();
  const producerOf = (hub: string): Way => {
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
            await keep(blobs, large, batch.maxSizeInBytes);
            left = left.slice(1);
            continue;
          }
          await producer.send(batch, signal);
          left = left.slice(batch.count);
        }
      } catch (error) {
        if (error instanceof Refused) throw error;
        const failure = toFailure(error);
        const told = `event hub ${hub}: ${failure.reason}`;
        throw failure.kind === 'rejected' || failure.kind === 'too-large'
          ? new Refused(told)
          : new Error(told);
      }
    },
    close: async () => {
      await Promise.all(Array.from(producers.values(), (producer) => producer.retire()));
    },
  };
}

/** As the service does with what a hub does not take: it goes to a blob, and nothing is sent. */
async function keep(blobs: string | null, { blob, body }: EtlMessage, limit: number): Promise<void> {
  if (blobs === null)
    throw new Refused(`above the ${limit} bytes that the hub takes, and there is no blobs folder`);
  const file = join(blobs, blob);
  await mkdir(dirname(file), { recursive: true });
  // Who lists the folder meanwhile sees no half of it.
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
        const { kind, reason } = toFailure(error);
        throw kind === 'rejected' || kind === 'too-large' ? new Refused(reason) : new Error(reason);
      }
    },
    close: () => publisher.close(),
  };
}
