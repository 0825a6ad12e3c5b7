import { messageOf } from '../../core/errors.ts';
import type { Event } from '../../core/event.ts';
import type { SinkLog } from '../../core/sink.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { jsonIn } from '../../lib/parsed.ts';
import type { Cluster } from './cluster.ts';
import { fingerprintOf } from './id-table.ts';
import type { PartitionOffset } from './record.ts';
import type { Destination } from './settled-offsets.ts';

/** The key of a dead letter's record: the same for the same delivery, and another one for each retry of it. */
export function deadLetterKey(
  { sink, destination }: { readonly sink: string; readonly destination: Destination },
  event: Event & { readonly again?: string | null; readonly place?: PartitionOffset },
): Buffer {
  const { again = null, place } = event;
  const at = place === undefined ? [] : [place.partition, place.offset];
  return Buffer.from(JSON.stringify([sink, destination, printOf(event), again, ...at]));
}

function printOf({ source, id, body }: Pick<Event, 'source' | 'id' | 'body'>): string {
  return fingerprintOf(source, id, body).toString('hex');
}

/** Milliseconds by which a dead letter can seem older than its event: clocks differ. */
const SLACK = 60_000;

interface DeadDelivery extends PartitionOffset {
  readonly destination: Destination;
  readonly print: string;
}

/** Deliveries of a sink that became dead letters, by the offsets of their events. */
export type DeadDeliveries = ReadonlyMap<string, readonly DeadDelivery[]>;

/** The destinations for which an event is a dead letter. Not those of another event at this offset of an earlier topic. */
export function deadFor(
  dead: DeadDeliveries,
  at: PartitionOffset,
  event: Pick<Event, 'source' | 'id' | 'body'>,
): readonly Destination[] {
  const deliveries = dead.size === 0 ? undefined : dead.get(nameOf(at));
  if (deliveries === undefined) return [];
  const print = printOf(event);
  return deliveries.flatMap((each) => (each.print === print ? [each.destination] : []));
}

function nameOf({ partition, offset }: PartitionOffset): string {
  return `${partition}/${offset}`;
}

/**
 * The deliveries of a sink that became dead letters, also if these were dropped or retried since: a process that wrote a
 * dead letter can have ended before it committed that. Tombstones have the keys, for as long as brokers keep them. Without
 * an answer none: some are sent again then, which is better than to send nothing.
 * @param since when the oldest of their events was written, milliseconds since the epoch; Infinity without any
 */
export async function deadDeliveriesSince(
  cluster: Cluster,
  since: number,
  {
    name: sink,
    deadLetterTopic: topic,
    log,
  }: { readonly name: string; readonly deadLetterTopic: string; readonly log: SinkLog },
  signal: AbortSignal,
): Promise<DeadDeliveries> {
  const found = new Map<string, DeadDelivery[]>();
  if (since === Infinity) return found;
  try {
    for (const span of await cluster.spans(topic, since - SLACK)) {
      if (span.from === -1) continue;
      for await (const { records } of cluster.pages(topic, span, signal))
        for (const { key } of records) {
          const delivery = key === null ? null : deliveryIn(key, sink);
          if (delivery !== null) getOrMake(found, nameOf(delivery), () => []).push(delivery);
        }
    }
  } catch (error) {
    if (!signal.aborted) log.warn({ topic, error: messageOf(error) }, 'dead letters cannot be read');
  }
  return found;
}

function deliveryIn(key: Buffer, sink: string): DeadDelivery | null {
  const words = jsonIn(String(key));
  if (!Array.isArray(words) || words[0] !== sink) return null;
  const [, destination, print, , partition, offset] = words as unknown[];
  if (destination !== null && typeof destination !== 'string') return null;
  if (typeof print !== 'string' || typeof partition !== 'number' || typeof offset !== 'number') return null;
  return { destination, print, partition, offset };
}
