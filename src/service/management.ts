import type { CallOptions } from './options.ts';
import { oneOf, text, uuid } from './inputs.ts';
import { ServiceInputError } from './errors.ts';
import { ManagementGroup, type List, type Unknown } from './shape.ts';

export interface Team extends Unknown {
  readonly id: string;
}

/** A key's value is shown once, when it is made. */
export interface Key extends Unknown {
  readonly id: string;
  readonly key?: string;
}

/** Teams, brand information and keys. */
export class Management extends ManagementGroup {
  teams(options: CallOptions = {}): Promise<List<Team>> {
    return this.managedList<Team>({ method: 'GET', path: 'teams' }, options);
  }

  /** Needs an Org Management Key. */
  createTeam(name: string, options: CallOptions = {}): Promise<Team> {
    return this.managed({ method: 'POST', path: 'teams', json: { name: text('name', name) } }, options);
  }

  updateTeam(team: string, fields: Unknown, options: CallOptions = {}): Promise<Team> {
    return this.managed({ method: 'PATCH', path: 'team', parameters: teamOf(team), json: fields }, options);
  }

  /** Needs an Org Management Key. */
  deleteTeam(team: string, options: CallOptions = {}): Promise<Unknown> {
    return this.managed({ method: 'DELETE', path: 'team', parameters: teamOf(team) }, options);
  }

  brand(team: string, options: CallOptions = {}): Promise<Unknown> {
    return this.managed({ method: 'GET', path: 'brand', parameters: teamOf(team) }, options);
  }

  setBrand(team: string, fields: Unknown, options: CallOptions = {}): Promise<Unknown> {
    return this.managed({ method: 'PUT', path: 'brand', parameters: teamOf(team), json: fields }, options);
  }

  apiKeys(team: string, options: CallOptions = {}): Promise<List<Key>> {
    return this.managedList<Key>({ method: 'GET', path: 'apiKeys', parameters: teamOf(team) }, options);
  }

  createApiKey(team: string, label: string, options: CallOptions = {}): Promise<Key> {
    const json = { label: text('label', label) };
    return this.managed({ method: 'POST', path: 'apiKeys', parameters: teamOf(team), json }, options);
  }

  deleteApiKey(team: string, key: string, options: CallOptions = {}): Promise<Unknown> {
    const parameters = { ...teamOf(team), key_id: text('key', key) };
    return this.managed({ method: 'DELETE', path: 'apiKey', parameters }, options);
  }

  managementKeys(options: CallOptions = {}): Promise<List<Key>> {
    return this.managedList<Key>({ method: 'GET', path: 'managementKeys' }, options);
  }

  /** The only way to a Team Management Key for two or more teams. */
  createManagementKey(
    { kind, teamIds = [] }: { readonly kind: 'org' | 'team'; readonly teamIds?: readonly string[] },
    options: CallOptions = {},
  ): Promise<Key> {
    oneOf('kind', kind, ['org', 'team']);
    if ((kind === 'team') === (teamIds.length === 0)) {
      const problem = kind === 'team' ? 'must not be empty' : 'must be empty for an org key';
      throw new ServiceInputError('teamIds', problem);
    }
    const team_ids = teamIds.map((team, index) => uuid(`teamIds[${index}]`, team));
    return this.managed({ method: 'POST', path: 'managementKeys', json: { kind, team_ids } }, options);
  }

  deleteManagementKey(key: string, options: CallOptions = {}): Promise<Unknown> {
    const parameters = { key_id: text('key', key) };
    return this.managed({ method: 'DELETE', path: 'managementKey', parameters }, options);
  }
}

function teamOf(team: string): { readonly team_id: string } {
  return { team_id: uuid('team', team) };
}
