import { isDeepStrictEqual } from 'node:util';
import { messageOf } from './core/errors.ts';
import type { Route } from './core/route.ts';
import type { CheckpointStore } from './core/source.ts';
import type { SinkLog } from './core/sink.ts';
import type { Dispatcher } from './deliver/dispatcher.ts';
import type { RoutesFor } from './deliver/earlier-routes.ts';
import { compileRoutes } from './route/table.ts';

/** A change of routes that events in the journal have still to be told about. */
interface PastChange {
  readonly upTo: number;
  readonly before: readonly Route[];
  readonly loaded: readonly (readonly [sink: string, seq: number])[];
}

interface Saved {
  readonly routes: readonly Route[] | null;
  readonly changes: readonly PastChange[];
  /** The newest changes, also those that no event waits for: for whoever asks later where an event was to go. */
  readonly past?: readonly Pick<PastChange, 'upTo' | 'before'>[];
}

interface Parts {
  readonly checkpoints: CheckpointStore;
  readonly dispatcher: Dispatcher;
  readonly log: SinkLog;
}

const KEY = 'routes';
/** Changes that are remembered. */
const PAST = 50;
const NOTHING: Saved = { routes: null, changes: [] };

/**
 * The routes that what waits in the journal was accepted under, kept in the journal itself: a config edited while nothing
 * runs is then a change like any reload, and no event falls in between the old table and the new.
 */
export class RouteHistory {
  readonly #checkpoints: CheckpointStore;
  readonly #dispatcher: Dispatcher;
  readonly #log: SinkLog;
  #saved: Saved;

  private constructor({ checkpoints, dispatcher, log }: Parts, saved: Saved) {
    this.#checkpoints = checkpoints;
    this.#dispatcher = dispatcher;
    this.#log = log;
    this.#saved = saved;
  }

  /** Tells the dispatcher, whose sinks are placed but have loaded nothing, of all changes up to `routes`; they then begin. */
  static async resume(parts: Parts, routes: readonly Route[], lastSeq: number): Promise<RouteHistory> {
    const { checkpoints, dispatcher } = parts;
    const text = await checkpoints.load(KEY);
    const saved = text === null ? NOTHING : (JSON.parse(text) as Saved);
    const history = new RouteHistory(parts, saved);
    for (const { upTo, before, loaded } of saved.changes)
      dispatcher.rerouted(routesFor(before), upTo, new Map(loaded));
    await history.changed(routes, lastSeq);
    dispatcher.begin();
    return history;
  }

  /** To be told, at once, that `routes` apply from now on. Resolves when a restart would know it too. */
  async changed(routes: readonly Route[], lastSeq: number): Promise<void> {
    const { routes: before, changes, past = [] } = this.#saved;
    let known = past;
    const settled = this.#dispatcher.slowestCursor();
    let waiting = changes.filter(({ upTo }) => upTo > settled);
    if (before !== null && !isDeepStrictEqual(before, routes)) {
      const loaded = this.#dispatcher.positions();
      this.#dispatcher.rerouted(routesFor(before), lastSeq, loaded);
      known = [...past, { upTo: lastSeq, before }].slice(-PAST);
      if (lastSeq > settled) waiting = [...waiting, { upTo: lastSeq, before, loaded: [...loaded] }];
    }
    const saved = { routes, changes: waiting, past: known };
    if (isDeepStrictEqual(saved, { past: [], ...this.#saved })) return;
    this.#saved = saved;
    // A full disk must not stop what empties it.
    await this.#checkpoints.save(KEY, JSON.stringify(saved)).catch((error: unknown) => {
      this.#log.warn({ error: messageOf(error) }, 'routes could not be noted in the journal');
    });
  }
}

function routesFor(routes: readonly Route[]): RoutesFor {
  const table = compileRoutes(routes);
  return (type) => table.routesFor(type).targets;
}
