import type { CallOptions } from './options.ts';
import { text, uuid } from './inputs.ts';
import { ServiceInputError } from './errors.ts';
import { listFrom, objectFrom, type Unknown } from './shape.ts';
import type { Call, Transport } from './transport.ts';

export interface Webhook extends Unknown {
  readonly id: string;
  readonly url: string;
  /** Event type prefixes; empty sends everything. */
  readonly event_types?: readonly string[];
  readonly disabled?: boolean;
}

export interface WebhookFields {
  readonly url: string;
  readonly eventTypes?: readonly string[];
  readonly disabled?: boolean;
}

type Place = Pick<Call, 'method' | 'path'> & { readonly id?: string; readonly json?: object };
type List = Unknown & { readonly data: readonly Webhook[] };

/** Webhooks of one team, by a Management Key. Paths and payloads are not documented: see DEFAULT_PATHS. */
export class Webhooks {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(team: string, options: CallOptions = {}): Promise<List> {
    return listFrom<List>(
      this.#transport,
      callOf(team, { method: 'GET', path: 'webhooks' }, options),
      'data',
    );
  }

  /** The answer carries the signing secret. */
  create(team: string, fields: WebhookFields, options: CallOptions = {}): Promise<Webhook> {
    return this.#object(team, { method: 'POST', path: 'webhooks', json: bodyOf(fields) }, options);
  }

  get(team: string, id: string, options: CallOptions = {}): Promise<Webhook> {
    return this.#object(team, { method: 'GET', path: 'webhook', id }, options);
  }

  update(
    team: string,
    id: string,
    fields: Partial<WebhookFields>,
    options: CallOptions = {},
  ): Promise<Webhook> {
    return this.#object(team, { method: 'PATCH', path: 'webhook', id, json: bodyOf(fields) }, options);
  }

  delete(team: string, id: string, options: CallOptions = {}): Promise<Unknown> {
    return this.#object(team, { method: 'DELETE', path: 'webhook', id }, options);
  }

  /** Replaces the headers that are sent along with each event. */
  setHeaders(
    team: string,
    id: string,
    headers: Readonly<Record<string, string>>,
    options: CallOptions = {},
  ): Promise<Unknown> {
    return this.#object(team, { method: 'PUT', path: 'webhookHeaders', id, json: { headers } }, options);
  }

  headers(team: string, id: string, options: CallOptions = {}): Promise<Unknown> {
    return this.#object(team, { method: 'GET', path: 'webhookHeaders', id }, options);
  }

  secret(team: string, id: string, options: CallOptions = {}): Promise<Unknown> {
    return this.#object(team, { method: 'GET', path: 'webhookSecret', id }, options);
  }

  /** Without a secret of your own the service makes one. The old one goes on signing beside it for a day. */
  updateSecret(team: string, id: string, secret?: string, options: CallOptions = {}): Promise<Unknown> {
    const json = secret === undefined ? {} : { secret: text('secret', secret) };
    return this.#object(team, { method: 'POST', path: 'webhookSecret', id, json }, options);
  }

  #object<T extends Unknown>(team: string, place: Place, options: CallOptions): Promise<T> {
    return objectFrom<T>(this.#transport, callOf(team, place, options));
  }
}

function callOf(team: string, { id, ...place }: Place, { signal }: CallOptions): Call {
  const parameters = {
    team_id: uuid('team', team),
    ...(id === undefined ? {} : { webhook_id: text('id', id) }),
  };
  return { ...place, parameters, auth: 'management', idempotent: place.method !== 'POST', signal };
}

function bodyOf({ url, eventTypes, disabled }: Partial<WebhookFields>): object {
  if (url !== undefined && !/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : '')) {
    throw new ServiceInputError('url', 'must be an http(s) URL');
  }
  return {
    ...(url === undefined ? {} : { url }),
    ...(eventTypes === undefined ? {} : { event_types: eventTypes }),
    ...(disabled === undefined ? {} : { disabled }),
  };
}
