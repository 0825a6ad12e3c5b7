import { table } from './definition.ts';

export const EVENTS = table({
  name: 'events',
  description:
    'Webhook events as the archive keeps them, one a row. A replayed event has the id of the first.',
  key: ['id'],
  newest: 'received_at',
  columns: [
    { name: 'id', type: 'text', from: 'id', required: true, description: 'delivery id' },
    { name: 'source', type: 'text', from: 'source', description: 'where it came in' },
    { name: 'received_at', type: 'timestamp', from: 'received_at', description: 'when it came in' },
    { name: 'event_type', type: 'text', from: 'event_type', description: 'type, open list' },
    { name: 'team_id', type: 'text', from: 'team_id', description: 'team, UUID' },
    { name: 'user_id', type: 'text', from: 'user_id', description: 'user, UUID' },
    {
      name: 'client_user_id',
      type: 'text',
      from: 'client_user_id',
      description: "the team's id of the user",
    },
    { name: 'headers', type: 'json', from: 'headers', description: 'signature headers' },
    { name: 'event', type: 'json', from: 'event', description: 'the body; null when it is no JSON object' },
    {
      name: 'body_base64',
      type: 'text',
      from: 'body_base64',
      description: 'exact bytes of the body where `event` cannot have them',
    },
  ],
});
