import type { Disk, File, Naming } from './disk.ts';
import { type Fate, type FileFate, sectorsOf, sizesOf, uniform } from './fates.ts';

/** Up to so many states of one crash point are all tried. */
const EXHAUSTIVE = 256;

/** Numbers in [0, 1). */
export type Random = () => number;

/**
 * States that a crash may leave, in an order that the seed decides: first nothing and everything of what is not durable;
 * then all there are, where they are few; then drawn ones, without an end.
 */
export function* fatesAt(disk: Disk, random: Random): Generator<Fate> {
  const files = [...disk.changed];
  const { namings } = disk;
  yield fateOf(
    disk,
    () => false,
    (file) => uniform(file, 0),
  );
  if (files.length === 0 && namings.length === 0) return;
  yield fateOf(
    disk,
    () => true,
    (file) => uniform(file, file.changes.length),
  );
  const dials = dialsOf(files, namings);
  const count = dials.reduce((product, { options }) => product * options, 1);
  if (count <= EXHAUSTIVE) {
    for (let number = 0; number < count; number += 1) yield dialled(disk, dials, number);
    // What is left to try is how the sectors of a smaller disk are torn.
    if (files.length === 0) return;
  }
  for (;;) yield pick(DRAWS, random)(disk, random);
}

/** One thing that is decided independently of all others. */
interface Dial {
  readonly options: number;
  readonly naming?: Naming;
  readonly file?: File;
  /** Of the file; its size where it is left out. */
  readonly sector?: number;
  /** By option. */
  readonly cuts?: readonly number[];
}

function dialsOf(files: readonly File[], namings: readonly Naming[]): Dial[] {
  const dials: Dial[] = namings.map((naming) => ({ naming, options: 2 }));
  for (const file of files) {
    const sizes = [...new Map(sizesOf(file).map((size, cut) => [size, cut])).values()];
    if (sizes.length > 1) dials.push({ file, cuts: sizes, options: sizes.length });
    for (const [sector, numbers] of sectorsOf(file, 4096)) {
      const cuts = [0, ...numbers.map((number) => number + 1)];
      dials.push({ file, sector, cuts, options: cuts.length });
    }
  }
  return dials;
}

function dialled(disk: Disk, dials: readonly Dial[], number: number): Fate {
  const fate = fateOf(
    disk,
    () => false,
    (file) => uniform(file, file.changes.length),
  );
  let rest = number;
  for (const { options, naming, file, sector, cuts = [] } of dials) {
    const option = rest % options;
    rest = Math.floor(rest / options);
    if (naming !== undefined && option === 1) fate.kept.add(naming);
    const own = file === undefined ? undefined : fate.files.get(file);
    if (own === undefined) continue;
    if (sector === undefined) own.size = cuts[option] as number;
    else own.cuts.set(sector, cuts[option] as number);
  }
  return fate;
}

type Draw = (disk: Disk, random: Random) => Fate;

/** Ways in which disks lose things. */
const DRAWS: readonly Draw[] = [
  inOrder,
  allButOne,
  onlyOne,
  scattered,
  scattered,
  scattered,
  namesOnly,
  sizesOnly,
  tornEnd,
];

/** Everything up to some moment. */
function inOrder(disk: Disk, random: Random): Fate {
  const end = pick(momentsOf(disk), random);
  return fateOf(
    disk,
    ({ at }) => at <= end,
    (file) => uniform(file, file.changes.filter(({ at }) => at <= end).length),
  );
}

/** One name, or the last writes to one file. */
function allButOne(disk: Disk, random: Random): Fate {
  const lost = pick(momentsOf(disk), random);
  return fateOf(
    disk,
    ({ at }) => at !== lost,
    (file) => {
      const number = file.changes.findIndex(({ at }) => at === lost);
      return uniform(file, number === -1 ? file.changes.length : number);
    },
  );
}

/** One name, or the first writes to one file. */
function onlyOne(disk: Disk, random: Random): Fate {
  const kept = pick(momentsOf(disk), random);
  return fateOf(
    disk,
    ({ at }) => at === kept,
    (file) => uniform(file, file.changes.findIndex(({ at }) => at === kept) + 1),
  );
}

/** Each name, each size and each sector by itself. */
function scattered(disk: Disk, random: Random): Fate {
  const names = pick([0.1, 0.5, 0.9, 1], random);
  const sectors = pick([0.05, 0.5, 0.95], random);
  const unit = pick([512, 4096], random);
  return fateOf(
    disk,
    () => random() < names,
    (file) => torn(file, { unit, sectors, random }),
  );
}

function namesOnly(disk: Disk, random: Random): Fate {
  const share = random();
  return fateOf(
    disk,
    () => random() < share,
    (file) => uniform(file, file.changes.length),
  );
}

/** Files have their length, and zeros instead of data. */
function sizesOnly(disk: Disk, random: Random): Fate {
  return fateOf(
    disk,
    () => true,
    (file) => ({ ...uniform(file, random() < 0.5 ? 0 : file.changes.length), size: file.changes.length }),
  );
}

/** The last write to each file is there in part: its first sectors, or its last ones. */
function tornEnd(disk: Disk, random: Random): Fate {
  const unit = pick([512, 4096], random);
  return fateOf(
    disk,
    () => true,
    (file) => {
      const { length } = file.changes;
      const fate = uniform(file, length, unit);
      const last = [...sectorsOf(file, unit)].filter(([, numbers]) => numbers.includes(length - 1));
      const front = random() < 0.5;
      const at = Math.floor(random() * last.length);
      for (const [index, [sector]] of last.entries())
        if (index < at === front) fate.cuts.set(sector, length - 1);
      return fate;
    },
  );
}

function torn(
  file: File,
  { unit, sectors, random }: { readonly unit: number; readonly sectors: number; readonly random: Random },
): FileFate {
  const { length } = file.changes;
  const fate = uniform(file, length, unit);
  if (random() < 0.5) fate.size = Math.floor(random() * (length + 1));
  if (random() < 0.3) fate.cap = unit * Math.floor((random() * (sizesOf(file)[fate.size] as number)) / unit);
  for (const [sector, numbers] of sectorsOf(file, unit)) {
    if (random() < sectors) continue;
    fate.cuts.set(sector, pick([0, ...numbers], random));
  }
  return fate;
}

function fateOf(disk: Disk, isKept: (naming: Naming) => boolean, fateOfFile: (file: File) => FileFate): Fate {
  return {
    kept: new Set(disk.namings.filter(isKept)),
    files: new Map(Array.from(disk.changed, (file) => [file, fateOfFile(file)])),
  };
}

function momentsOf({ namings, changed }: Disk): number[] {
  return [...namings, ...[...changed].flatMap(({ changes }) => changes)].map(({ at }) => at);
}

function pick<T>(from: readonly T[], random: Random): T {
  return from[Math.floor(random() * from.length)] as T;
}
