import type { Ahead, FeedLog, KeptLog } from '../core/journal.ts';
import type { Target } from '../core/route.ts';
import { decodeStretches, encodeStretches, isWithin, type Stretch } from '../lib/stretches.ts';
import { getOrMake } from '../lib/get-or-make.ts';
import type { AcceptedRoutes, Addressed } from './routes/accepted.ts';
import type { DestinationProgress } from './destination-progress.ts';

/** Returns the routes in force; undefined where they never change. */
export type CurrentRoutes = (() => AcceptedRoutes) | undefined;

/** Persisted: the events that were loaded under the same routes, from the end of the previous chapter to seq `upTo`. */
export interface Chapter {
  readonly upTo: number;
  /** Name of the routes. */
  readonly routes: string;
  /** Destinations that have events to settle: all up to `floor` is settled, and so are the encoded stretches behind it. */
  readonly lanes: readonly (readonly [destination: string | null, floor: number, settled: string])[];
}

/** Limits of a note; what has no room is delivered again. */
const MAX_CHARACTERS_EACH = 32_768;
const MAX_CHAPTERS = 16;

export function chapterOf(
  after: number,
  upTo: number,
  routes: string,
  destinations: Iterable<readonly [string | null, DestinationProgress]>,
): Chapter {
  const lanes = Array.from(destinations, ([name, destination]) => {
    const found = destination.settledIn(after, upTo);
    if (found === null) return [];
    const { floor, stretches } = found;
    return [[name, floor, encodeStretches(floor, stretches, MAX_CHARACTERS_EACH)] as const];
  }).flat();
  return { upTo, routes, lanes };
}

export function noteOf(chapters: readonly Chapter[]): string | null {
  return chapters.length === 0 ? null : JSON.stringify(chapters.slice(0, MAX_CHAPTERS));
}

interface DecodedChapter extends Chapter {
  readonly settled: ReadonlyMap<
    string | null,
    { readonly floor: number; readonly stretches: readonly Stretch[] }
  >;
}

/** The deliveries that a sink had settled ahead of its cursor before the feed began; they are not sent again. */
export class SettledAhead {
  /** Nothing is known of later events. */
  readonly last: number;
  readonly #sink: string;
  readonly #routes: CurrentRoutes;
  readonly #chapters: readonly DecodedChapter[];
  readonly #died: ReadonlyMap<number, readonly (string | null)[]>;

  constructor(sink: string, { note, died }: Ahead, routes: CurrentRoutes) {
    this.#sink = sink;
    this.#routes = routes;
    this.#chapters = note === null ? [] : (JSON.parse(note) as Chapter[]).map(decode);
    const bySeq = new Map<number, (string | null)[]>();
    for (const [destination, seq] of died) getOrMake(bySeq, seq, () => []).push(destination);
    this.#died = bySeq;
    let last = this.#chapters.at(-1)?.upTo ?? 0;
    // One by one: as arguments of a call, a hundred thousand are too many.
    for (const seq of bySeq.keys()) last = Math.max(last, seq);
    this.last = last;
  }

  /** Chapters that have events after a seq. */
  after(seq: number): readonly Chapter[] {
    return this.#chapters.flatMap(({ upTo, routes, lanes }) => (upTo > seq ? [{ upTo, routes, lanes }] : []));
  }

  /**
   * The targets of an event at the sink that it has not had. A delivery that waits for a destination goes to another one when
   * the routes have changed.
   * @param targets by the routes in force
   */
  open(event: Addressed, targets: readonly Target[]): readonly Target[] {
    const { seq } = event;
    const chapter = this.#chapters.find(({ upTo }) => upTo >= seq);
    const died = this.#died.get(seq);
    const hasDied = ({ destination }: Target): boolean => died?.includes(destination) === true;
    // Behind the last chapter, the routes that it was loaded under are unknown.
    if (chapter === undefined) return died === undefined ? targets : targets.filter((each) => !hasDied(each));
    const isSettled = (target: Target): boolean =>
      hasDied(target) || isSettledIn(chapter, target.destination, seq);
    const routes = this.#routes?.();
    if (chapter.routes === nameOf(routes)) return targets.filter((target) => !isSettled(target));
    const before = routes
      ?.asOf(chapter.routes)
      ?.targetsOf(event)
      .filter(({ sink }) => sink === this.#sink);
    // The sinks of an event never change: routes that say otherwise are not those of that time.
    if (before === undefined || before.length === 0) {
      const isOpen = chapter.lanes.some(([destination]) => !isSettledIn(chapter, destination, seq));
      return isOpen ? targets.filter((target) => !hasDied(target)) : [];
    }
    if (before.every(isSettled)) return [];
    // A new destination has no settled events yet, although it would count as settled in the chapter.
    return targets.filter((target) => {
      const isNew = !before.some(({ destination }) => destination === target.destination);
      return isNew ? !hasDied(target) : !isSettled(target);
    });
  }
}

/** Null when the log has nothing of the sink. */
export async function settledAheadOf(
  sink: string,
  {
    journal,
    routes,
  }: { readonly journal: FeedLog | Pick<KeptLog, 'ahead'>; readonly routes?: CurrentRoutes },
): Promise<SettledAhead | null> {
  const ahead = 'ahead' in journal ? await journal.ahead(sink) : null;
  if (ahead === null || (ahead.note === null && ahead.died.length === 0)) return null;
  return new SettledAhead(sink, ahead, routes);
}

/** Name of the routes; the same for all events where they never change. */
export function nameOf(routes: AcceptedRoutes | undefined): string {
  return routes?.name ?? '';
}

function decode(chapter: Chapter): DecodedChapter {
  const settled = chapter.lanes.map(
    ([destination, floor, text]) =>
      [destination, { floor, stretches: decodeStretches(floor, text) ?? [] }] as const,
  );
  return { ...chapter, settled: new Map(settled) };
}

function isSettledIn({ settled }: DecodedChapter, destination: string | null, seq: number): boolean {
  const found = settled.get(destination);
  return found === undefined || seq <= found.floor || isWithin(found.stretches, seq);
}
