import { messageOf } from '../../core/errors.ts';
import type { Event } from '../../core/event.ts';
import type { SinkLog } from '../../core/sink.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { jsonIn } from '../../lib/parsed.ts';
import type { Cluster } from './cluster.ts';
import { fingerprintOf } from './id-table.ts';
import type { Place } from './record.ts';
import type { Destination } from './settled-offsets.ts';

/**
 * The key of a dead letter's record: which delivery it is of.
 * @param print of the event, as the window has it
 * @param again as what it was retried
 */
export function letterKey(
  { sink, destination }: { readonly sink: string; readonly destination: Destination },
  print: string,
  again: string | null,
  place: Place | null,
): Buffer {
  const at = place === null ? [] : [place.partition, place.offset];
  return Buffer.from(JSON.stringify([sink, destination, print, again, ...at]));
}

/** Of an event, as the window has it. */
export function printOf({ source, id, body }: Pick<Event, 'source' | 'id' | 'body'>): string {
  return fingerprintOf(source, id, body).toString('hex');
}

/** Clocks differ: milliseconds by which a letter can seem older than its event. */
const SLACK = 60_000;

interface Letter extends Place {
  readonly destination: Destination;
  readonly print: string;
}

/** Deliveries of a sink that became dead letters, by where their events lie. */
export class Died {
  readonly #all = new Map<string, Letter[]>();

  add(letter: Letter): void {
    getOrMake(this.#all, nameOf(letter), () => []).push(letter);
  }

  /** Where an event has died. Of another one that lay there, in a topic that this one is a copy of or came after, it says nothing. */
  of(place: Place, event: Pick<Event, 'source' | 'id' | 'body'>): readonly Destination[] {
    const letters = this.#all.size === 0 ? undefined : this.#all.get(nameOf(place));
    if (letters === undefined) return NOWHERE;
    const print = printOf(event);
    return letters.flatMap((letter) => (letter.print === print ? [letter.destination] : []));
  }
}

const NOWHERE: readonly Destination[] = [];

function nameOf({ partition, offset }: Place): string {
  return `${partition}/${offset}`;
}

interface Around {
  /** Of the sink. */
  readonly name: string;
  readonly deadLetterTopic: string;
  readonly log: SinkLog;
}

/**
 * The deliveries of a sink that became dead letters, whatever became of these: whoever made a letter may have ended before it
 * had committed that. Letters that were taken out have left their keys, for as long as the brokers keep tombstones. None when
 * they cannot be read: some are sent once more then, which is better than to send nothing.
 * @param since when the oldest of their events was written, milliseconds since the epoch; Infinity without any
 */
export async function diedSince(
  cluster: Cluster,
  since: number,
  { name, deadLetterTopic: topic, log }: Around,
  signal: AbortSignal,
): Promise<Died> {
  const found = new Died();
  if (since === Infinity) return found;
  try {
    for (const span of await cluster.spans(topic, since - SLACK)) {
      if (span.from === -1) continue;
      for await (const { records } of cluster.pages(topic, span, signal))
        for (const { key } of records) {
          const letter = key === null ? null : letterIn(key, name);
          if (letter !== null) found.add(letter);
        }
    }
  } catch (error) {
    if (!signal.aborted) log.warn({ topic, error: messageOf(error) }, 'dead letters cannot be read');
  }
  return found;
}

function letterIn(key: Buffer, sink: string): Letter | null {
  const words = jsonIn(String(key));
  if (!Array.isArray(words) || words[0] !== sink) return null;
  const [, destination, print, , partition, offset] = words as unknown[];
  if (destination !== null && typeof destination !== 'string') return null;
  if (typeof print !== 'string' || typeof partition !== 'number' || typeof offset !== 'number') return null;
  return { destination, print, partition, offset };
}
