import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { writeConfig } from '../support/millrace.ts';
import { SECRET } from '../support/signed-events.ts';
import type { Target, Targets } from './targets.ts';

export const TYPES = ['a.one', 'a.two', 'b.one', 'c.one'] as const;
type Type = (typeof TYPES)[number];
const TEAM = '00000000-0000-4000-8000-000000000001';
/** The sinks by what they are: an archive may have changed its name, and keeps its folder. */
export const PLACES = ['x', 'y', 'z', 'archive', 'labs'] as const;
export type Place = (typeof PLACES)[number];
const HTTP = ['x', 'y', 'z'] as const satisfies readonly Target[];

/** One config: where each type goes. */
export type Version = Readonly<Record<Type, readonly Place[]>>;

export interface Posted {
  readonly type: Type;
  readonly user: string;
  readonly isFit: boolean;
  /** Index of the first of the configs that may have been in force when it was accepted. */
  readonly from: number;
  /** The same of the last; null until it is acknowledged. */
  to: number | null;
  isUnderWay: boolean;
}

/** Plain lists of what was configured and posted. */
export class World {
  readonly folder: string;
  readonly random: () => number;
  readonly versions: Version[] = [];
  readonly posted = new Map<string, Posted>();
  readonly bodies = new Map<string, Buffer>();
  readonly erased = new Set<string>();
  users = Array.from({ length: 8 }, () => randomUUID() as string);
  /** Configs from this one on may be in force. */
  certain = 0;
  #archive = 'archive';

  constructor(folder: string, random: () => number) {
    this.folder = folder;
    this.random = random;
  }

  chance(share: number): boolean {
    return this.random() < share;
  }

  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.random() * from.length)]!;
  }

  /** A new event, one in thirty of them without its user. */
  event(): string {
    const id = `made-up-${randomUUID()}`;
    const [type, user, isFit] = [this.pick(TYPES), this.pick(this.users), !this.chance(1 / 30)];
    this.posted.set(id, { type, user, isFit, from: this.certain, to: null, isUnderWay: false });
    const data = { text: 'x'.repeat(this.random() * 900) };
    const whose = { team_id: TEAM, ...(isFit ? { user_id: user } : {}), client_user_id: `of ${user}` };
    this.bodies.set(id, Buffer.from(JSON.stringify({ event_type: type, data, ...whose })));
    return id;
  }

  /** Writes the next config. @param all whether everything goes everywhere, and nothing is renamed */
  configure(targets: Targets, all = false): string {
    if (!all && this.chance(0.15)) this.#archive = this.#other;
    const open = HTTP.filter(() => all || this.chance(0.8));
    const to = (): Place[] => {
      const own: Place[] = open.filter(() => all || this.chance(0.5));
      return [...own, ...(all || this.chance(0.8) ? ['archive' as const] : []), 'labs'];
    };
    const version = Object.fromEntries(TYPES.map((type) => [type, to()])) as Record<Type, Place[]>;
    this.versions.push(version);
    const named = (place: Place): string => (place === 'archive' ? this.#archive : place);
    const rotate = { every: this.pick(['1s', '5s', '1h']) };
    const http = (name: Target): object => {
      const own = { secrets: [SECRET], privateNetworks: ['127.0.0.0/8'], timeout: '2s' };
      return { type: 'http', url: targets.url(name), ...own };
    };
    return writeConfig(this.folder, {
      sinks: {
        [this.#archive]: { type: 'files', path: this.at('archive'), rotate, continues: this.#other },
        labs: { type: 'files', path: this.at('labs'), rotate },
        ...Object.fromEntries(open.map((name) => [name, http(name)])),
        ...(all ? { replayed: http('replayed') } : {}),
      },
      routes: TYPES.map((type) => ({ match: type, to: version[type].map(named) })),
      delivery: { retryInitial: '20ms', retryMax: '300ms' },
      shutdown: { deadline: '2s' },
    });
  }

  at(name: string): string {
    return join(this.folder, name);
  }

  /** Where an event is due, whichever of the configs was in force that may have been. */
  due({ type, from, to }: Posted): readonly Place[] {
    const may = this.versions.slice(from, (to ?? from) + 1);
    return PLACES.filter((place) => may.every((version) => version[type].includes(place)));
  }

  get #other(): string {
    return this.#archive === 'archive' ? 'kept' : 'archive';
  }
}
