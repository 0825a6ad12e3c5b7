import { hashChunks } from '../lib/hash-chunks.ts';
import type { Places } from '../archive/places.ts';
import type { Source } from './archive-files.ts';
import type { ExportStep, StepSource } from './export-step.ts';

/**
 * Sorts sources so that a followed export has each past day in one step, and so in one file of a table: new files of the current day
 * have a step of their own, a step never ends within a past day, and steps that share one are made again as one.
 * @param today the current day, such as `2026-11-21`
 */
export function inDays(sources: readonly Source[], today: string): Source[] {
  // The current day first, because the last step replaces earlier ones of a past day.
  const groups = Map.groupBy(sources, ({ day }) => (isOver(day, today) ? day : ''));
  return [...groups.keys()].toSorted().flatMap((day) => groups.get(day) ?? []);
}

/** True when a step must not end between two sources. */
export function isWithinDay(one: Source, next: Source, today: string): boolean {
  return isOver(one.day, today) && one.day === next.day;
}

/** True when a step has to end between two sources. */
export function isEndOfToday(one: Source, next: Source, today: string): boolean {
  return !isOver(one.day, today) && isOver(next.day, today);
}

/** Steps that share a past day with another step or with a source to be exported, and whose sources have not changed. */
export async function sharingDays(steps: readonly ExportStep[], about: About): Promise<ExportStep[]> {
  const { find } = about;
  const readable = steps.filter(({ sources }) =>
    sources.every((source) => source.problems === 0 && find(source) !== undefined),
  );
  const damaged = new Set<ExportStep>();
  for (const step of sharing(readable, about))
    for (const source of step.sources)
      if (!damaged.has(step) && !(await isIntact(find(source), about.places))) damaged.add(step);
  // A damaged source would have fewer rows than before.
  return sharing(
    readable.filter((step) => !damaged.has(step)),
    about,
  );
}

function sharing(steps: readonly ExportStep[], { due, find, today }: About): ExportStep[] {
  const overIn = (sources: readonly (Source | undefined)[]): string[] => [
    ...new Set(sources.map((source) => source?.day ?? null).filter((day) => isOver(day, today))),
  ];
  const daysOf = new Map(steps.map((step) => [step, overIn(step.sources.map(find))]));
  const seen = new Set<string>();
  const shared = new Set<string>();
  for (const day of [overIn(due), ...daysOf.values()].flat()) {
    if (seen.has(day)) shared.add(day);
    seen.add(day);
  }
  return steps.filter((step) => daysOf.get(step)?.some((day) => shared.has(day)));
}

async function isIntact(source: Source | undefined, places: Places): Promise<boolean> {
  if (source === undefined) return false;
  const { root, file, sha256 } = source;
  return hashChunks(places.at(root).chunks(file)).then(
    (now) => now.sha256 === sha256,
    () => false,
  );
}

interface About {
  /** Files to be exported. */
  readonly due: readonly Source[];
  /** A readable file as it is now. */
  readonly find: (source: StepSource) => Source | undefined;
  readonly places: Places;
  readonly today: string;
}

function isOver(day: string | null, today: string): day is string {
  return day !== null && day < today;
}
