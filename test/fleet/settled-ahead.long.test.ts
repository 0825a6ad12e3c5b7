import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { millrace } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { makeMutant } from '../support/mutant.ts';
import { MUTANTS } from './mutants.ts';
import { Places } from './places.ts';

const USERS = ['a', 'b', 'c', 'd', 'e', 'f'];
const IDS = USERS.map((user) => `msg_${user}_1`);

describeOnSharedKafka('what is settled while one place is down', (kafka) => {
  const { oracle } = kafka;

  test('stays settled over reloads, partitions that change hands, a stop and a kill', async () => {
    const places = await Places.on(kafka);
    places.set('down.down', true);
    places.set('picky.refuses', true);
    const first = await Receiver.start(places.config('b1'));
    await places.sendTo(first, ...USERS);
    await until('the dead letters', async () => (await places.deadLetters()) === USERS.length);
    await places.run('dead-letters', 'drop', '--all');
    await places.tried(first, USERS.length);
    // No place refuses any more: what is sent again is delivered.
    places.set('picky.refuses', false);
    for (let n = 0; n < 2; n += 1) {
      await places.reload(first, 'b1');
      await places.tried(first, USERS.length);
    }
    const second = await places.start('b2', 'both');
    await until('it to have partitions', () => second.stderr.includes('has partitions'));
    expect(await first.kill('SIGTERM')).toMatchObject({ code: 0 });
    await places.tried(second, USERS.length);
    const counts = Map.groupBy(await oracle.read(places.topic), ({ partition }) => partition);
    await until('all of it to be noted', async () => {
      const noted = await places.noted();
      return [...counts].every(([at, { length }]) =>
        ['up', 'picky'].every((place) => noted.get(at)?.[place] === length),
      );
    });
    await second.kill('SIGKILL');
    const third = await Receiver.start(places.config('b3'));
    await places.tried(third, USERS.length);
    const erased = await millrace(['erase', 'a', '--now', '--config', places.config('b3')]);
    expect(erased.stdout + erased.stderr).toContain('the brokers keep what it had until');
    places.set('down.down', false);
    await places.isPast(USERS.length);
    for (const place of ['up', 'picky']) expect(places.given(place).toSorted(), place).toEqual(IDS);
    expect(places.given('down').toSorted()).toEqual(IDS.slice(1));
    expect(await places.deadLetters()).toBe(0);
  });

  test('stays settled when routes name other places, two reloads come at once, and the sink has another name for a while', async () => {
    const places = await Places.on(kafka);
    places.set('down.down', true);
    const first = await Receiver.start(places.config('b1'));
    await places.sendTo(first, ...USERS);
    await places.tried(first, USERS.length);
    places.to = ['up', 'new'];
    await places.reload(first, 'b1', 2);
    await places.sendTo(first, 'y');
    await until('the new place to have it', () => places.given('new').length === 1);
    await places.tried(first, USERS.length);
    expect(await first.kill('SIGTERM')).toMatchObject({ code: 0 });
    places.sink = 'two';
    const second = await Receiver.start(places.config('b2'));
    await places.sendTo(second, 'z');
    await until('the other sink to have it', () => places.given('new').length === 2);
    expect(await second.kill('SIGTERM')).toMatchObject({ code: 0 });
    places.sink = 'one';
    const third = await Receiver.start(places.config('b3'));
    await places.tried(third, USERS.length);
    places.set('down.down', false);
    await places.isPast(USERS.length + 2);
    const later = ['msg_y_1', 'msg_z_1'];
    for (const [place, ids] of [
      ['up', [...IDS, ...later]],
      ['new', later],
      ['picky', IDS],
      ['down', IDS],
    ] as const)
      expect(places.given(place).toSorted(), place).toEqual(ids);
  });

  test('a dead letter counts whose maker was killed before it had committed that, and one that was dropped', async () => {
    const places = await Places.on(kafka);
    places.set('picky.refuses', true);
    const { main, remove } = makeMutant('no commit', MUTANTS['no commit']);
    onTestFinished(remove);
    const first = await places.start('b1', 'both', main);
    await places.sendTo(first, 'a', 'b', 'c');
    await until('the dead letters', async () => (await places.deadLetters()) === 3);
    await places.run('dead-letters', 'drop', '--all');
    await places.sendTo(first, 'd', 'e', 'f');
    await until('more dead letters', async () => (await places.deadLetters()) === 3);
    await first.kill('SIGKILL');
    places.set('picky.refuses', false);
    const second = await Receiver.start(places.config('b2'));
    await places.sendTo(second, 'g');
    await places.isPast(7);
    expect(places.given('picky').toSorted()).toEqual([...IDS, 'msg_g_1']);
    expect(await places.deadLetters()).toBe(3);
    // It is another delivery once it is retried.
    await places.run('dead-letters', 'retry', '--all');
    await until('them to be delivered', () => places.given('picky').length === 10);
    expect(await places.deadLetters()).toBe(0);
  });

  test('who was paused and is refused when others have its events brings back no dead letter', async () => {
    const places = await Places.on(kafka);
    places.set('picky.refuses', true);
    const first = await places.start('b1', 'both');
    const stalls = join(places.folder, 'picky.stalls');
    writeFileSync(stalls, String(first.pid));
    await places.sendTo(first, 'a');
    await until('it to be sending', () => existsSync(`${stalls}.begun`));
    first.signal('SIGSTOP');
    const second = await Receiver.start(places.config('b2'));
    await until('the dead letter', async () => (await places.deadLetters()) === 1);
    await places.run('dead-letters', 'drop', '--all');
    rmSync(stalls);
    first.signal('SIGCONT');
    await until('it to be refused', () => places.given('picky').length === 2);
    await until('it to find that it is late', () => first.stderr.includes('others may have its partition'));
    expect(await first.kill('SIGTERM')).toMatchObject({ code: 0 });
    expect(await second.kill('SIGTERM')).toMatchObject({ code: 0 });
    expect(await places.deadLetters()).toBe(0);
    expect(places.given('picky')).toEqual(['msg_a_1', 'msg_a_1']);
  });
});
