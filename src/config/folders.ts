import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { MANIFEST } from '../core/archive.ts';
import { parsePlace, type Place } from '../core/place.ts';
import type { DescribedConfig } from './config.ts';
import { isLocal } from '../journal/owner.ts';
import { keyOf, type Path, type Problem } from './paths.ts';

/** A folder, or a prefix of a store, that only one part of the config may use. */
interface Owned {
  readonly key: Path;
  readonly path: string;
  readonly what: 'folder' | 'place';
  /** Its identity and those of all its parents, innermost first. */
  readonly levels: readonly string[];
}

/** Problems of folders that are equal or inside one another: each part treats all files below its folder as its own. */
export function checkFolders(config: DescribedConfig): Problem[] {
  const seen: Owned[] = [];
  const problems: Problem[] = [];
  for (const [key, path, isPlace = false] of foldersOf(config)) {
    // An unresolved placeholder leads nowhere yet.
    if (path === '' || path.includes('${')) continue;
    // Else it is the name of a folder below the working directory. Not repeated: it may have a secret by mistake.
    if (!isPlace && /^[a-z][a-z0-9+.-]+:\//i.test(path))
      problems.push({ path: key, message: 'must be a folder on this machine, not a URL' });
    const store = storeLevels(path);
    const what = store === null ? 'folder' : 'place';
    const owned: Owned = { key, path, what, levels: store ?? folderLevels(path) };
    const message = seen.map((other) => clash(owned, other)).find((found) => found !== null);
    if (message !== undefined) problems.push({ path: key, message });
    seen.push(owned);
  }
  return problems;
}

/** Warns of sinks that continue another one in a folder without an archive: the events of that one may be elsewhere. */
export function warnOfNewArchives({ sinks }: DescribedConfig): Problem[] {
  return Object.entries(sinks).flatMap(([name, { continues, description }]) => {
    const { archive = '' } = description;
    const isFolder = archive !== '' && !archive.includes('${') && !archive.includes('://');
    if (continues === null || !isFolder || existsSync(join(archive, MANIFEST))) return [];
    const message = `is ${archive}, where there is no archive yet: if ${continues} was a files sink, keep its path, or \`reconcile\` calls the events in its folder missing`;
    return [{ path: ['sinks', name, 'path'], message }];
  });
}

/** The identity of a folder or a URL, the same for all its spellings. */
export function placeKeyOf(path: string): string | undefined {
  return (storeLevels(path) ?? folderLevels(path))[0];
}

/** An identity by name, as a folder can be created again; null for a sink without an archive. */
export function archiveKeyOf(archive: string | undefined): string | null {
  return archive === undefined ? null : (storeLevels(archive)?.[0] ?? resolve(archive));
}

function clash(one: Owned, other: Owned): string | null {
  const theirs = `the ${other.what} of ${keyOf(other.key)} (${other.path})`;
  if (one.levels[0] === other.levels[0]) return `${one.path} is ${theirs} too`;
  if (one.levels.includes(other.levels[0] ?? '')) return `${one.path} lies inside ${theirs}`;
  if (other.levels.includes(one.levels[0] ?? '')) return `${one.path} holds ${theirs}`;
  return null;
}

function* foldersOf(config: DescribedConfig): Generator<[key: Path, path: string, isPlace?: boolean]> {
  const { journal, erasure, receipts, sinks } = config;
  if (isLocal(config)) yield [['journal', 'path'], journal.path];
  yield [['erasure', 'path'], erasure.path];
  if (receipts.path !== null) yield [['receipts', 'path'], receipts.path];
  for (const [name, { description }] of Object.entries(sinks)) {
    // Before the folders: two archives in one place also share a spool.
    const { archive } = description;
    if (archive !== undefined && archive.includes('://')) yield [['sinks', name, 'path'], archive, true];
    for (const { path, option } of description.folders ?? [])
      yield [['sinks', name, ...option.split('.')], path];
  }
}

/** A prefix of a store and its parents, innermost first; null for a folder, and for an invalid URL. */
function storeLevels(path: string): string[] | null {
  if (!path.includes('://')) return null;
  let place: Place;
  try {
    place = parsePlace(path);
  } catch {
    return null;
  }
  if (place.scheme === 'folder') return null;
  const levels = [`${place.scheme}://${place.bucket}`];
  for (const level of place.prefix.split('/').filter((part) => part !== ''))
    levels.unshift(`${levels[0]}/${level}`);
  return levels;
}

/** A folder and its parents, innermost first. Existing ones by device and inode, so that links make no difference. */
function folderLevels(path: string): string[] {
  const missing: string[] = [];
  let at = resolve(path);
  for (;;) {
    try {
      at = realpathSync(at);
      break;
    } catch {
      const parent = dirname(at);
      if (parent === at) break;
      missing.push(at.slice(parent.length).replace(/^[\\/]/, ''));
      at = parent;
    }
  }
  const levels: string[] = [];
  for (let folder = at; ; folder = dirname(folder)) {
    levels.push(identityOf(folder));
    if (dirname(folder) === folder) break;
  }
  for (const name of missing.toReversed()) levels.unshift(join(levels[0] ?? '', name));
  return levels;
}

function identityOf(folder: string): string {
  try {
    const { dev, ino } = statSync(folder, { bigint: true });
    return ino === 0n ? folder : `${dev}:${ino}`;
  } catch {
    return folder;
  }
}
