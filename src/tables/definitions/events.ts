import { json, text, timestamp, type TableDefinition } from '../definition.ts';
import { CLIENT_USER, TEAM, USER } from './common.ts';

export const EVENTS: TableDefinition = {
  name: 'events',
  description:
    'Webhook events as the archive keeps them, one a row. A replayed event has the id of the first.',
  key: ['id'],
  newest: 'received_at',
  events: { types: [''], member: null },
  columns: [
    text('id', 'delivery id', { required: true }),
    text('source', 'where it came in'),
    timestamp('received_at', 'when it came in'),
    text('event_type', 'type, open list'),
    TEAM,
    USER,
    CLIENT_USER,
    json('headers', 'signature headers'),
    json('event', 'the body; null when it is no JSON object'),
    text('body_base64', 'exact bytes of the body where `event` cannot have them'),
  ],
};
