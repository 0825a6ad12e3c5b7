import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { MANIFEST } from '../core/archive.ts';
import { parsePlace, type Place } from '../core/place.ts';
import type { DescribedConfig } from './config.ts';
import { isLocal } from '../journal/owner.ts';
import { keyOf, type Path, type Problem } from './paths.ts';

/** A folder, or a place in a store, that one part of the config has to itself. */
interface Owned {
  readonly key: Path;
  readonly path: string;
  readonly what: 'folder' | 'place';
  /** What it is and all it lies in, innermost first: equal for the same place, however it is spelled. */
  readonly places: readonly string[];
}

/**
 * Folders that two parts would write: the same one, or one inside the other's. Whoever reads, proves or erases a folder takes
 * all below it for its own.
 */
export function checkFolders(config: DescribedConfig): Problem[] {
  const seen: Owned[] = [];
  const problems: Problem[] = [];
  for (const [key, path] of foldersOf(config)) {
    // A placeholder that could not be resolved: nobody knows where it leads.
    if (path === '' || path.includes('${')) continue;
    const store = storeLevels(path);
    const owned: Owned =
      store === null
        ? { key, path, what: 'folder', places: placesOf(path) }
        : { key, path, what: 'place', places: store };
    const message = seen.map((other) => clash(owned, other)).find((found) => found !== null);
    if (message !== undefined) problems.push({ path: key, message });
    seen.push(owned);
  }
  return problems;
}

/**
 * Archives that continue another sink in a folder without an archive. If that sink had one it lies elsewhere, and nobody
 * would look for its events there.
 */
export function warnOfNewArchives({ sinks }: DescribedConfig): Problem[] {
  return Object.entries(sinks).flatMap(([name, { continues, description }]) => {
    const { archive = '' } = description;
    const isFolder = archive !== '' && !archive.includes('${') && !archive.includes('://');
    if (continues === null || !isFolder || existsSync(join(archive, MANIFEST))) return [];
    const message = `is ${archive}, where there is no archive yet: if ${continues} was a files sink, keep its path, or \`reconcile\` calls the events in its folder missing`;
    return [{ path: ['sinks', name, 'path'], message }];
  });
}

/** What stands for a folder, or a place in a store: equal for the same, however it is spelled. */
export function placeKeyOf(path: string): string | undefined {
  return (storeLevels(path) ?? placesOf(path))[0];
}

/** The same as it can be noted for later: by name, for a folder may be made again. Null where a sink writes no archive. */
export function archiveKeyOf(archive: string | undefined): string | null {
  return archive === undefined ? null : (storeLevels(archive)?.[0] ?? resolve(archive));
}

function clash(one: Owned, other: Owned): string | null {
  const theirs = `the ${other.what} of ${keyOf(other.key)} (${other.path})`;
  if (one.places[0] === other.places[0]) return `${one.path} is ${theirs} too`;
  if (one.places.includes(other.places[0] ?? '')) return `${one.path} lies inside ${theirs}`;
  if (other.places.includes(one.places[0] ?? '')) return `${one.path} holds ${theirs}`;
  return null;
}

function* foldersOf(config: DescribedConfig): Generator<[Path, string]> {
  const { journal, erasure, sinks } = config;
  if (isLocal(config)) yield [['journal', 'path'], journal.path];
  yield [['erasure', 'path'], erasure.path];
  for (const [name, { description }] of Object.entries(sinks)) {
    // First, for two archives in one place have one spool too.
    const { archive } = description;
    if (archive !== undefined && archive.includes('://')) yield [['sinks', name, 'path'], archive];
    for (const { path, option } of description.folders ?? [])
      yield [['sinks', name, ...option.split('.')], path];
  }
}

/** The place in a store and all it lies in, innermost first; null for a folder, and for what is refused as no place at all. */
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

/** What exists is told by its number on its device, so that links and mounts are seen through; the rest by name. */
function placesOf(path: string): string[] {
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
  const places: string[] = [];
  for (let folder = at; ; folder = dirname(folder)) {
    places.push(identityOf(folder));
    if (dirname(folder) === folder) break;
  }
  for (const name of missing.toReversed()) places.unshift(join(places[0] ?? '', name));
  return places;
}

function identityOf(folder: string): string {
  try {
    const { dev, ino } = statSync(folder, { bigint: true });
    return ino === 0n ? folder : `${dev}:${ino}`;
  } catch {
    return folder;
  }
}
