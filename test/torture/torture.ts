import { resolveText } from '../../src/config/load.ts';
import type { ResolvedConfig } from '../../src/config/config.ts';
import { seededRandom } from '../support/random.ts';
import { fatesAt } from './choose.ts';
import { Disk } from './disk.ts';
import type { Fate } from './fates.ts';
import type { Sent } from './history.ts';
import { TABLES } from './history.ts';
import { faultsIn, tracesIn } from './oracle.ts';
import type { Recording } from './recording.ts';
import { recover } from './recover.ts';
import { layOut, treeOf } from './tree.ts';

/** A state that was tried, by its crash point and its number among those of that point. */
export interface Tried {
  readonly state: string;
  readonly disk: Disk;
  readonly fate: Fate;
  readonly faults: readonly string[];
}

export interface TryOptions {
  /** States at each crash point, at most; those that were tried at one before it are among them. */
  readonly perPoint: (point: number) => number;
  /** Only this state. */
  readonly only?: string | undefined;
  /** The first crash point. */
  readonly from?: number | undefined;
  readonly seed: number;
}

/** What is wrong with it, in one word. */
export function kindOf(faults: readonly string[]): string {
  return faults[0]?.split(/[:\d]/)[0] ?? '';
}

/** Tries states of a recording, crash point by crash point; equal states that owe the same are tried once. */
export class Tries {
  readonly #recording: Recording;
  readonly #configs = new Map<number, ResolvedConfig>();
  readonly #seen = new Set<string>();
  readonly #digests = new Set<string>();
  points = 0;
  recoveries = 0;

  constructor(recording: Recording) {
    this.#recording = recording;
  }

  /** Different states of the disk. */
  get states(): number {
    return this.#digests.size;
  }

  /** Every state that is tried, as it has been. */
  async *run({ perPoint, only, from = 0, seed }: TryOptions): AsyncGenerator<Tried> {
    const { ops, said } = this.#recording;
    const disk = new Disk();
    const [wanted] = only === undefined ? [null] : only.split('.').map(Number);
    for (let point = 0; point <= ops.length; point += 1) {
      const op = ops[point - 1];
      if (op !== undefined) disk.apply(op, point - 1);
      if (point < from) continue;
      this.points += 1;
      // Then a crash leaves nothing new, and nothing more is owed.
      const isIdle = op?.kind === 'close' || op?.kind === 'sync begins';
      if (isIdle && !said.some(({ at }) => at === point - 1)) continue;
      if (wanted !== null && wanted !== point) continue;
      let number = 0;
      for (const fate of fatesAt(disk, seededRandom(seed * 1_000_003 + point))) {
        const state = `${point}.${number}`;
        const faults = only === undefined || only === state ? await this.#try(disk, fate, point) : null;
        if (faults !== null) yield { state, disk, fate, faults };
        number += 1;
        if (number >= perPoint(point)) break;
      }
    }
  }

  /** @returns null when it has been tried before */
  async #try(disk: Disk, fate: Fate, point: number): Promise<readonly string[] | null> {
    const tree = treeOf(disk, fate);
    const said = this.#recording.said.filter(({ at }) => at < point);
    const key = `${tree.digest} ${said.length}`;
    this.#digests.add(tree.digest);
    if (this.#seen.has(key)) return null;
    this.#seen.add(key);
    this.recoveries += 1;
    return this.check(disk, fate, point, tree);
  }

  /** Lays a state out, starts on it, and looks at what has become of it. */
  async check(disk: Disk, fate: Fate, point: number, tree = treeOf(disk, fate)): Promise<readonly string[]> {
    const { history, said } = this.#recording;
    const { root, events: sent, erasures } = history;
    layOut(root, tree);
    const promised = said.filter(({ at }) => at < point);
    const acknowledged = promised.flatMap((one) => one.acknowledged ?? []);
    const erased = promised.flatMap((one) => one.erased ?? []);
    const traces = tracesIn(tree.files, erased);
    if (traces.length > 0) return traces;
    const { config, table } = await this.#configAt(point);
    const fresh = [freshEvent(table)];
    try {
      const { answers, quarantined } = await recover(config, Date.now(), acknowledged, fresh);
      return faultsIn(root, { acknowledged, erasures, erased, sent, fresh, answers }, quarantined);
    } catch (error) {
      return [`it does not start: ${(error as Error).stack}`];
    }
  }

  async #configAt(point: number): Promise<{ config: ResolvedConfig; table: number }> {
    const { configs } = this.#recording;
    const { at, table, text } = configs.findLast((config) => config.at <= point) ?? configs[0]!;
    let config = this.#configs.get(at);
    if (config === undefined) {
      config = await resolveText(text, { file: 'config.json', env: {} });
      this.#configs.set(at, config);
    }
    return { config, table };
  }
}

/** One that goes to all sinks. */
function freshEvent(table: number): Sent {
  const type = 'labtest.update';
  const user = '6b0e9a52-2222-4000-8000-000000000000';
  const about = { event_type: type, user_id: user, client_user_id: null };
  const body = JSON.stringify({ ...about, team_id: '6b0e9a52-0000-4000-8000-000000000001' });
  const at = table % TABLES.length;
  return { id: 'fresh', body, type, user, valid: true, first: at, last: at, acknowledged: true };
}
