import { expect, test } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import { Letters } from '../../src/journal/kafka/letters.ts';
import type { Records } from '../../src/journal/kafka/records.ts';
import type { Topics, TopicsOptions } from '../../src/journal/kafka/topics.ts';

/** Letters whose topics have one record each, which `open` opens. */
function lettersWith(open: () => Promise<never>): Letters {
  const record = { offset: 0, key: Buffer.from('k'), value: Buffer.from('sealed'), headers: [], time: 0 };
  const cluster = {
    topic: async (id: string) => ({ id, leaders: [1] }),
    offsets: async () => new Map([[0, 1]]),
    fetch: async () => [{ partition: 0, error: 'NONE', records: [record], next: 1, end: 1 }],
  };
  const topics = { look: async () => cluster } as unknown as Topics;
  const options = { quarantineTopic: 'quarantine', deadLetterTopic: 'letters' } as TopicsOptions;
  return new Letters(options, topics, { open } as unknown as Records, () => Promise.resolve(true));
}

test('how many letters there are is not known while their keys cannot be had, and not 0', async () => {
  const unreachable = new MillraceError('keys_unusable', 'the place does not answer');
  const letters = lettersWith(() => Promise.reject(unreachable));
  expect(await letters.counts()).toEqual({ quarantined: null, deadLetters: null });
});

test('any other failure is one', async () => {
  const letters = lettersWith(() => Promise.reject(new Error('no broker')));
  await expect(letters.counts()).rejects.toThrow('no broker');
});
