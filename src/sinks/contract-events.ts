import type { JournalEvent } from '../core/event.ts';

/** 2026-11-21T03:15:02.123Z */
const RECEIVED_AT = 1_795_230_902_123;

/** An event as the receiver makes it; `seq` makes its id. */
export function contractEvent(seq: number, changes: Partial<JournalEvent> = {}): JournalEvent {
  const user = `user-${seq % 7}`;
  const body = JSON.stringify({
    event_type: 'daily.data.meal.created',
    data: { id: `meal-${seq}` },
    team_id: 'team-1',
    user_id: user,
    client_user_id: 'customer-patient-123',
  });
  return {
    seq,
    id: `msg_${seq}`,
    source: 'webhooks',
    receivedAt: RECEIVED_AT + seq,
    type: 'daily.data.meal.created',
    team: 'team-1',
    user,
    clientUser: 'customer-patient-123',
    headers: { 'svix-id': `msg_${seq}`, 'svix-timestamp': '1795230902', 'svix-signature': 'v1,AAAA' },
    handling: {},
    body: Buffer.from(body),
    ...changes,
  };
}

/** JSON objects in UTF-8 that parsing and serialising would change, or that have line breaks. */
export function awkwardBodies(): Buffer[] {
  return [
    '{"a":1,"a":2}',
    '{"__proto__":{"polluted":true}}',
    '{"text":"\\ud800 lone, \\udc00 lone, \\ud83c\\udf72 paired, \\\\ud800 no escape"}',
    '{"big":9007199254740993,"huge":1E400,"minus":-0,"money":1.10}',
    '{"2":"b","1":"a"}',
    '{\r\n  "pretty": [\n    1,\r\n    2\n  ]\r\n}\n',
    ' \t{"padded":true} \t',
    '{"quote":"\\"},\\"event\\":{}","body_base64":"AAAA"}',
    '{"last":"text"}',
    '{"data":"},\\"body_base64\\":\\""}',
    '{"separators":"\u2028\u2029","emoji":"🍲","nul":"\\u0000"}',
    `{"deep":${'['.repeat(500)}${']'.repeat(500)}}`,
    `{"long":"${'x'.repeat(100_000)}"}`,
    '{}',
  ].map((text) => Buffer.from(text));
}
