import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { millrace } from '../support/millrace.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { bodyOf, Fleet } from './fleet.ts';

interface Report {
  readonly sinks: readonly Record<string, unknown>[];
  readonly differences: readonly { code: string; sink: string; ids: string[] }[];
}

describeOnSharedKafka('reconcile of a journal on Kafka', (kafka) => {
  const { oracle } = kafka;

  test('every delivery has a place, by name, until a record is taken out of the files', async () => {
    const folder = await temporaryFolder();
    const holds = join(folder, 'holds');
    const sink = { refuse: 'unwanted.created', holds, only: 'two' };
    const archive = join(folder, 'archive');
    // The first and the second sink of a fleet cannot be asked; the files can.
    const sinks = { archive: { type: 'files', path: archive, compress: 'none' } };
    const routes = [
      { match: 'unwanted.', to: ['one', 'archive'] },
      { match: '*', to: ['two', 'archive'] },
    ];
    const fleet = await Fleet.make(kafka, { folder, sink, more: { sinks, routes } });
    const config = fleet.config('reconcile');
    const reconcile = async (
      ...args: string[]
    ): Promise<{ code: number | null; stderr: string; report: Report }> => {
      const { code, stdout, stderr } = await millrace(['reconcile', '--json', '--config', config, ...args]);
      return { code, stderr, report: (stdout === '' ? {} : JSON.parse(stdout)) as Report };
    };
    writeFileSync(holds, '');
    const both = await fleet.start('b1', 'both');
    const post = async (id: string, bytes: Buffer): Promise<unknown> =>
      (await postSigned(both.url, bytes, { id })).json['status'];
    for (let n = 0; n < 4; n += 1) await post(`msg_${n}`, bodyOf(`user-${n}`));
    await post('msg_refused', bodyOf('user-1', { event_type: 'unwanted.created' }));
    expect(await post('msg_bad', Buffer.from('[]'))).toBe('quarantined');
    expect(await post('msg_0', bodyOf('user-0', { other: true }))).toBe('accepted');
    const set = async (what: 'quarantine' | 'dead-letters'): Promise<number> =>
      (await fleet.listed(what)).length;
    await until(
      'what is set aside',
      async () => (await set('quarantine')) + (await set('dead-letters')) === 3,
    );
    expect(await both.kill('SIGTERM')).toMatchObject({ code: 0 });

    const first = await reconcile();
    expect(first.report.differences).toEqual([]);
    expect(first.code).toBe(0);
    const received = { received: 7, duplicates: 0, quarantined: 2, missing: 0, untold: 0, erased: 0 };
    expect(first.report.sinks).toMatchObject([
      { sink: 'one', ...received, delivered: 0, dead: 1, waiting: 0, elsewhere: 4 },
      { sink: 'two', ...received, delivered: 0, dead: 0, waiting: 4, elsewhere: 1 },
      { sink: 'archive', ...received, delivered: 5, dead: 0, waiting: 0, elsewhere: 0 },
    ]);

    // Another process has it all again, and what was held back goes out; a dead letter is retried, and refused again.
    rmSync(holds);
    const again = await fleet.start('b2', 'both');
    for (let n = 0; n < 4; n += 1) await postSigned(again.url, bodyOf(`user-${n}`), { id: `msg_${n}` });
    await millrace(['dead-letters', 'retry', '--all', '--config', config]);
    await until('it to be refused again', () => fleet.given('one').length === 2);
    await until('its dead letter', async () => (await set('dead-letters')) === 1);
    await until('all to be delivered', () => fleet.given('two').length === 4);
    expect(await again.kill('SIGTERM')).toMatchObject({ code: 0 });
    const second = await reconcile();
    expect(second.report.differences).toEqual([]);
    const later = { ...received, received: 11, duplicates: 4 };
    expect(second.report.sinks).toMatchObject([
      { sink: 'one', ...later, delivered: 0, dead: 1, waiting: 0, elsewhere: 4 },
      { sink: 'two', ...later, delivered: 4, dead: 0, waiting: 0, elsewhere: 1 },
      { sink: 'archive', ...later, delivered: 5, copies: 0 },
    ]);

    const file = readdirSync(archive, { recursive: true, encoding: 'utf8' }).find((name) =>
      name.endsWith('ndjson'),
    );
    const path = join(archive, file ?? '');
    const lines = readFileSync(path, 'utf8').split('\n');
    writeFileSync(path, lines.filter((line) => !line.includes('"msg_2"')).join('\n'));
    const third = await reconcile();
    expect(third.code).toBe(4);
    expect(third.report.differences).toMatchObject([{ code: 'missing', sink: 'archive', ids: ['msg_2'] }]);

    const [gone] = await oracle.read(fleet.topic);
    await oracle.trim(fleet.topic, gone?.partition ?? 0, (gone?.offset ?? 0) + 1);
    expect(await reconcile()).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/deleted events of before .*--since must not be before it/) as unknown,
    });
  });
});
