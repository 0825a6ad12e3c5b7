import { basename } from 'node:path';
import type { Places } from '../archive/places.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import { inDays, sharingDays } from './days.ts';
import type { ExportStep, StepSource } from './export-step.ts';
import type { Source } from './archive-files.ts';
import { placeOf, type SourceList, withPieces } from './sources.ts';

/** What has to be done so that an export has what the archives have. */
export interface ExportPlan {
  /** Files to be exported, and the steps that they replace together. */
  readonly sources: readonly Source[];
  readonly stale: readonly ExportStep[];
  readonly staying: readonly ExportStep[];
  /** Steps that are made again, each alone, because their sources could not be read completely. */
  readonly partly: readonly { readonly step: ExportStep; readonly sources: readonly Source[] }[];
  /** Files that are exported already. */
  readonly before: number;
  /** Files that are missing or short, and what happens to their rows. */
  readonly faults: readonly Fault[];
}

interface Fault {
  readonly file: string;
  readonly reason: string;
  readonly isMissing: boolean;
}

export interface PlanOptions {
  /** Exports everything again. */
  readonly again: boolean;
  readonly today?: string | undefined;
  /** Steps whose files another program has rewritten: their rows cannot be found any more. */
  readonly unreplaceable: readonly ExportStep[];
  readonly opener: RecordOpener | undefined;
  readonly places: Places;
}

/**
 * Compares the sources of an export with the archives. Rows are removed if the archive says so; a missing or short file is a fault
 * of the archive, and its rows stay.
 * @param standing the oldest first
 */
export async function planExport(
  standing: readonly ExportStep[],
  list: SourceList,
  { again, today, unreplaceable, opener, places }: PlanOptions,
): Promise<ExportPlan> {
  const here = identitiesIn(list);
  const missing = missingIn(standing, list, here);
  const short = again ? await shortOf(list.sources, places) : new Map<string, string>();
  const doubled = doubledIn(standing);
  const hasFault = ({ sources }: ExportStep): boolean =>
    sources.some((source) => missing.has(source) || short.has(identityOf(source)));
  const must = new Set(standing.filter((step) => isStale(step, list, opener)));
  const find = (source: StepSource): Source | undefined => here.get(identityOf(source));
  const own = standing.filter((step) => !must.has(step) && !unreplaceable.includes(step));
  const due = onceEach(list.sources, new Set(standing.filter((step) => !must.has(step)).flatMap(identities)));
  const sharing = new Set(today === undefined ? [] : await sharingDays(own, { due, find, places, today }));
  const stale = standing.filter(
    (step) => must.has(step) || ((again || doubled.has(step) || sharing.has(step)) && !hasFault(step)),
  );
  const staying = standing.filter((step) => !stale.includes(step));
  const partly = staying.flatMap((step) => {
    const sources = step.sources.flatMap((source) => here.get(identityOf(source)) ?? []);
    const isComplete = sources.length === step.sources.length;
    return isComplete && step.sources.some(({ problems }) => problems > 0) ? [{ step, sources }] : [];
  });
  const exported = new Set(staying.flatMap(identities));
  const whole = new Set(
    staying.flatMap(({ sources }) => sources.filter(({ problems }) => problems === 0).map(identityOf)),
  );
  const wanted = onceEach(list.sources, exported);
  return {
    sources: today === undefined ? wanted : inDays(wanted, today),
    stale,
    staying,
    partly,
    before: list.sources.filter((source) => missingOf(source, whole).length === 0).length,
    faults: [
      ...missingFaults(missing, stale, list, here),
      ...staying.flatMap((step) => step.sources).flatMap((source) => heldBack(source, short)),
      ...staying.flatMap((step) => notNamed(step, list, missing)),
    ],
  };
}

const LISTED = 'in the manifest, but missing';
const STAYS = 'its rows stay';
const GOES = 'its rows go with others that have to, and come back with it';

/**
 * True when a source has changed, or is gone by the manifest, or when keys have been destroyed since: a sealed archive does not say
 * whose records are in which file. Files of archives that were not named do not count.
 */
export function isStale(
  step: ExportStep,
  { present, roots, gone, missing }: SourceList,
  opener?: RecordOpener,
): boolean {
  if (step.sealed > 0 && (opener?.destroyed ?? 0) > step.destroyed) return true;
  return step.sources.some((source) => {
    const place = placeOf(source);
    // An erasure may have rewritten a file that is missing now.
    const now = present.get(place) ?? missing.get(place)?.sha256;
    return now === undefined ? roots.has(source.root) && gone.has(place) : now !== source.sha256;
  });
}

