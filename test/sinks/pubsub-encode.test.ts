import { protos } from '@google-cloud/pubsub';
import { describe, expect, test } from 'vitest';
import { encodeRequest, mostBytes } from '../../src/sinks/pubsub/encode.ts';
import type { Message } from '../../src/sinks/pubsub/message.ts';

const TOPIC = 'projects/made-up/topics/events';

function encode(messages: readonly Message[], topic = TOPIC): Buffer {
  // What a buffer held before must not show.
  return encodeRequest(Buffer.alloc(mostBytes(topic, messages), 0xff), topic, messages);
}

function bySdk(messages: readonly Message[], topic = TOPIC): Buffer {
  const { PublishRequest } = protos.google.pubsub.v1;
  const plain = messages.map(({ orderingKey, ...rest }) =>
    orderingKey === '' ? rest : { ...rest, orderingKey },
  );
  return Buffer.from(PublishRequest.encode({ topic, messages: plain }).finish());
}

const message = (size: number, attributes: Record<string, string> = {}, orderingKey = ''): Message => ({
  data: Buffer.alloc(size, size),
  attributes,
  orderingKey,
});

describe('a publish request has the bytes that the SDK would send', () => {
  test.each([
    ['no message', []],
    [
      'attributes and an ordering key',
      [message(1200, { 'event-type': 'labtest.created', 'user-id': 'u1' }, 'u1')],
    ],
    ['an empty body and an empty attribute', [message(0, { 'user-id': '' })]],
    ['texts that are not ASCII', [message(5, { 'user-id': 'ü🍲\0', 'team-id': 'é'.repeat(40) }, '用户')]],
    [
      'texts as long as they may be',
      [message(5, { 'idempotency-key': 'ü'.repeat(512), 'team-id': 'x'.repeat(1024) })],
    ],
    [
      'many messages',
      Array.from({ length: 500 }, (_, n) => message(n * 7, { 'idempotency-key': `made-up-${n}` })),
    ],
    ['a long topic', [message(1)], `projects/made-up/topics/${'t'.repeat(255)}`],
  ] as [string, Message[], string?][])('%s', (_, messages, topic = TOPIC) => {
    expect(encode(messages, topic).equals(bySdk(messages, topic))).toBe(true);
  });

  test('of any length, where one more byte of length begins too', () => {
    const edges = [127, 128, 16_383, 16_384, 2_097_151, 2_097_152];
    for (const edge of edges) {
      for (let size = edge - 12; size <= edge; size += 1) {
        const messages = [message(size), message(3)];
        expect(encode(messages).equals(bySdk(messages)), `${size} bytes`).toBe(true);
      }
    }
  });
});
