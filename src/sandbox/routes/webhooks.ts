import { z } from 'zod';
import type { Endpoint } from '../endpoints.ts';
import type { Key } from '../teams.ts';
import { ofTeam, type Define, type Handle, type Operation } from '../operation.ts';

const url = z.url({ protocol: /^https?$/ });
const CREATE = z.object({
  url,
  event_types: z.array(z.string()).default([]),
  secret: z.string().optional(),
  header_family: z.enum(['svix', 'webhook']).default('svix'),
});
const UPDATE = z.object({
  url: url.optional(),
  event_types: z.array(z.string()).optional(),
  disabled: z.boolean().optional(),
});
/** Signature headers belong to the sender. */
const HEADERS = z.object({
  headers: z.record(
    z.string().regex(/^(?!svix-|webhook-)[\w-]+$/i, 'Not a header that can be set'),
    z.string(),
  ),
});

const ofWebhook: Define<Handle<Key, [Endpoint]>> = (method, path, title, handle) =>
  ofTeam(method, `/webhook/:webhook_id${path}`, title, (call, { id }) =>
    handle(call, call.world.endpoints.get(id, String(call.request.params['webhook_id']))),
  );

export const webhookOperations: readonly Operation[] = [
  ofTeam('get', '/webhook', 'Webhooks of a team', ({ world }, { id }) => ({
    data: world.endpoints.list(id).map(webhookJson),
  })),
  ofTeam('post', '/webhook', 'Create a webhook; the answer carries its secret', ({ world, body }, { id }) => {
    const { event_types: eventTypes, header_family: family, ...rest } = body(CREATE);
    const endpoint = world.endpoints.create(id, { ...rest, eventTypes, family });
    return { ...webhookJson(endpoint), ...secretJson(endpoint) };
  }),
  ofWebhook('get', '', 'One webhook', (_call, endpoint) => webhookJson(endpoint)),
  ofWebhook('patch', '', 'Update a webhook; disabled: false enables it again', ({ body }, endpoint) => {
    const update = body(UPDATE);
    endpoint.url = update.url ?? endpoint.url;
    endpoint.eventTypes = update.event_types ?? endpoint.eventTypes;
    endpoint.disabled = update.disabled ?? endpoint.disabled;
    if (update.disabled === false) endpoint.failingSince = null;
    return webhookJson(endpoint);
  }),
  ofWebhook('delete', '', 'Delete a webhook and what waits for it', ({ world }, endpoint) => {
    world.endpoints.delete(endpoint);
    return { success: true };
  }),
  ofWebhook('get', '/headers', 'Headers that a webhook sends along', (_call, { headers }) => ({ headers })),
  ofWebhook('put', '/headers', 'Replace the headers that a webhook sends along', ({ body }, endpoint) => {
    endpoint.headers = body(HEADERS).headers;
    return { headers: endpoint.headers };
  }),
  ofWebhook('get', '/secret', 'The signing secret of a webhook', (_call, endpoint) => secretJson(endpoint)),
  ofWebhook(
    'post',
    '/secret',
    'Replace the signing secret; the old one signs along for a day',
    ({ world, body }, endpoint) => {
      world.endpoints.rotate(endpoint, body(z.object({ secret: z.string().optional() })).secret);
      return secretJson(endpoint);
    },
  ),
];

function webhookJson({ id, url: address, eventTypes, disabled }: Endpoint): object {
  return { id, url: address, event_types: eventTypes, disabled };
}

function secretJson({ secrets }: Endpoint): object {
  return { secret: secrets[0] };
}
