import { z } from 'zod';
import { check } from '../check.ts';
import type { Endpoint } from '../endpoints.ts';
import type { ManagementKey } from '../keys.ts';
import type { Call, ManagementOperation } from '../operation.ts';
import { teamOf } from './management.ts';

const URL_FIELD = z.url({ protocol: /^https?$/ });
const CREATE = z.object({
  url: URL_FIELD,
  event_types: z.array(z.string()).default([]),
  secret: z.string().optional(),
  header_family: z.enum(['svix', 'webhook']).default('svix'),
});
const UPDATE = z.object({
  url: URL_FIELD.optional(),
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
const COLLECTION = '/management/v1/team/:team_id/webhook';
const ONE = `${COLLECTION}/:webhook_id`;

export const webhookOperations: readonly ManagementOperation[] = [
  {
    method: 'get',
    path: COLLECTION,
    auth: 'management',
    title: 'Webhooks of a team',
    handle: (call) => ({ json: { data: call.world.endpoints.list(teamOf(call).id).map(webhookJson) } }),
  },
  {
    method: 'post',
    path: COLLECTION,
    auth: 'management',
    title: 'Create a webhook; the answer carries its secret',
    handle: (call) => {
      const team = teamOf(call);
      const { url, event_types, secret, header_family } = check(CREATE, call.request.body, 'body');
      const made = { url, eventTypes: event_types, secret, family: header_family };
      const endpoint = call.world.endpoints.create(team.id, made);
      return { json: { ...webhookJson(endpoint), secret: endpoint.secrets[0] } };
    },
  },
  {
    method: 'get',
    path: ONE,
    auth: 'management',
    title: 'One webhook',
    handle: (call) => ({ json: webhookJson(endpointOf(call)) }),
  },
  {
    method: 'patch',
    path: ONE,
    auth: 'management',
    title: 'Update a webhook; disabled: false enables it again',
    handle: (call) => {
      const endpoint = endpointOf(call);
      const { url, event_types, disabled } = check(UPDATE, call.request.body, 'body');
      endpoint.url = url ?? endpoint.url;
      endpoint.eventTypes = event_types ?? endpoint.eventTypes;
      endpoint.disabled = disabled ?? endpoint.disabled;
      if (disabled === false) endpoint.failingSince = null;
      call.world.endpoints.save(endpoint);
      return { json: webhookJson(endpoint) };
    },
  },
  {
    method: 'delete',
    path: ONE,
    auth: 'management',
    title: 'Delete a webhook; what waits for it is let go',
    handle: (call) => {
      call.world.endpoints.delete(endpointOf(call));
      return { json: { success: true } };
    },
  },
  {
    method: 'get',
    path: `${ONE}/headers`,
    auth: 'management',
    title: 'Headers that a webhook sends along',
    handle: (call) => ({ json: { headers: endpointOf(call).headers } }),
  },
  {
    method: 'put',
    path: `${ONE}/headers`,
    auth: 'management',
    title: 'Replace the headers that a webhook sends along',
    handle: (call) => {
      const endpoint = endpointOf(call);
      endpoint.headers = check(HEADERS, call.request.body, 'body').headers;
      call.world.endpoints.save(endpoint);
      return { json: { headers: endpoint.headers } };
    },
  },
  {
    method: 'get',
    path: `${ONE}/secret`,
    auth: 'management',
    title: 'The signing secret of a webhook',
    handle: (call) => ({ json: { secret: endpointOf(call).secrets[0] } }),
  },
  {
    method: 'post',
    path: `${ONE}/secret`,
    auth: 'management',
    title: 'Replace the signing secret; the old one signs along for a day',
    handle: (call) => {
      const endpoint = endpointOf(call);
      const { secret } = check(z.object({ secret: z.string().optional() }), call.request.body, 'body');
      call.world.endpoints.rotate(endpoint, secret);
      return { json: { secret: endpoint.secrets[0] } };
    },
  },
];

function endpointOf(call: Call<ManagementKey>): Endpoint {
  const { webhook_id } = check(z.object({ webhook_id: z.string() }), call.request.params, 'path');
  return call.world.endpoints.get(teamOf(call).id, webhook_id);
}

function webhookJson({ id, url, eventTypes, disabled }: Endpoint): object {
  return { id, url, event_types: eventTypes, disabled };
}
