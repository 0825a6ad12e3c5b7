import { basename, dirname, posix } from 'node:path';
import { CLAIMS_FOLDER, MANIFEST } from '../core/archive.ts';
import type { NewManifestLine } from '../core/archive-manifest.ts';
import type { OpenProof } from '../core/proof.ts';
import { decodedOrSame } from '../lib/parsed.ts';
import type { Manifest } from './manifest.ts';
import type { VerifyReport } from './report.ts';
import type { Inspection, VerifyOptions } from './verify.ts';

/** One step of a repair; `file` is relative to the archive. */
export interface RepairAction {
  readonly action: 'remove_temporary' | 'move_file' | 'cut_line' | 'write_manifest' | 'list_file';
  readonly file: string;
  readonly detail: string;
}

export interface RepairOptions extends VerifyOptions {
  readonly dryRun: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Called right before each action. */
  readonly onAction: (action: RepairAction) => void;
  /** Signs new lines; required for a signed manifest. */
  readonly proof?: OpenProof | undefined;
}

export interface RepairReport {
  readonly actions: readonly RepairAction[];
  /** Complete objects that are not listed, and so young that their writer may still list them. */
  readonly young: readonly string[];
  readonly before: VerifyReport;
  /** The same as `before` on a dry run. */
  readonly after: VerifyReport;
}

export interface RepairPlan {
  readonly actions: readonly RepairAction[];
  /** Files that killed writers have left. */
  readonly temporary: readonly string[];
  /** Whether the manifest ends in a line that was cut short. */
  readonly cut: boolean;
  /** In order; none replaces a file. */
  readonly moves: readonly { readonly from: string; readonly to: string }[];
  readonly additions: readonly NewManifestLine[];
}

/**
 * Plans the repair of what an inspection found. It hides no loss: a line whose file is missing or changed stays, a
 * file that an erasure had removed stays unlisted, and a broken or forged manifest gets no lines and moves no files.
 * @param at time of the repair, ISO 8601
 */
export function planRepair(found: Inspection, at: string): RepairPlan {
  const { listing, manifest } = found;
  const actions: RepairAction[] = [];
  for (const file of listing.temporary) {
    actions.push({ action: 'remove_temporary', file, detail: 'left behind by a killed writer' });
  }
  const { temporary } = listing;
  if (manifest !== null && isDamaged(manifest))
    return { actions, temporary, cut: false, moves: [], additions: [] };
  const newest: Lines = manifest?.entries ?? new Map();
  const { moves, files } = planMoves(found.files, expectedOf(newest, manifest));
  for (const { from, to } of moves) {
    actions.push({
      action: 'move_file',
      file: from,
      detail: `renamed to ${to}, the listed name of its bytes`,
    });
  }
  const cut = manifest?.chains.some(({ cutShort }) => cutShort) === true;
  if (cut) actions.push({ action: 'cut_line', file: MANIFEST, detail: 'the last line, which has no end' });
  const additions = [...unlistedFiles(files, newest, at), ...unlistedClaims(found.claims, newest, at)];
  if (manifest === null && additions.length > 0) {
    actions.push({ action: 'write_manifest', file: MANIFEST, detail: 'recreated from the files' });
  }
  for (const { file } of additions) actions.push(listAction(file));
  return { actions, temporary, cut, moves, additions };
}

type Lines = Manifest['entries'];

export function listAction(file: string): RepairAction {
  return { action: 'list_file', file, detail: 'complete, and not in the manifest' };
}

/** Newest lines without those of compacted files, which no file is renamed to. */
function expectedOf(newest: Lines, manifest: Manifest | null): Lines {
  const expected = new Map(newest);
  for (const { replaces } of manifest?.compactions.values() ?? [])
    for (const { file } of replaces) expected.delete(file);
  return expected;
}

/** A last line without an end is no damage: the next writer removes it. */
function isDamaged({ chains }: Manifest): boolean {
  return chains.some(
    ({ isForged, brokenAt, cutShort, lines }) =>
      isForged || (brokenAt !== null && !(cutShort && brokenAt === lines)),
  );
}

/** Renames files to the names they are listed by, also where several have swapped names. */
function planMoves(found: Inspection['files'], newest: Lines) {
  const files = new Map(found);
  const namesByHash = new Map<string, string>();
  for (const [file, { sha256 }] of newest) {
    if (sha256 !== null && files.get(file)?.sha256 !== sha256) namesByHash.set(sha256, file);
  }
  const moves: { from: string; to: string }[] = [];
  const move = (from: string, to: string): void => {
    const facts = files.get(from);
    if (facts === undefined) return;
    files.delete(from);
    files.set(to, facts);
    moves.push({ from, to });
  };
  for (;;) {
    const strays = [...files].flatMap(([from, { sha256 }]) => {
      const to = namesByHash.get(sha256);
      return to === undefined || to === from || newest.get(from)?.sha256 === sha256 ? [] : [{ from, to }];
    });
    const [first] = strays;
    if (first === undefined) return { moves, files };
    const free = strays.find(({ to }) => !files.has(to));
    if (free !== undefined) {
      namesByHash.delete(files.get(free.from)?.sha256 ?? '');
      move(free.from, free.to);
    } else if (strays.some(({ from }) => from === first.to)) {
      // Swapped names: one file gets a free name first, which a second run would also rename.
      move(first.to, posix.join(dirname(first.to), `aside-${basename(first.to)}`));
    } else {
      // An unlisted file has this name: a person decides which is the right one.
      namesByHash.delete(files.get(first.from)?.sha256 ?? '');
    }
  }
}

/** In order of time. A copy of a listed file is left out: its records would count twice. */
function unlistedFiles(files: Inspection['files'], newest: Lines, at: string): NewManifestLine[] {
  const listed = new Set(Array.from(newest.values(), ({ sha256 }) => sha256));
  return [...files]
    .filter(([file, { whole, records, sha256 }]) => {
      return !newest.has(file) && !listed.has(sha256) && whole && records > 0;
    })
    .toSorted(([a, { first: x }], [b, { first: y }]) => (x === y ? compare(a, b) : compare(x, y)))
    .map(([file, { records, bytes, sha256, first, last, types }]) => {
      const times = { first_received_at: first, last_received_at: last };
      return { file, records, bytes, sha256, ...times, types: Object.fromEntries(types), repaired_at: at };
    });
}

function compare(a: string, b: string): number {
  return a < b ? -1 : 1;
}

/** Lines of kept events, from their paths: `{time}#{type}#{id}.json[.gz]`. */
function unlistedClaims(claims: Inspection['claims'], newest: Lines, at: string): NewManifestLine[] {
  return [...claims].flatMap(([file, { bytes, sha256, bodySha256 }]): NewManifestLine[] => {
    if (newest.has(file) || bodySha256 === null || !file.startsWith(`${CLAIMS_FOLDER}/`)) return [];
    const [, type = '', ...id] = basename(file)
      .replace(/\.json(\.gz)?$/, '')
      .split('#')
      .map(decodedOrSame);
    return [
      {
        claim_check: id.join('#'),
        file,
        event_type: type,
        bytes,
        sha256,
        body_sha256: bodySha256,
        repaired_at: at,
      },
    ];
  });
}
