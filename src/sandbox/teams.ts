import { Refusal } from './refusal.ts';
import { uuidOf, type Name } from './seeded.ts';

/** A customer of the service. */
export interface Team {
  readonly id: string;
  name: string;
  readonly createdAt: string;
  brand: Readonly<Record<string, unknown>>;
  /** What the service has enabled for the team. */
  readonly features: { parsing: boolean; partialResults: boolean };
}

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

  /** @param id given for the first team only, so that a receiver can be told to expect it */
  create(name: string, features: Team['features'], createdAt: string, id?: string): Team {
    this.#made += 1;
    const team: Team = {
      id: id ?? uuidOf(this.#seed, 'team', this.#made),
      name,
      createdAt,
      brand: {},
      features,
    };
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
