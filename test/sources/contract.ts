import { expect, it } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { decodeBody } from '../../src/sources/take.ts';
import { until, within } from '../support/until.ts';
import { idsOf, range, startReading, type Reading, type Take } from './reading.ts';
import type { Source } from '../../src/core/source.ts';
import type { JournalEvent } from '../../src/core/event.ts';

/** A place of a broker's, of one test alone. */
export interface SourcePlace {
  /** Another life of the one source that reads it. */
  readonly source: () => Source;
  /** Sends the events, every second one compressed. */
  readonly publish: (events: readonly JournalEvent[]) => Promise<void>;
}

const LONG = Buffer.from(`{"long":"${'x'.repeat(2000)}"}`);

/** Those from one number up to another; every second one is so long that it is sent compressed. */
export function events(from: number, to: number): JournalEvent[] {
  return Array.from({ length: to - from }, (_, i) =>
    contractEvent(from + i, (from + i) % 2 === 0 ? {} : { body: LONG }),
  );
}

const read = ({ source }: SourcePlace, take?: Take): Promise<Reading> => startReading(source(), take);

/** What every source must do. @param make a place with nothing in it */
export function sourceContract(make: () => Promise<SourcePlace>): void {
  it('hands over bytes, encoding, properties and time as they lie there, each user in order', async () => {
    const place = await make();
    await place.publish(events(0, 40));
    const { messages } = await read(place);
    await until('40 messages', () => messages.length === 40);
    expect(new Set(idsOf(messages))).toEqual(range(0, 40));
    for (const { body, encoding, properties, receivedAt } of messages) {
      const n = Number(properties['idempotency-key']?.slice('msg_'.length));
      expect(encoding).toBe(n % 2 === 0 ? null : 'gzip');
      expect(await decodeBody(body, encoding, 10_000)).toEqual({ ok: true, body: events(n, n + 1)[0]!.body });
      expect(properties).toMatchObject({
        'event-type': 'daily.data.meal.created',
        'user-id': `user-${n % 7}`,
      });
      expect(receivedAt).toBeGreaterThan(0);
    }
    for (let user = 0; user < 7; user += 1) {
      const ids = idsOf(messages.filter(({ properties }) => properties['user-id'] === `user-${user}`));
      expect(ids).toEqual(ids.toSorted((a, b) => Number(a.slice(4)) - Number(b.slice(4))));
    }
  });

  it('does not get again what was taken, and continues with what comes next', async () => {
    const place = await make();
    await place.publish(events(0, 20));
    const first = await read(place);
    await until('20 messages', () => first.messages.length === 20);
    await first.stop();
    await place.publish(events(20, 35));
    const second = await read(place);
    await until('15 messages', () => second.messages.length >= 15);
    await second.stop();
    expect(new Set(idsOf(second.messages))).toEqual(range(20, 35));
  });

  it('ends when a batch is not taken, confirms nothing of it, and gets it again', async () => {
    const place = await make();
    await place.publish(events(0, 30));
    const refused = new Set<string>();
    const first = await read(place, (batch) => {
      if (refused.size > 0) return Promise.resolve();
      for (const id of idsOf(batch)) refused.add(id);
      return Promise.reject(new Error('journal is full'));
    });
    expect(await within('the end', first.ended)).toMatchObject({ message: 'journal is full' });
    await first.stop();
    const second = await read(place);
    const all = (): Set<string> => new Set([...idsOf(first.messages), ...idsOf(second.messages)]);
    await until('every message', () => all().size === 30);
    expect(idsOf(second.messages)).toEqual(expect.arrayContaining([...refused]));
    expect(all()).toEqual(range(0, 30));
  });
}
