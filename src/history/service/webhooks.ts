import { text, uuid } from './inputs.ts';
import { ServiceInputError } from './errors.ts';
import { Group, type List, type Unknown } from './shape.ts';
import type { Call } from './transport.ts';

interface Team extends Unknown {
  readonly id: string;
}

export interface Webhook extends Unknown {
  readonly id: string;
  readonly url: string;
  /** Event type prefixes; empty sends everything. */
  readonly event_types?: readonly string[];
  readonly disabled?: boolean;
  /** In the answer to a creation only. */
  readonly secret?: string;
}

interface NewWebhook {
  readonly url: string;
  readonly eventTypes: readonly string[];
  /** The service may answer with another. */
  readonly secret: string;
}

/** The teams that a Management Key reaches, and their webhooks. Their paths and payloads are not documented. */
export class Webhooks extends Group {
  teams(): Promise<List<Team>> {
    return this.#list<Team>({ method: 'GET', path: 'teams' });
  }

  list(team: string): Promise<List<Webhook>> {
    return this.#list<Webhook>({ method: 'GET', path: 'webhooks', parameters: parametersOf(team) });
  }

  /** The answer has the signing secret. */
  create(team: string, { url, eventTypes, secret }: NewWebhook): Promise<Webhook> {
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
      throw new ServiceInputError('url', 'must be an http(s) URL');
    const json = { url, event_types: eventTypes, secret: text('secret', secret) };
    return this.#ask({ method: 'POST', path: 'webhooks', parameters: parametersOf(team), json });
  }

  delete(team: string, id: string): Promise<Unknown> {
    return this.#ask({ method: 'DELETE', path: 'webhook', parameters: parametersOf(team, id) });
  }

  secret(team: string, id: string): Promise<Unknown> {
    return this.#ask({ method: 'GET', path: 'webhookSecret', parameters: parametersOf(team, id) });
  }

  /** The old secret signs as well for a day. */
  updateSecret(team: string, id: string, secret: string): Promise<Unknown> {
    const json = { secret: text('secret', secret) };
    return this.#ask({ method: 'POST', path: 'webhookSecret', parameters: parametersOf(team, id), json });
  }

  #ask<T = Unknown>(call: Call): Promise<T> {
    return this.readObject<T>({ ...call, auth: 'management' });
  }

  #list<T>(call: Call): Promise<List<T>> {
    return this.readList<List<T>>({ ...call, auth: 'management' }, 'data');
  }
}

function parametersOf(team: string, id?: string): Record<string, string> {
  const team_id = uuid('team', team);
  return id === undefined ? { team_id } : { team_id, webhook_id: text('id', id) };
}
