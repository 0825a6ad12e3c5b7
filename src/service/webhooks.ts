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

/** A secret of the caller's own is known before the endpoint exists; the service may still answer with another. */
export interface NewWebhook {
  readonly url: string;
  readonly eventTypes?: readonly string[];
  readonly secret?: string;
}

/** Webhooks of one team. */
export class Webhooks extends ManagementGroup {
  list(team: string, options: CallOptions = {}): Promise<List<Webhook>> {
    return this.managedList<Webhook>({ method: 'GET', path: 'webhooks', parameters: placeOf(team) }, options);
  }

  /** The answer carries the signing secret. */
  create(team: string, { url, eventTypes, secret }: NewWebhook, options: CallOptions = {}): Promise<Webhook> {
    if (!/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : '')) {
      throw new ServiceInputError('url', 'must be an http(s) URL');
    }
    const call = { method: 'POST', path: 'webhooks', parameters: placeOf(team) } as const;
    const json = { url, event_types: eventTypes, secret: text('secret', secret) };
    return this.managed({ ...call, json }, options);
  }

  delete(team: string, id: string, options: CallOptions = {}): Promise<Unknown> {
    return this.managed({ method: 'DELETE', path: 'webhook', parameters: placeOf(team, id) }, options);
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
