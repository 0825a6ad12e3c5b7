import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { kill } from 'node:process';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnKafka } from '../support/kafka/cluster.ts';
import { writeConfig } from '../support/millrace.ts';
import { expectConserved, expectOnce, readBack, type ReadBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const NAMES = ['one', 'two'];

const took = async (process: ReceiverProcess): Promise<number> => (await process.status()).journal.lastSeq;

describeOnKafka('a fleet over Kafka', {}, ({ addresses, oracle }) => {
  /** Two receivers without state in front of a topic, two behind it that deliver. */
  const fleet = async () => {
    const folder = await temporaryFolder();
    const [topic, unfit] = [`events-${randomUUID()}`, `unfit-${randomUUID()}`];
    for (const name of [topic, unfit]) await oracle.create(name, 4);
    const kafka = { type: 'kafka', brokers: addresses, tls: { enabled: false }, topic, timeout: '3s' };
    const start = async (name: string, config: Record<string, object>): Promise<ReceiverProcess> => {
      const own = join(folder, name);
      mkdirSync(own, { recursive: true });
      return ReceiverProcess.start(writeConfig(own, config));
    };
    const receiver = (name: string) =>
      start(`receive-${name}`, {
        ...({ acknowledge: 'delivered' } as unknown as Record<string, object>),
        quarantine: { to: `log:${unfit}` },
        sinks: { log: kafka },
        routes: [{ match: '*', to: ['log'] }],
      });
    const deliverer = (name: string) =>
      start(`deliver-${name}`, { sources: { log: { ...kafka, group: topic, session: '3s' } } });
    const archived = (): Promise<Map<string, ReadBack[]>[]> =>
      Promise.all(
        NAMES.map((name) =>
          readBack(join(folder, `deliver-${name}`, 'archive'), { parts: true }).catch(() => new Map()),
        ),
      );
    return { topic, unfit, receiver, deliverer, archived };
  };

  test('fault 47: killed under load, paused and back: what was answered with 2xx is in an archive', async () => {
    const { receiver, deliverer, archived } = await fleet();
    const [near, far] = [await receiver('one'), await receiver('two')];
    const first = await deliverer('one');
    const second = await deliverer('two');
    const acknowledged = new Map<string, Buffer>();
    const send = async (count: number): Promise<void> => {
      const from = acknowledged.size;
      for (let n = from; n < from + count; n += 1) {
        const { id, body } = madeUpEvent(n);
        // As the sender would: to the next one, when one does not answer.
        for (const { url } of n % 2 === 0 ? [near, far, far] : [far, near, far]) {
          const status = await postSigned(url, body, { id }).then(
            (answer) => answer.status,
            () => 0,
          );
          if (status !== 202) continue;
          acknowledged.set(id, body);
          break;
        }
      }
    };
    await until('both to deliver', async () => {
      await send(20);
      return (await took(first)) > 0 && (await took(second)) > 0;
    });
    await Promise.all([send(200), near.kill('SIGKILL'), first.kill('SIGKILL')]);
    const again = await deliverer('one');
    await send(100);
    const all = async (): Promise<Map<string, ReadBack[]>> =>
      new Map((await archived()).flatMap((each) => [...each]));
    const archive = (ids: readonly string[]): Promise<unknown> =>
      until('everything to be archived', async () => {
        const found = await all();
        return ids.every((id) => found.has(id));
      });
    await archive([...acknowledged.keys()]);
    // Paused until others have its partitions, it comes back and believes for a moment that they are still its own.
    kill(second.pid, 'SIGSTOP');
    const before = acknowledged.size;
    await send(60);
    await archive([...acknowledged.keys()].slice(before));
    kill(second.pid, 'SIGCONT');
    await send(60);
    await archive([...acknowledged.keys()]);
    for (const process of [again, second, far])
      expect(await process.kill('SIGTERM')).toMatchObject({ code: 0 });
    expectConserved(await all(), acknowledged, { has: () => true });
  });

  test('a delivery that is repeated to another receiver is forwarded once; what is unfit has a topic', async () => {
    const { topic, unfit, receiver, deliverer, archived } = await fleet();
    const receivers = [await receiver('one'), await receiver('two')];
    const deliverers = [await deliverer('one'), await deliverer('two')];
    const [known, wrong] = [madeUpEvent(1), Buffer.from('[]')];
    for (const { url } of receivers) {
      expect((await postSigned(url, known.body, { id: known.id })).status).toBe(202);
      expect((await postSigned(url, wrong, { id: 'msg_wrong' })).json).toMatchObject({
        status: 'quarantined',
      });
    }
    expect(await oracle.read(topic)).toHaveLength(2);
    expect(await oracle.read(unfit)).toHaveLength(2);
    await until('both to be committed', async () => {
      const offsets = await oracle.committed(topic, topic);
      return [...offsets.values()].reduce((sum, offset) => sum + offset, 0) === 2;
    });
    onTestFinished(async () => {
      for (const each of receivers) await each.kill('SIGTERM');
    });
    for (const each of deliverers) expect(await each.kill('SIGTERM')).toMatchObject({ code: 0 });
    const found = new Map((await archived()).flatMap((each) => [...each]));
    expect([...found.keys()]).toEqual([known.id]);
    expectOnce(found);
  });
});
