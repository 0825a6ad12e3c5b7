import { z } from 'zod';
import { Refusal } from './check.ts';
import { uuidOf, type Name } from './seeded.ts';
import type { IncomingHttpHeaders } from 'node:http';

/** A customer of the service. */
export interface Team {
  readonly id: string;
  name: string;
  readonly createdAt: string;
  brand: Readonly<Record<string, unknown>>;
  readonly features: { parsing: boolean; partialResults: boolean };
  pullPreferences: z.infer<typeof PULL_PREFERENCES>;
}

const DAYS = z.object({ historical_days_to_pull: z.int().min(0).max(3650).optional() });
/** How many days of history a pull brings; for all providers, and for single ones. */
export const PULL_PREFERENCES = DAYS.extend({ provider_specific: z.record(z.string(), DAYS).optional() });

/** The teams of the one organization. */
export class Teams {
  readonly orgId: string;
  readonly #seed: Name;
  readonly #teams = new Map<string, Team>();
  #made = 0;

  constructor(seed: Name) {
    this.#seed = seed;
    this.orgId = uuidOf(seed, 'org');
  }

  /** @param id for the first team, which a receiver can be configured with */
  create(name: string, features: Team['features'], createdAt: string, id?: string): Team {
    this.#made += 1;
    const made = uuidOf(this.#seed, 'team', this.#made);
    const team: Team = { id: id ?? made, name, createdAt, brand: {}, features, pullPreferences: {} };
    this.#teams.set(team.id, team);
    return team;
  }

  /** @throws Refusal 404 */
  get(id: string): Team {
    const team = this.#teams.get(id);
    if (team === undefined) throw new Refusal(404, 'Team not found');
    return team;
  }

  delete(id: string): void {
    this.#teams.delete(id);
  }

  all(): Team[] {
    return [...this.#teams.values()];
  }
}

export interface Key {
  /** `api` uses the operations of one team; `org` and `team` manage the organization, or some of its teams. */
  readonly kind: 'api' | 'org' | 'team';
  readonly id: string;
  readonly value: string;
  readonly teamIds: readonly string[];
  readonly label: string;
}

const PREFIX = { api: 'sk_sandbox', org: 'mk_org', team: 'mk_team' } as const;

export class Keys {
  readonly #seed: Name;
  readonly #keys = new Set<Key>();
  #made = 0;

  constructor(seed: Name) {
    this.#seed = seed;
  }

  create(kind: Key['kind'], teamIds: readonly string[], label: string): Key {
    this.#made += 1;
    const id = uuidOf(this.#seed, 'key', this.#made);
    const secret = uuidOf(this.#seed, 'key value', this.#made).replaceAll('-', '');
    const key = { kind, id, teamIds, label, value: `${PREFIX[kind]}_${secret}` };
    this.#keys.add(key);
    return key;
  }

  ofTeam(teamId: string): Key[] {
    return [...this.#keys].filter(({ kind, teamIds }) => kind === 'api' && teamIds[0] === teamId);
  }

  ofManagement(): Key[] {
    return [...this.#keys].filter(({ kind }) => kind !== 'api');
  }

  delete(key: Key): void {
    this.#keys.delete(key);
  }

  /** The team of a request. @throws Refusal 401 */
  teamOf(headers: IncomingHttpHeaders, header: string): string {
    const key = this.#keyIn(headers, header);
    if (key === undefined) throw new Refusal(401, `Missing API key: send it as ${header}`);
    if (key === null) throw new Refusal(401, 'Invalid API key');
    if (key.kind !== 'api') throw new Refusal(401, 'A Management Key cannot be used as a team API key');
    return key.teamIds[0] ?? '';
  }

  /** The Management Key of a request; the deprecated header is read too. @throws Refusal 401 */
  managementOf(headers: IncomingHttpHeaders): Key {
    const newer = this.#keyIn(headers, 'x-management-key');
    const key = newer === undefined ? this.#keyIn(headers, 'x-service-org-key') : newer;
    if (key === undefined) throw new Refusal(401, 'Missing Management Key: send it as X-Management-Key');
    if (key === null || key.kind === 'api') throw new Refusal(401, 'Invalid Management Key');
    return key;
  }

  /** undefined: the header is missing; null: the key is unknown. */
  #keyIn(headers: IncomingHttpHeaders, header: string): Key | null | undefined {
    const value = headers[header.toLowerCase()];
    if (typeof value !== 'string') return undefined;
    return [...this.#keys].find((key) => key.value === value) ?? null;
  }
}
