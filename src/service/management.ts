import type { CallOptions } from './options.ts';
import { oneOf, text, uuid } from './inputs.ts';
import { ServiceInputError } from './errors.ts';
import { listFrom, objectFrom, type Unknown } from './shape.ts';
import type { Call, Transport } from './transport.ts';

export interface Team extends Unknown {
  readonly id: string;
}

/** A key's value is shown once, when it is made. */
export interface Key extends Unknown {
  readonly id: string;
  readonly key?: string;
}

type List<T> = Unknown & { readonly data: readonly T[] };
type Place = Pick<Call, 'method' | 'path'> & Partial<Pick<Call, 'parameters' | 'json'>>;

/** Teams, brand information and keys, by a Management Key. Paths and payloads are not documented: see DEFAULT_PATHS. */
export class Management {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  teams(options: CallOptions = {}): Promise<List<Team>> {
    return listFrom<List<Team>>(
      this.#transport,
      this.#call({ method: 'GET', path: 'teams' }, options),
      'data',
    );
  }

  /** Needs an Org Management Key. */
  createTeam(name: string, options: CallOptions = {}): Promise<Team> {
    return this.#object({ method: 'POST', path: 'teams', json: { name: text('name', name) } }, options);
  }

  updateTeam(team: string, fields: Unknown, options: CallOptions = {}): Promise<Team> {
    return this.#object({ method: 'PATCH', path: 'team', parameters: teamOf(team), json: fields }, options);
  }

  /** Needs an Org Management Key. */
  deleteTeam(team: string, options: CallOptions = {}): Promise<Unknown> {
    return this.#object({ method: 'DELETE', path: 'team', parameters: teamOf(team) }, options);
  }

  brand(team: string, options: CallOptions = {}): Promise<Unknown> {
    return this.#object({ method: 'GET', path: 'brand', parameters: teamOf(team) }, options);
  }

  setBrand(team: string, fields: Unknown, options: CallOptions = {}): Promise<Unknown> {
    return this.#object({ method: 'PUT', path: 'brand', parameters: teamOf(team), json: fields }, options);
  }

  apiKeys(team: string, options: CallOptions = {}): Promise<List<Key>> {
    const call = this.#call({ method: 'GET', path: 'apiKeys', parameters: teamOf(team) }, options);
    return listFrom<List<Key>>(this.#transport, call, 'data');
  }

  createApiKey(team: string, label: string, options: CallOptions = {}): Promise<Key> {
    const json = { label: text('label', label) };
    return this.#object({ method: 'POST', path: 'apiKeys', parameters: teamOf(team), json }, options);
  }

  deleteApiKey(team: string, key: string, options: CallOptions = {}): Promise<Unknown> {
    const parameters = { ...teamOf(team), key_id: text('key', key) };
    return this.#object({ method: 'DELETE', path: 'apiKey', parameters }, options);
  }

  managementKeys(options: CallOptions = {}): Promise<List<Key>> {
    const call = this.#call({ method: 'GET', path: 'managementKeys' }, options);
    return listFrom<List<Key>>(this.#transport, call, 'data');
  }

  /** The only way to a Team Management Key for two or more teams. */
  createManagementKey(
    { kind, teamIds = [] }: { readonly kind: 'org' | 'team'; readonly teamIds?: readonly string[] },
    options: CallOptions = {},
  ): Promise<Key> {
    oneOf('kind', kind, ['org', 'team']);
    if ((kind === 'team') === (teamIds.length === 0)) {
      throw new ServiceInputError(
        'teamIds',
        kind === 'team' ? 'must not be empty' : 'must be empty for an org key',
      );
    }
    const team_ids = teamIds.map((team, index) => uuid(`teamIds[${index}]`, team));
    return this.#object({ method: 'POST', path: 'managementKeys', json: { kind, team_ids } }, options);
  }

  deleteManagementKey(key: string, options: CallOptions = {}): Promise<Unknown> {
    const parameters = { key_id: text('key', key) };
    return this.#object({ method: 'DELETE', path: 'managementKey', parameters }, options);
  }

  #object<T extends Unknown>(place: Place, options: CallOptions): Promise<T> {
    return objectFrom<T>(this.#transport, this.#call(place, options));
  }

  #call(place: Place, { signal }: CallOptions): Call {
    return { ...place, auth: 'management', idempotent: place.method !== 'POST', signal };
  }
}

function teamOf(team: string): { readonly team_id: string } {
  return { team_id: uuid('team', team) };
}
