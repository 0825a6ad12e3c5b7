import { expect, test } from 'vitest';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { Receiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { Places } from './places.ts';

const USERS = ['a', 'b', 'c', 'd', 'e', 'f'];
const IDS = USERS.map((user) => `msg_${user}_1`);

/** Ids that a place is given by a deliverer, until it has so many. */
async function given(places: Places, place: string, events: number): Promise<string[]> {
  const deliverer = await Receiver.start(places.config('d'), { args: ['--role', 'deliver'] });
  await until('what is for it', () => places.given(place).length >= events).catch(() => undefined);
  await deliverer.kill('SIGTERM');
  return places.given(place);
}

describeOnSharedKafka('what was said of another log', (kafka) => {
  const { oracle } = kafka;

  /** A fleet whose sink has still to have all of its events. */
  async function waiting(): Promise<Places> {
    const places = await Places.on(kafka, 1);
    const receiver = await Receiver.start(places.config('r'), { args: ['--role', 'receive'] });
    await places.sendTo(receiver, ...USERS);
    await receiver.kill('SIGTERM');
    return places;
  }

  test('an offset behind the end, as of a log that was cut or created again, settles nothing', async () => {
    const places = await waiting();
    await oracle.commit(`${places.name}.one`, places.topic, 0, 1000);
    expect(await given(places, 'up', 6)).toEqual(IDS);
  });

  test('what is settled ahead counts from the offset it was committed with', async () => {
    const source = await Places.on(kafka, 1);
    const first = await Receiver.start(source.config('b'));
    await source.sendTo(first, 'x', 'y', 'z');
    await source.isPast(3);
    source.set('down.down', true);
    await source.sendTo(first, 'u', 'v', 'w');
    await source.tried(first, 3);
    await first.kill('SIGTERM');
    const noted = await oracle.noted(`${source.name}.one`, source.topic);
    expect(noted.get(0)).toContain('up');
    // A mirror of the cluster takes the text along, and an offset that is not quite so far.
    const places = await waiting();
    await oracle.commit(`${places.name}.one`, places.topic, 0, 1, noted.get(0));
    expect(await given(places, 'up', 5)).toEqual(IDS.slice(1));
  });

  test('a dead letter of another event at the same place settles nothing', async () => {
    const places = await waiting();
    for (const at of [0, 2, 3]) {
      const key = Buffer.from(JSON.stringify(['one', 'up', '5a'.repeat(20), null, 0, at]));
      await oracle.write(`${places.name}.dead-letters`, key, null);
    }
    expect(await given(places, 'up', 6)).toEqual(IDS);
  });
});
