import type { CallOptions } from './options.ts';
import { text, uuid } from './inputs.ts';
import { ServiceInputError } from './errors.ts';
import { ManagementGroup, type List, type Unknown } from './shape.ts';

export interface Webhook extends Unknown {
  readonly id: string;
  readonly url: string;
  /** Event type prefixes; empty sends everything. */
  readonly event_types?: readonly string[];
  readonly disabled?: boolean;
  /** In the answer to a creation only. */
  readonly secret?: string;
}

export interface WebhookFields {
  readonly url: string;
  readonly eventTypes?: readonly string[];
  readonly disabled?: boolean;
}

/** A secret of the caller's own is known before the endpoint exists; the service may still answer with another. */
export interface NewWebhook extends WebhookFields {
  readonly secret?: string;
}

/** Webhooks of one team. */
export class Webhooks extends ManagementGroup {
  list(team: string, options: CallOptions = {}): Promise<List<Webhook>> {
    return this.managedList<Webhook>({ method: 'GET', path: 'webhooks', parameters: placeOf(team) }, options);
  }

  /** The answer carries the signing secret. */
  create(team: string, { secret, ...fields }: NewWebhook, options: CallOptions = {}): Promise<Webhook> {
    const call = { method: 'POST', path: 'webhooks', parameters: placeOf(team) } as const;
    return this.managed({ ...call, json: { ...bodyOf(fields), secret: text('secret', secret) } }, options);
  }

  get(team: string, id: string, options: CallOptions = {}): Promise<Webhook> {
    return this.managed({ method: 'GET', path: 'webhook', parameters: placeOf(team, id) }, options);
  }

  update(
    team: string,
    id: string,
    fields: Partial<WebhookFields>,
    options: CallOptions = {},
  ): Promise<Webhook> {
    const call = { method: 'PATCH', path: 'webhook', parameters: placeOf(team, id) } as const;
    return this.managed({ ...call, json: bodyOf(fields) }, options);
  }

  delete(team: string, id: string, options: CallOptions = {}): Promise<Unknown> {
    return this.managed({ method: 'DELETE', path: 'webhook', parameters: placeOf(team, id) }, options);
  }

  /** Replaces the headers that are sent along with each event. */
  setHeaders(
    team: string,
    id: string,
    headers: Readonly<Record<string, string>>,
    options: CallOptions = {},
  ): Promise<Unknown> {
    const call = { method: 'PUT', path: 'webhookHeaders', parameters: placeOf(team, id) } as const;
    return this.managed({ ...call, json: { headers } }, options);
  }

  headers(team: string, id: string, options: CallOptions = {}): Promise<Unknown> {
    return this.managed({ method: 'GET', path: 'webhookHeaders', parameters: placeOf(team, id) }, options);
  }

  secret(team: string, id: string, options: CallOptions = {}): Promise<Unknown> {
    return this.managed({ method: 'GET', path: 'webhookSecret', parameters: placeOf(team, id) }, options);
  }

  /** Without a secret of your own the service makes one. The old one continues signing beside it for a day. */
  updateSecret(team: string, id: string, secret?: string, options: CallOptions = {}): Promise<Unknown> {
    const call = { method: 'POST', path: 'webhookSecret', parameters: placeOf(team, id) } as const;
    return this.managed({ ...call, json: { secret: text('secret', secret) } }, options);
  }
}

function placeOf(team: string, id?: string): Record<string, string> {
  const team_id = uuid('team', team);
  return id === undefined ? { team_id } : { team_id, webhook_id: text('id', id) };
}

function bodyOf({ url, eventTypes, disabled }: Partial<WebhookFields>): object {
  if (url !== undefined && !/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : '')) {
    throw new ServiceInputError('url', 'must be an http(s) URL');
  }
  return { url, event_types: eventTypes, disabled };
}