/** Identifies a file also after its archive has moved, or when a folder around it was named. */
export function identityOf({ file, sha256 }: Pick<Source, 'file' | 'sha256'>): string {
  return `${sha256} ${basename(file)}`;
}

/** Readable files by their identity. */
export function identitiesIn({ sources }: SourceList): Map<string, Source> {
  return new Map(sources.flatMap(withPieces).map((source) => [identityOf(source), source]));
}

function missingIn(
  standing: readonly ExportStep[],
  { present, roots, gone }: SourceList,
  here: ReadonlyMap<string, Source>,
): Set<StepSource> {
  const isThere = (source: StepSource): boolean =>
    present.has(placeOf(source)) || gone.has(placeOf(source)) || here.has(identityOf(source));
  const sources = standing.flatMap((step) => step.sources);
  return new Set(sources.filter((source) => roots.has(source.root) && !isThere(source)));
}

/** Faults of missing files, exported or not. */
function missingFaults(
  missing: ReadonlySet<StepSource>,
  stale: readonly ExportStep[],
  list: SourceList,
  here: ReadonlyMap<string, Source>,
): Fault[] {
  const goes = new Set(stale.flatMap(({ sources }) => sources));
  const known = new Set([...missing].map(placeOf));
  const never = [...list.missing.values()].filter(
    (source) => !known.has(placeOf(source)) && !here.has(identityOf(source)),
  );
  return [
    ...[...missing].map((source) => {
      const what = list.missing.has(placeOf(source)) ? LISTED : 'missing';
      return { file: source.file, reason: `${what}: ${goes.has(source) ? GOES : STAYS}`, isMissing: true };
    }),
    ...never.map(({ file }) => ({ file, reason: LISTED, isMissing: true })),
  ];
}

/** Faults of short files; a file that is read again reports its own. */
function heldBack(source: StepSource, short: ReadonlyMap<string, string>): Fault[] {
  const file = source.problems > 0 ? undefined : short.get(identityOf(source));
  return file === undefined ? [] : [{ file, reason: `not whole: ${STAYS}`, isMissing: false }];
}

/** Faults of steps that cannot be made again because not all of their archives were named. */
function notNamed({ sources }: ExportStep, { roots }: SourceList, missing: ReadonlySet<StepSource>): Fault[] {
  const others = [...new Set(sources.map(({ root }) => root))].filter((root) => !roots.has(root));
  if (others.length === 0 || sources.some((source) => missing.has(source))) return [];
  const reason = `it could not be read whole, and is read again when ${others.join(', ')} is named, too`;
  return sources.flatMap(({ root, file, problems }) =>
    problems > 0 && roots.has(root) ? [{ file, reason, isMissing: false }] : [],
  );
}

/** Files that are shorter or longer than the manifest says, by identity. */
async function shortOf(sources: readonly Source[], places: Places): Promise<Map<string, string>> {
  const short = new Map<string, string>();
  for (const source of sources) {
    const { root, file, bytes } = source;
    if (bytes === null || (await places.at(root).stat(file))?.bytes === bytes) continue;
    for (const one of withPieces(source)) short.set(identityOf(one), file);
  }
  return short;
}

/** Steps with a file that a later one has too, because a run with `again` was interrupted. */
function doubledIn(standing: readonly ExportStep[]): Set<ExportStep> {
  const doubled = new Set<ExportStep>();
  const later = new Set<string>();
  for (const step of standing.toReversed()) {
    const own = identities(step);
    if (own.some((identity) => later.has(identity))) doubled.add(step);
    else for (const identity of own) later.add(identity);
  }
  return doubled;
}

/** Files that are not exported yet, each once, also if there is a copy. */
function onceEach(sources: readonly Source[], exported: ReadonlySet<string>): Source[] {
  const taken = new Set(exported);
  return sources.flatMap((source) => {
    const due = missingOf(source, taken);
    for (const one of withPieces(source)) taken.add(identityOf(one));
    return due;
  });
}

/** The file, if it is not exported yet. Of a compacted file that is exported in part, only the other pieces. */
function missingOf(source: Source, exported: ReadonlySet<string>): Source[] {
  const { pieces } = source;
  if (exported.has(identityOf(source))) return [];
  const isInside = pieces.flatMap(withPieces).some((piece) => exported.has(identityOf(piece)));
  return isInside ? pieces.flatMap((piece) => missingOf(piece, exported)) : [source];
}

function identities({ sources }: ExportStep): string[] {
  return sources.map(identityOf);
}
