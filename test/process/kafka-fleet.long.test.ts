import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { kill } from 'node:process';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnKafka } from '../support/kafka/cluster.ts';
import { writeConfig } from '../support/millrace.ts';
import { expectConserved, readBack, type ReadBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const NAMES = ['one', 'two'];

const took = async (process: ReceiverProcess): Promise<number> => (await process.status()).journal.lastSeq;

describeOnKafka('a fleet over Kafka', {}, ({ addresses, oracle }) => {
  /** Two receivers without state in front of a topic, two behind it that deliver. */
  const fleet = async () => {
    const folder = await temporaryFolder();
    const topic = `events-${randomUUID()}`;
    await oracle.create(topic, 4);
    const kafka = { type: 'kafka', brokers: addresses, tls: { enabled: false }, topic, timeout: '3s' };
    const start = async (name: string, config: Record<string, unknown>): Promise<ReceiverProcess> => {
      const own = join(folder, name);
      mkdirSync(own, { recursive: true });
      return ReceiverProcess.start(writeConfig(own, config));
    };
    const receiver = (name: string) =>
      start(`receive-${name}`, {
        acknowledge: 'delivered',
        sinks: { log: kafka },
        routes: [{ match: '*', to: ['log'] }],
      });
    const deliverer = (name: string) =>
      start(`deliver-${name}`, { sources: { log: { ...kafka, group: topic, session: '3s' } } });
    const archived = async (): Promise<Map<string, ReadBack[]>> => {
      const all = NAMES.map((name) =>
        readBack(join(folder, `deliver-${name}`, 'archive'), { parts: true }).catch(() => new Map()),
      );
      return new Map((await Promise.all(all)).flatMap((each) => [...each]));
    };
    return { receiver, deliverer, archived };
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
    const archive = (ids: readonly string[]): Promise<unknown> =>
      until('everything to be archived', async () => {
        const found = await archived();
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
    expectConserved(await archived(), acknowledged, { has: () => true });
  });
});
