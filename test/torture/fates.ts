import { endOf, sizeAfter, type Change, type Disk, type File, type Naming } from './disk.ts';

// What may have become, after a crash, of everything that was not durable.

/** What has become of a file. A change is counted by its place among the changes: a cut of 3 means that the first three are there. */
export interface FileFate {
  /** Its size is that after so many changes. */
  size: number;
  /** Where the last of these made it longer, it may be this long only. */
  cap: number | null;
  /** Bytes of a sector. */
  readonly unit: number;
  /** By number of the sector; of all that were written to. */
  readonly cuts: Map<number, number>;
}

/** A state of the disk after a crash. */
export interface Fate {
  /** Those that are not durable and nevertheless there. */
  readonly kept: Set<Naming>;
  /** Of the files that have lost something. */
  readonly files: Map<File, FileFate>;
}

/** The numbers of the changes that wrote to each sector. */
export function sectorsOf({ changes }: File, unit: number): Map<number, number[]> {
  const sectors = new Map<number, number[]>();
  for (const [number, change] of changes.entries()) {
    if (change.kind !== 'write' || change.data.length === 0) continue;
    const last = Math.floor((endOf(change) - 1) / unit);
    for (let sector = Math.floor(change.offset / unit); sector <= last; sector += 1) {
      const known = sectors.get(sector);
      if (known === undefined) sectors.set(sector, [number]);
      else known.push(number);
    }
  }
  return sectors;
}

/** Sizes of a file after none, one, two … of its changes. */
export function sizesOf({ size, changes }: File): number[] {
  const sizes = [size];
  for (const change of changes) sizes.push(sizeAfter(sizes.at(-1) as number, change));
  return sizes;
}

/** A file with its first changes, and none of the later ones. */
export function uniform(file: File, cut: number, unit = 4096): FileFate {
  const cuts = new Map(Array.from(sectorsOf(file, unit).keys(), (sector) => [sector, cut]));
  return { size: cut, cap: null, unit, cuts };
}

/** The whole file as it is found after the crash. @param fate left out where nothing of it is lost */
export function contentOf(file: File, fate: FileFate | undefined): Buffer {
  const { changes } = file;
  if (changes.length === 0) return file.bytes.subarray(0, file.size);
  return contentAfter(file, fate ?? uniform(file, changes.length));
}

function contentAfter(file: File, fate: FileFate): Buffer {
  const { changes } = file;
  const sizes = sizesOf(file);
  const size = finalSize(sizes, fate);
  const bytes = Buffer.alloc(Math.max(file.size, ...changes.map(endOf)));
  file.bytes.copy(bytes, 0, 0, file.size);
  const cuts = truncationsOf(changes);
  for (const [number, change] of changes.entries()) {
    if (change.kind === 'write') writeSectors(bytes, change, number, cuts, fate);
    else cutOff(bytes, change.size, number, cuts, fate);
  }
  return bytes.subarray(0, size);
}

function finalSize(sizes: readonly number[], { size, cap }: FileFate): number {
  const whole = sizes[size] as number;
  const before = sizes[Math.max(0, size - 1)] as number;
  return cap !== null && cap > before && cap < whole ? cap : whole;
}

function writeSectors(
  bytes: Buffer,
  { offset, data }: Change & { kind: 'write' },
  number: number,
  truncations: readonly Truncation[],
  fate: FileFate,
): void {
  for (let at = offset; at < offset + data.length;) {
    const sector = Math.floor(at / fate.unit);
    const end = Math.min((sector + 1) * fate.unit, offset + data.length);
    if (cutOf(sector, truncations, fate) > number) data.copy(bytes, at, at - offset, end - offset);
    at = end;
  }
}

function cutOff(
  bytes: Buffer,
  size: number,
  number: number,
  truncations: readonly Truncation[],
  fate: FileFate,
): void {
  for (let sector = Math.floor(size / fate.unit); sector * fate.unit < bytes.length; sector += 1) {
    if (cutOf(sector, truncations, fate) <= number) continue;
    bytes.fill(0, Math.max(size, sector * fate.unit), Math.min((sector + 1) * fate.unit, bytes.length));
  }
}

/** What a truncation took away cannot stand there when it has happened, nor what came after it when it has not. */
function cutOf(sector: number, truncations: readonly Truncation[], { size, unit, cuts }: FileFate): number {
  let cut = cuts.get(sector) ?? size;
  for (const [number, end] of truncations) {
    if (end >= (sector + 1) * unit) continue;
    cut = size > number ? Math.max(cut, number + 1) : Math.min(cut, number);
  }
  return cut;
}

type Truncation = readonly [number: number, size: number];

function truncationsOf(changes: readonly Change[]): Truncation[] {
  return [...changes.entries()].flatMap(([number, change]) =>
    change.kind === 'truncate' ? [[number, change.size] as const] : [],
  );
}

/** A fate as a person reads it: what is not there. */
export function lostIn(disk: Disk, { kept, files }: Fate, nameOf: (file: File) => string): string[] {
  const lost = disk.namings.filter((naming) => !isKept(naming, kept)).map(({ text }) => text);
  for (const [file, fate] of files) {
    const sizes = sizesOf(file);
    const size = finalSize(sizes, fate);
    const truncations = truncationsOf(file.changes);
    if (size !== sizes.at(-1)) lost.push(`${nameOf(file)}: its size is ${size}, not ${sizes.at(-1)}`);
    for (const [sector, numbers] of sectorsOf(file, fate.unit)) {
      const cut = cutOf(sector, truncations, fate);
      const gone = numbers.filter((number) => number >= cut);
      if (gone.length > 0)
        lost.push(
          `${nameOf(file)}: ${fate.unit} bytes at ${sector * fate.unit}, ${gone.length} of ${numbers.length} writes`,
        );
    }
  }
  return lost;
}

/** A rename is there only with what it renames. */
export function isKept(naming: Naming, kept: ReadonlySet<Naming>): boolean {
  const { needs } = naming;
  return kept.has(naming) && (needs === null || needs.isDurable || isKept(needs, kept));
}
