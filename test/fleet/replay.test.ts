import { expect, test } from 'vitest';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { millrace } from '../support/millrace.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { bodyOf, Fleet } from './fleet.ts';

describeOnSharedKafka('the journal of a fleet', (kafka) => {
  const { oracle } = kafka;

  test('is replayed, each event once, from where it was interrupted', async () => {
    const fleet = await Fleet.make(kafka, { session: '2s', sink: { refuse: 'unwanted.created' } });
    fleet.envelope = { teams: ['other'] };
    const strict = await fleet.startInside('b0', 'both');
    await postSigned(strict.url, bodyOf('user-0', { event_type: 'a.created' }), { id: 'msg_released' });
    await strict.kill('SIGTERM');
    fleet.envelope = {};
    const both = [await fleet.startInside('b1', 'both'), await fleet.startInside('b2', 'receive')];
    const config = fleet.config('x1');
    await millrace(['quarantine', 'retry', '--all', '--config', config]);
    await postSigned(both[0]!.url, bodyOf('user-0', { event_type: 'unwanted.created' }), {
      id: 'msg_refused',
    });
    const users = ['gone', 'user-1', 'user-2', 'user-3'];
    // Repeated to the other one: twice in the topic.
    for (let n = 0; n < 10; n += 1)
      await Promise.all(users.map((user) => fleet.send(user, () => both.map(({ url }) => url), 1)));
    await until('all to be delivered', () => fleet.isDelivered);
    await until(
      'the dead letters',
      async () => (await oracle.read(`${fleet.name}.dead-letters`)).length === 2,
    );
    await millrace(['dead-letters', 'retry', '--all', '--config', config]);
    await until('them again', () => fleet.given('two').filter((id) => id === 'msg_refused').length === 2);
    for (const each of both) await each.kill('SIGTERM');
    await millrace(['erase', 'gone', '--now', '--config', config]);

    const before = fleet.given('two').length;
    const replayed = (): string[] => fleet.given('two').slice(before);
    const replay = ['replay', 'journal', '--to', 'two', '--config', config];
    const stop = new AbortController();
    const interrupted = millrace([...replay, '--rate', '20/s'], { signal: stop.signal });
    await until('some', () => replayed().length >= 8);
    stop.abort();
    expect((await interrupted).code).toBe(3);
    expect(replayed().length).toBeLessThan(30);
    expect((await millrace([...replay, '--resume', '--json'])).stdout).toContain('"erased":10');
    const own = users
      .slice(1)
      .flatMap((user) => Array.from({ length: 10 }, (_, n) => `msg_${user}_${n + 1}`));
    expect([...new Set(replayed())].toSorted()).toEqual([...own, 'msg_released', 'msg_refused'].toSorted());
    expect(replayed().length).toBeLessThan(32 + 8);
    for (const user of users.slice(1)) {
      const first = [...new Set(replayed())].filter((id) => id.includes(user));
      expect(first).toEqual(own.filter((id) => id.includes(user)));
    }
    const count = async (...filter: string[]): Promise<number> => {
      const { stdout } = await millrace([...replay, '--dry-run', '--json', ...filter]);
      return (JSON.parse(stdout) as { selected: number }).selected;
    };
    expect(await count('--user', 'user-2')).toBe(10);
    expect(await count('--type', 'daily.', '--user', 'user-0')).toBe(0);
    expect(await count('--type', 'unwanted.')).toBe(1);
    const hour = 3_600_000;
    expect(await count('--since', new Date(Date.now() - hour).toISOString())).toBe(32);
    expect(await count('--since', new Date(Date.now() + hour).toISOString())).toBe(0);
    expect(await count('--until', new Date(Date.now() - hour).toISOString())).toBe(0);
    // What the brokers have deleted before the replay begins is no part of it.
    const [first] = await oracle.read(fleet.topic);
    await oracle.trim(fleet.topic, first?.partition ?? 0, 1);
    expect(await count()).toBeGreaterThan(20);
  });
});
