import { basename, dirname } from 'node:path';
import { CLAIMS_FOLDER, MANIFEST } from '../core/archive.ts';
import type { ManifestLine, NewManifestLine } from '../core/archive-manifest.ts';
import type { Signer } from '../core/signature.ts';
import type { ClaimFacts } from './check-claim.ts';
import type { FileFacts } from './facts.ts';
import type { StoredLine } from './manifest.ts';
import { fileLineOf, rechain, type ChainedLine } from './rechain.ts';
import type { Inspection } from './verify.ts';

/** One thing a repair does, in words; `file` is relative to the archive. */
export interface RepairAction {
  readonly action:
    | 'remove_temporary'
    | 'move_file'
    | 'keep_manifest'
    | 'write_manifest'
    | 'drop_line'
    | 'restore_line'
    | 'link_line'
    | 'list_file';
  readonly file: string;
  readonly detail: string;
}

export interface RepairPlan {
  readonly actions: readonly RepairAction[];
  /** Left over by writers that were killed. */
  readonly temporary: readonly string[];
  /** Each one step, in order; no step writes over a file. */
  readonly moves: readonly { readonly from: string; readonly to: string }[];
  /** The whole manifest anew; null when it stays, but for lines to be added. */
  readonly manifest: readonly string[] | null;
  readonly additions: readonly NewManifestLine[];
}

/**
 * Says what can be mended of what an inspection found: nothing that would hide a loss. A line whose file is missing or
 * changed stays; so does a file that an erasure had removed, unlisted.
 * @param lines the manifest's, all of them; empty when there is none
 * @param at time of the repair, ISO 8601
 * @param signer signs the lines it makes; null for a manifest without signatures
 */
export function planRepair(
  found: Inspection,
  lines: readonly StoredLine[],
  at: string,
  signer: Signer | null,
): RepairPlan {
  const { listing, manifest } = found;
  const actions: RepairAction[] = [];
  for (const file of listing.temporary) {
    actions.push({ action: 'remove_temporary', file, detail: 'left over by a writer that was killed' });
  }
  const damaged = manifest !== null && (manifest.brokenAt !== null || manifest.forged.size > 0);
  // What nobody with the key wrote is not signed by whoever repairs.
  const authentic = lines.filter(({ number }) => manifest?.forged.has(number) !== true);
  const chain = damaged ? rechain(authentic, found.files, at, signer) : null;
  const newest = new Map<string, ManifestLine>(manifest?.entries);
  if (chain !== null) {
    newest.clear();
    for (const { entry } of chain) newest.set(entry.file, entry);
  }
  const { moves, files } = planMoves(found.files, newest);
  for (const { from, to } of moves) {
    actions.push({ action: 'move_file', file: from, detail: `back to ${to}, as which its bytes are listed` });
  }
  if (chain !== null) {
    actions.push({ action: 'keep_manifest', file: MANIFEST, detail: `as ${keptManifest(at)}` });
    actions.push(...chainActions(lines, chain, manifest?.forged ?? new Set()));
  }
  const additions = [...unlistedFiles(files, newest, at), ...unlistedClaims(found.claims, newest, at)];
  if (manifest === null && additions.length > 0) {
    actions.push({ action: 'write_manifest', file: MANIFEST, detail: 'made anew from the files' });
  }
  for (const { file } of additions)
    actions.push({ action: 'list_file', file, detail: 'complete, and not in the manifest' });
  return {
    actions,
    temporary: listing.temporary,
    moves,
    manifest: chain?.map(({ text }) => text) ?? null,
    additions,
  };
}

/** Where the manifest that a repair replaces is kept. */
export function keptManifest(at: string): string {
  return `${MANIFEST}.${at.replaceAll(':', '')}`;
}

function chainActions(
  lines: readonly StoredLine[],
  chain: readonly ChainedLine[],
  forged: ReadonlySet<number>,
): RepairAction[] {
  const used = new Set(chain.map(({ from }) => from));
  const dropped = lines.flatMap(({ number, entry }): RepairAction[] => {
    if (used.has(number)) return [];
    const vouched = forged.has(number)
      ? 'nobody with the key wrote it'
      : 'the line after it vouches for another';
    const why = entry === null ? 'not a line of a manifest' : vouched;
    return [{ action: 'drop_line', file: entry?.file ?? MANIFEST, detail: `line ${number}: ${why}` }];
  });
  const others = chain.flatMap(({ how, entry: { file }, from }, index): RepairAction[] => {
    if (how === 'restored') {
      const detail = `line ${index + 1}, as the file and the line after it prove`;
      return [{ action: 'restore_line', file, detail }];
    }
    return how === 'linked' ? [{ action: 'link_line', file, detail: `line ${from}, with a new link` }] : [];
  });
  return [...dropped, ...others];
}

/** Steps that give files back the names they are listed by, also where some changed places in a circle. */
function planMoves(
  found: ReadonlyMap<string, FileFacts>,
  newest: ReadonlyMap<string, ManifestLine>,
): { moves: { from: string; to: string }[]; files: Map<string, FileFacts> } {
  const files = new Map(found);
  const homes = new Map<string, string>();
  for (const [file, { sha256 }] of newest) {
    if (sha256 !== null && files.get(file)?.sha256 !== sha256) homes.set(sha256, file);
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
      const to = homes.get(sha256);
      return to === undefined || to === from || newest.get(from)?.sha256 === sha256 ? [] : [{ from, to }];
    });
    const [first] = strays;
    if (first === undefined) return { moves, files };
    const free = strays.find(({ to }) => !files.has(to));
    if (free !== undefined) {
      homes.delete(files.get(free.from)?.sha256 ?? '');
      move(free.from, free.to);
    } else if (strays.some(({ from }) => from === first.to)) {
      // Two or more in a circle: one steps aside, under a name that a second run would bring home as well.
      move(first.to, besides(first.to));
    } else {
      // Another file, listed nowhere, has taken its place; which is the right one is not ours to say.
      homes.delete(files.get(first.from)?.sha256 ?? '');
    }
  }
}

function besides(file: string): string {
  const folder = dirname(file);
  return folder === '.' ? `aside-${basename(file)}` : `${folder}/aside-${basename(file)}`;
}

/** In order of time, as they would have been listed. A copy of a listed file is left out: its records would count twice. */
function unlistedFiles(
  files: ReadonlyMap<string, FileFacts>,
  newest: ReadonlyMap<string, ManifestLine>,
  at: string,
): NewManifestLine[] {
  const listed = new Set(Array.from(newest.values(), ({ sha256 }) => sha256));
  return [...files]
    .filter(([file, { whole, records, sha256 }]) => {
      return !newest.has(file) && !listed.has(sha256) && whole && records > 0;
    })
    .toSorted(([a, { first: x }], [b, { first: y }]) => (x === y ? compare(a, b) : compare(x, y)))
    .map(([file, facts]) => ({ ...fileLineOf(file, facts), repaired_at: at }));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : 1;
}

/** What a kept event is, its path says: `{time}#{type}#{id}.json[.gz]`. */
function unlistedClaims(
  claims: ReadonlyMap<string, ClaimFacts>,
  newest: ReadonlyMap<string, ManifestLine>,
  at: string,
): NewManifestLine[] {
  return [...claims].flatMap(([file, { bytes, sha256, bodySha256 }]): NewManifestLine[] => {
    if (newest.has(file) || bodySha256 === null || !file.startsWith(`${CLAIMS_FOLDER}/`)) return [];
    const [, type = '', ...id] = basename(file)
      .replace(/\.json(\.gz)?$/, '')
      .split('#')
      .map(decode);
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

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
