import type { PartitionContext, ReceivedEventData } from '@azure/event-hubs';
import { expect, test } from 'vitest';
import { parseOptions } from '../../src/sources/event-hubs/config.ts';
import { SharedCheckpoints } from '../../src/sources/event-hubs/shared-checkpoints.ts';
import { makeContext } from '../sinks/support.ts';
import { MemoryStore, NO_CHECKPOINTS } from './event-hubs-support.ts';

const OPTIONS = parseOptions({
  connectionString: 'Endpoint=sb://acme.example/;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0',
  hub: 'events',
});

const message = (offset: string): ReceivedEventData => ({ offset }) as ReceivedEventData;

test('the checkpoint of a partition is written once a second, and at the end', async () => {
  const context = makeContext();
  const store = new MemoryStore();
  const checkpoints = new SharedCheckpoints(OPTIONS, { ...context, checkpoints: NO_CHECKPOINTS }, store);
  const written: string[] = [];
  const partition = (partitionId: string): PartitionContext =>
    ({
      partitionId,
      updateCheckpoint: ({ offset }: ReceivedEventData) => Promise.resolve(written.push(offset)),
    }) as unknown as PartitionContext;
  const [one, other, foreign] = [partition('0'), partition('1'), partition('2')];
  await checkpoints.save(message('100'), one);
  await checkpoints.save(message('200'), one);
  await checkpoints.save(message('5'), other);
  expect(written).toEqual(['100', '5']);
  context.clock.advance(1000);
  await checkpoints.save(message('300'), one);
  await checkpoints.save(message('400'), one);
  expect(written).toEqual(['100', '5', '300']);

  await checkpoints.save(message('7'), foreign);
  await checkpoints.save(message('8'), foreign);
  store.owners.set('2', 'them');
  await checkpoints.store.listOwnership('host', 'events', '$Default');
  await checkpoints.finish();
  expect(written).toEqual(['100', '5', '300', '7', '400']);
});
