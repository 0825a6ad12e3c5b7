import type { Ahead, EventLog } from '../core/journal.ts';
import type { Target } from '../core/route.ts';
import { decodeStretches, encodeStretches, isWithin, type Stretch } from '../lib/stretches.ts';
import type { AcceptedRoutes, Addressed } from './routes/accepted.ts';
import type { Lane } from './lane.ts';

/** The routes of the moment when they are asked for; undefined where they never change. */
export type RoutesOfNow = (() => AcceptedRoutes) | undefined;

/** Events that were loaded under the same routes: those after the chapter before, up to a seq. */
export interface Chapter {
  readonly upTo: number;
  /** Name of the routes. */
  readonly routes: string;
  /** Destinations that have not all of it yet: from where on, and what is settled behind that, as stretches in words. */
  readonly lanes: readonly (readonly [destination: string | null, floor: number, settled: string])[];
}

/** Characters of one lane, and chapters: what has no room is delivered again. */
const MOST = 32_768;
const MOST_CHAPTERS = 16;

export function chapterOf(
  after: number,
  upTo: number,
  routes: string,
  lanes: Iterable<readonly [string | null, Lane]>,
): Chapter {
  const open = Array.from(
    lanes,
    ([destination, lane]) => [destination, lane.settledIn(after, upTo)] as const,
  );
  return {
    upTo,
    routes,
    lanes: open.flatMap(([destination, found]) =>
      found === null
        ? []
        : [[destination, found.floor, encodeStretches(found.floor, found.stretches, MOST)] as const],
    ),
  };
}

export function noteOf(chapters: readonly Chapter[]): string | null {
  return chapters.length === 0 ? null : JSON.stringify(chapters.slice(0, MOST_CHAPTERS));
}

interface ReadChapter extends Chapter {
  readonly settled: ReadonlyMap<
    string | null,
    { readonly floor: number; readonly stretches: readonly Stretch[] }
  >;
}

/** What a sink had settled ahead of its cursor before the feed began: it is not sent again. */
export class SettledAhead {
  readonly #sink: string;
  readonly #routes: RoutesOfNow;
  readonly #chapters: readonly ReadChapter[];
  readonly #died = new Map<number, (string | null)[]>();
  /** Nothing is known of what comes after it. */
  readonly last: number;

  constructor(sink: string, { note, died }: Ahead, routes: RoutesOfNow) {
    this.#sink = sink;
    this.#routes = routes;
    this.#chapters = note === null ? [] : (JSON.parse(note) as Chapter[]).map(read);
    for (const [destination, seq] of died) {
      const known = this.#died.get(seq);
      if (known === undefined) this.#died.set(seq, [destination]);
      else known.push(destination);
    }
    let last = this.#chapters.at(-1)?.upTo ?? 0;
    // One by one: as arguments of a call, a hundred thousand are too many.
    for (const seq of this.#died.keys()) last = Math.max(last, seq);
    this.last = last;
  }

  /** Chapters that go on after a seq. */
  after(seq: number): readonly Chapter[] {
    return this.#chapters.flatMap(({ upTo, routes, lanes }) => (upTo > seq ? [{ upTo, routes, lanes }] : []));
  }

  /**
   * Those of an event's targets at the sink that it has still to have. What waits for one destination when a route names another
   * goes to that one.
   * @param own by the routes of now
   */
  open(event: Addressed, own: readonly Target[]): readonly Target[] {
    const { seq } = event;
    const chapter = this.#chapters.find(({ upTo }) => upTo >= seq);
    const died = this.#died.get(seq);
    const hasDied = ({ destination }: Target): boolean => died?.includes(destination) === true;
    // By which routes it was loaded that is behind the last chapter, nobody has noted.
    if (chapter === undefined) return died === undefined ? own : own.filter((target) => !hasDied(target));
    const isSettled = (target: Target): boolean =>
      hasDied(target) || isSettledIn(chapter, target.destination, seq);
    const now = this.#routes?.();
    if (chapter.routes === nameOf(now)) return own.filter((target) => !isSettled(target));
    const before = now
      ?.asOf(chapter.routes)
      ?.targetsOf(event)
      .filter(({ sink }) => sink === this.#sink);
    // That it was for the sink is decided once and for good: routes that say otherwise are not those of then.
    if (before === undefined || before.length === 0) {
      const isOpen = chapter.lanes.some(([destination]) => !isSettledIn(chapter, destination, seq));
      return isOpen ? own.filter((target) => !hasDied(target)) : NONE;
    }
    if (before.every(isSettled)) return NONE;
    // A new destination has it as well, or it would be noted as settled there, and no route need name those it waits for by then.
    return own.filter((target) => (has(before, target) ? !isSettled(target) : !hasDied(target)));
  }
}

/** What a log remembers of a sink; null for nothing. */
export async function settledAheadOf(
  sink: string,
  { journal, routes }: { readonly journal: Pick<EventLog, 'ahead'>; readonly routes?: RoutesOfNow },
): Promise<SettledAhead | null> {
  const ahead = await journal.ahead?.(sink);
  if (ahead === undefined || (ahead.note === null && ahead.died.length === 0)) return null;
  return new SettledAhead(sink, ahead, routes);
}

/** Name of the routes; the same for all events where they never change. */
export function nameOf(routes: AcceptedRoutes | undefined): string {
  return routes?.name ?? '';
}

function read(chapter: Chapter): ReadChapter {
  const lanes = chapter.lanes.map(
    ([destination, floor, text]) =>
      [destination, { floor, stretches: decodeStretches(floor, text) ?? [] }] as const,
  );
  return { ...chapter, settled: new Map(lanes) };
}

function isSettledIn({ settled }: ReadChapter, destination: string | null, seq: number): boolean {
  const lane = settled.get(destination);
  return lane === undefined || seq <= lane.floor || isWithin(lane.stretches, seq);
}

function has(targets: readonly Target[], { destination }: Target): boolean {
  return targets.some((other) => other.destination === destination);
}

const NONE: readonly Target[] = [];
