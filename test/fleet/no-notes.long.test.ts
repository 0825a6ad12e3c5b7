import { expect, test } from 'vitest';
import { describeOnKafka } from '../support/kafka/cluster.ts';
import { Receiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { Places } from './places.ts';

/** More than may be confirmed and not committed. */
const EVENTS = 220;
const properties = { 'offset.metadata.max.bytes': '10' };

describeOnKafka('brokers that take next to nothing beside an offset', { properties }, (cluster) => {
  test('do not stop what is up while a place is down', async () => {
    const places = await Places.on(cluster, 1);
    const receiver = await Receiver.start(places.config('b'));
    await places.sendTo(receiver, 'a');
    await places.isPast(1);
    places.set('down.down', true);
    const users = Array.from({ length: EVENTS }, (_, n) => `u${n}`);
    await Promise.all(users.map(async (user) => places.sendTo(receiver, user)));
    await until('what is up to have all', () => places.given('up').length > EVENTS);
    places.set('down.down', false);
    await places.isPast(EVENTS + 1);
    expect(new Set(places.given('down')).size).toBe(EVENTS + 1);
  });
});
