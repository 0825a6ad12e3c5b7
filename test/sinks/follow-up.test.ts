import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import type { Inlet, SendResult } from '../../src/core/sink.ts';
import type { IncomingMessage } from '../../src/core/incoming.ts';
import { startSandbox } from '../../src/sandbox/start.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { completionKey, readCompletion, type Completion } from '../../src/sinks/follow-up/completion.ts';
import { createSink, parseOptions } from '../../src/sinks/follow-up/sink.ts';
import { DEFAULT_FIELDS } from '../../src/validate/envelope.ts';
import { makeContext, signal, tempFolder } from './support.ts';

interface Parts {
  readonly follow: (inlet: Inlet | undefined) => Promise<SendResult>;
  /** Whether the pull counts as done. */
  readonly isDone: () => boolean;
}

async function openParts(): Promise<Parts> {
  const service = await startSandbox({ host: '127.0.0.1', users: 1, days: 4, mealsPerDay: 3 });
  onTestFinished(() => service.stop());
  const user = service.state.users.list(service.teamId)[0]?.id ?? '';
  const path = tempFolder();
  const data = { user_id: user, start_date: '2026-01-01', end_date: '2026-01-03' };
  const type = 'historical.data.meal.created';
  const body = Buffer.from(JSON.stringify({ event_type: type, data }));
  const completion = contractEvent(1, { type, user, body });
  const key = completionKey(readCompletion(completion) as Completion);
  return {
    isDone: () => existsSync(join(path, key, 'done.json')),
    follow: async (inlet) => {
      const options = parseOptions({ path, baseUrl: service.url, apiKey: service.apiKey, events: true });
      const sink = createSink(options, { ...makeContext(), ...(inlet === undefined ? {} : { inlet }) });
      onTestFinished(() => sink.close(signal));
      await sink.open(signal);
      const [result] = await sink.send([{ event: completion, destination: null }], signal);
      return result!;
    },
  };
}

function inletThat(take: Inlet['take']): Inlet {
  return { fields: () => DEFAULT_FIELDS, take };
}

test('a pull does not count as done before its events are in the journal', async () => {
  const { follow, isDone } = await openParts();
  const refused: IncomingMessage[] = [];
  const full = inletThat((_source, batch) => {
    refused.push(...batch);
    return Promise.reject(new MillraceError('journal_full', 'made up'));
  });
  expect(await follow(full)).toMatchObject({ status: 'retry' });
  expect(isDone()).toBe(false);

  const taken: IncomingMessage[] = [];
  const doneBefore: boolean[] = [];
  const open = inletThat((_source, batch) => {
    taken.push(...batch);
    doneBefore.push(isDone());
    return Promise.resolve();
  });
  expect(await follow(open)).toEqual({ status: 'delivered' });
  expect(isDone()).toBe(true);
  expect(new Set(doneBefore)).toEqual(new Set([false]));
  const ids = taken.map(({ properties }) => properties['idempotency-key']);
  expect(new Set(ids).size).toBe(9);
  expect(ids).toEqual(expect.arrayContaining(refused.map(({ properties }) => properties['idempotency-key'])));
});

test('events need a journal to go into', async () => {
  const { follow } = await openParts();
  await expect(follow(undefined)).rejects.toMatchObject({
    code: 'config_invalid',
    detail: 'sinks.archive.events: needs a receiver with a journal',
  });
});
