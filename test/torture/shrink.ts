import type { Disk, File } from './disk.ts';
import { contentOf, type Fate, isKept, lostIn, sectorsOf } from './fates.ts';

/**
 * A state that fails in the same way and has lost as little as possible.
 * @param fails whether a state does
 */
export async function shrink(disk: Disk, fate: Fate, fails: (fate: Fate) => Promise<boolean>): Promise<Fate> {
  let smallest = fate;
  for (const restore of restorations(disk, fate)) {
    const candidate = { kept: new Set(smallest.kept), files: new Map(smallest.files) };
    restore(candidate);
    if (await fails(candidate)) smallest = candidate;
  }
  return smallest;
}

/** Gives back a file as a whole, then its parts; a name. */
function* restorations(disk: Disk, fate: Fate): Generator<(candidate: Fate) => void> {
  for (const naming of disk.namings)
    if (!isKept(naming, fate.kept)) yield ({ kept }) => void kept.add(naming);
  for (const file of fate.files.keys()) yield ({ files }) => void files.delete(file);
  for (const file of fate.files.keys()) {
    const all = file.changes.length;
    const change = (
      files: Fate['files'],
      how: (own: NonNullable<ReturnType<Fate['files']['get']>>) => void,
    ): void => {
      const own = files.get(file);
      if (own === undefined) return;
      const copy = { ...own, cuts: new Map(own.cuts) };
      how(copy);
      files.set(file, copy);
    };
    yield ({ files }) => change(files, (own) => ((own.size = all), (own.cap = null)));
    const sectors = [...sectorsOf(file, fate.files.get(file)?.unit ?? 4096).keys()];
    // Half of them at once, then a quarter: few are to blame.
    for (let run = Math.ceil(sectors.length / 2); run >= 1; run = run === 1 ? 0 : Math.ceil(run / 2))
      for (let at = 0; at < sectors.length; at += run)
        yield ({ files }) =>
          change(files, (own) => {
            for (const sector of sectors.slice(at, at + run)) own.cuts.set(sector, all);
          });
  }
}

/** What a state has lost, for a person. */
export function describeLoss(disk: Disk, fate: Fate): string[] {
  return lostIn(disk, fate, (file) => nameOf(disk, file, fate));
}

function nameOf(disk: Disk, file: File, fate: Fate): string {
  const naming = disk.namings.findLast(({ sets }) => sets.some(({ node }) => node === file));
  const find = (folder: typeof disk.root, path: string): string | null => {
    for (const [name, node] of folder.names) {
      if (node === file) return `${path}${name}`;
      const below = 'names' in node ? find(node, `${path}${name}/`) : null;
      if (below !== null) return below;
    }
    return null;
  };
  return (
    find(disk.root, '') ?? naming?.text ?? `a file of ${contentOf(file, fate.files.get(file)).length} bytes`
  );
}
