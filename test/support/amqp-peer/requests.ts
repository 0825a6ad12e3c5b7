import type { Message } from 'rhea';
import type { Faults } from './faults.ts';
import type { Hub } from './hub.ts';

/** Answers to the two request/response nodes: `$cbs` (tokens) and `{hub}/$management` (properties). */
export function answerRequest(request: Message, hubs: ReadonlyMap<string, Hub>, faults: Faults): Message {
  const { operation, name, type, partition } = request.application_properties ?? {};
  if (operation === 'put-token') {
    return faults.onToken(String(name))
      ? answer(request, 401, 'InvalidSignature: the token has an invalid signature.')
      : answer(request, 202, 'Accepted');
  }
  const hub = hubs.get(String(name));
  if (hub === undefined)
    return answer(request, 404, `The messaging entity '${String(name)}' could not be found.`);
  if (type === 'com.microsoft:eventhub') return answer(request, 200, 'OK', hubProperties(hub));
  const index = Number(partition);
  if (hub.partitions[index] === undefined)
    return answer(request, 404, `There is no partition ${String(partition)}.`);
  return answer(request, 200, 'OK', partitionProperties(hub, index));
}

function answer({ message_id: id }: Message, code: number, description: string, body: unknown = ''): Message {
  return {
    ...(id === undefined ? {} : { correlation_id: id }),
    application_properties: { 'status-code': code, 'status-description': description },
    body,
  };
}

function hubProperties({ name, partitions }: Hub): object {
  return {
    name,
    type: 'com.microsoft:eventhub',
    created_at: new Date(0),
    partition_count: partitions.length,
    partition_ids: partitions.map((_, index) => String(index)),
  };
}

function partitionProperties({ name, partitions }: Hub, index: number): object {
  const messages = partitions[index]?.messages ?? [];
  const last = messages.at(-1);
  return {
    name,
    type: 'com.microsoft:partition',
    partition: String(index),
    begin_sequence_number: messages[0]?.sequenceNumber ?? 0,
    last_enqueued_sequence_number: last?.sequenceNumber ?? -1,
    last_enqueued_offset: last?.offset ?? '-1',
    last_enqueued_time_utc: new Date(last?.enqueuedAt ?? 0),
    is_partition_empty: last === undefined,
  };
}
