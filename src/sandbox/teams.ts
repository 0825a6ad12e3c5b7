import { Refusal } from './refusal.ts';
import { uuidOf, type Name } from './seeded.ts';
import type { Shelf, State } from './state.ts';

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
  readonly #state: State;
  readonly #teams: Shelf<Team>;

  constructor(seed: Name, state: State) {
    this.#seed = seed;
    this.#state = state;
    this.#teams = state.shelf('teams');
    this.orgId = uuidOf(seed, 'org');
  }

  /** The team that was there first. An earlier run may have deleted it: then nobody else knows it. */
  first(id: string, features: Team['features'], createdAt: string): Team {
    const name = 'made-up team';
    if (this.#state.time === null) return this.create(name, features, createdAt, id);
    return this.#teams.get(id) ?? { id, name, createdAt, brand: {}, features };
  }

  /** @param id given for the first team only, so that a receiver can be told to expect it */
  create(name: string, features: Team['features'], createdAt: string, id?: string): Team {
    const made = uuidOf(this.#seed, 'team', this.#state.next('team'));
    const team: Team = { id: id ?? made, name, createdAt, brand: {}, features };
    this.save(team);
    return team;
  }

  /** To be called after a change. */
  save(team: Team): void {
    this.#teams.put(team.id, team);
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
    return this.#teams.all();
  }
}
