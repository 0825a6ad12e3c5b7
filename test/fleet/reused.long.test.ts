import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { millrace } from '../support/millrace.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';
import { makeMutant } from '../support/mutant.ts';
import { MUTANTS } from './mutants.ts';

const ID = 'msg_a_1';
const OTHER = Buffer.from(
  JSON.stringify({ event_type: 'other', team_id: 'team', user_id: 'a', client_user_id: 'a' }),
);

describeOnSharedKafka('an id that comes with other bytes', ({ addresses, oracle }) => {
  test('is in quarantine once, though who put it there is killed at each step', async () => {
    const fleet = new Fleet({
      folder: await temporaryFolder(),
      addresses,
      oracle,
      partitions: 1,
      sinks: ['one'],
    });
    onTestFinished(() => fleet.stop());
    await fleet.createTopics();
    const inQuarantine = async (): Promise<string[]> => {
      const { stdout } = await millrace(['quarantine', 'list', '--json', '--config', fleet.config('cli')]);
      return stdout.split('\n').slice(0, -1);
    };
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
      expect(await inQuarantine(), step).toHaveLength(there);
    }
    await fleet.start('d2', 'deliver');
    await fleet.send('a', () => [receiver.url]);
    await until('it to be past all', async () => {
      const offsets = await oracle.committed(`${fleet.name}._window`, fleet.topic);
      return offsets.get(0) === 3 && fleet.isDelivered;
    });
    const [found = '', ...more] = await inQuarantine();
    expect([more, JSON.parse(found)]).toMatchObject([[], { id: ID, reasons: [{ code: 'id_reused' }] }]);
    expect(new Set(fleet.given('one'))).toEqual(new Set([ID, 'msg_a_2']));
  });
});
