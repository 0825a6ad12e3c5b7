import { expect, onTestFinished, test } from 'vitest';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { bodyOf, Fleet } from './fleet.ts';
import { makeMutant } from '../support/mutant.ts';
import { MUTANTS } from './mutants.ts';

const ID = 'msg_a_1';
const OTHER = bodyOf('a', { event_type: 'other' });

describeOnSharedKafka('an id that comes with other bytes', (kafka) => {
  test('is in quarantine once, though who put it there is killed at each step', async () => {
    const fleet = await Fleet.make(kafka, { partitions: 1, sinks: ['one'] });
    const receiver = await fleet.startInside('r1', 'receive');
    await fleet.send('a', () => [receiver.url]);
    // One that has not had the first of them lately.
    const other = await fleet.startInside('r2', 'receive');
    expect(await postSigned(other.url, OTHER, { id: ID })).toMatchObject({ status: 202 });
    const steps = [
      ['killed before quarantine', 0],
      ['killed after quarantine', 1],
      ['killed before the offset', 1],
    ] as const;
    for (const [step, there] of steps) {
      const { main, remove } = makeMutant(step, MUTANTS[step]);
      onTestFinished(remove);
      const killed = await fleet.start('d1', 'deliver', main);
      expect(await killed.exited, killed.stderr.slice(-1500)).toMatchObject({ signal: 'SIGKILL' });
      expect(await fleet.listed('quarantine'), step).toHaveLength(there);
    }
    await fleet.start('d2', 'deliver');
    await fleet.send('a', () => [receiver.url]);
    await until('it to be past all', async () => {
      return (await fleet.past('_window')) === 3 && fleet.isDelivered;
    });
    expect(await fleet.listed('quarantine')).toMatchObject([{ id: ID, reasons: [{ code: 'id_reused' }] }]);
    expect(new Set(fleet.given('one'))).toEqual(new Set([ID, 'msg_a_2']));
  });
});
