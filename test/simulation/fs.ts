import { Buffer } from 'node:buffer';
import { constants, readFileSync as readReal } from 'node:fs';
import { DiskError, type File, type Node } from './disk.ts';
import { here } from './world.ts';

// Stands in for node:fs where the program calls it without waiting. Names and shapes are Node's.
export * from 'node:fs';

interface StatOptions {
  readonly bigint?: boolean;
  readonly throwIfNoEntry?: boolean;
}

/** What `stat` says of a file or folder. */
export function statsOf(node: Node, bigint = false): object {
  const size = node.kind === 'file' ? node.data.length : 4096;
  const number = (value: number): number | bigint => (bigint ? BigInt(Math.floor(value)) : value);
  return {
    dev: number(1),
    ino: number(node.ino),
    size: number(size),
    mode: number(node.mode),
    nlink: number(1),
    uid: number(0),
    gid: number(0),
    mtimeMs: number(node.mtime),
    birthtimeNs: number(node.ino),
    isFile: () => node.kind === 'file',
    isDirectory: () => node.kind === 'folder',
    isSymbolicLink: () => false,
    isFIFO: () => false,
  };
}

export function existsSync(path: string): boolean {
  here().scheduler.asker();
  return here().disk.has(path);
}

export function lstatSync(path: string, options: StatOptions = {}): unknown {
  here().scheduler.asker();
  if (options.throwIfNoEntry === false && !here().disk.has(path)) return undefined;
  return statsOf(here().disk.find(path, 'lstat'), options.bigint);
}

export function statSync(path: string, options: StatOptions = {}): unknown {
  return lstatSync(path, options);
}

export function realpathSync(path: string): string {
  here().disk.find(path, 'realpath');
  return path;
}

export function readFileSync(path: string | URL, encoding?: string | { encoding?: string }): unknown {
  // A file of the program itself.
  if (typeof path !== 'string') return readReal(path, encoding as 'utf8');
  here().scheduler.asker();
  const node = here().disk.find(path, 'open');
  if (node.kind !== 'file') throw new DiskError('EISDIR', 'read', path);
  const name = typeof encoding === 'string' ? encoding : encoding?.encoding;
  return name === undefined ? Buffer.from(node.data) : node.data.toString(name as BufferEncoding);
}

export function readdirSync(path: string): string[] {
  here().scheduler.asker();
  const node = here().disk.find(path, 'scandir');
  if (node.kind !== 'folder') throw new DiskError('ENOTDIR', 'scandir', path);
  return [...node.names.keys()].sort();
}

export function writeFileSync(
  path: string,
  content: string | Uint8Array,
  options: { mode?: number; flag?: string; flush?: boolean } = {},
): void {
  here().scheduler.asker();
  const { disk } = here();
  here().risk('write', path);
  if (options.flag === 'wx' && disk.has(path)) throw new DiskError('EEXIST', 'open', path);
  const file = disk.has(path) ? (disk.find(path, 'open') as File) : disk.make(path, options.mode ?? 0o644);
  disk.truncate(file, 0);
  disk.write(file, Buffer.from(content as string), 0);
  if (options.flush !== true) return;
  here().risk('fsync', path);
  disk.sync(file);
}

export function renameSync(from: string, to: string): void {
  here().scheduler.asker();
  here().risk('rename', from);
  move(from, to);
}

export function move(from: string, to: string): void {
  const { disk } = here();
  const node = disk.find(from, 'rename');
  const [old, place] = [disk.place(from, 'rename'), disk.place(to, 'rename')];
  disk.set(place.folder, place.name, node);
  disk.set(old.folder, old.name, null);
}

export function rmSync(path: string, options: { force?: boolean; recursive?: boolean } = {}): void {
  here().scheduler.asker();
  if (options.force === true && !here().disk.has(path)) return;
  remove(path, options.recursive === true);
}

export function unlinkSync(path: string): void {
  rmSync(path);
}

export function remove(path: string, recursive = false, call = 'unlink'): void {
  const { disk } = here();
  const node = disk.find(path, call);
  if (node.kind === 'folder' && !recursive) throw new DiskError('EISDIR', call, path);
  const { folder, name } = disk.place(path, call);
  disk.set(folder, name, null);
}

export function mkdirSync(
  path: string,
  options: { recursive?: boolean; mode?: number } = {},
): string | undefined {
  here().scheduler.asker();
  here().risk('mkdir', path);
  return here().disk.makeFolder(path, options.mode ?? 0o777, options.recursive === true);
}

export function chmodSync(path: string, mode: number): void {
  here().disk.find(path, 'chmod').mode = mode;
}

export function fchmodSync(descriptor: number, mode: number): void {
  nodeOf(descriptor).node.mode = mode;
}

// ---- descriptors

const open = new Map<number, { node: Node; path: string }>();
let nextDescriptor = 1_000_000;

function nodeOf(descriptor: number): { node: Node; path: string } {
  here().scheduler.asker();
  const found = open.get(descriptor);
  if (found === undefined) throw new DiskError('EBADF', 'descriptor', String(descriptor));
  return found;
}

export function openSync(path: string, flags: number | string = 'r', mode = 0o666): number {
  here().scheduler.asker();
  const bits = typeof flags === 'number' ? flags : (FLAGS[flags] ?? 0);
  const node = opened(path, bits, mode);
  nextDescriptor += 1;
  open.set(nextDescriptor, { node, path });
  return nextDescriptor;
}

const FLAGS: Readonly<Record<string, number>> = {
  r: constants.O_RDONLY,
  'r+': constants.O_RDWR,
  w: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC,
  'w+': constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC,
  wx: constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL,
  'wx+': constants.O_RDWR | constants.O_CREAT | constants.O_EXCL,
  a: constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND,
};

/** What is behind a path, made if the flags say so. */
export function opened(path: string, flags: number, mode: number): Node {
  const { disk } = here();
  if (disk.has(path)) {
    if ((flags & constants.O_EXCL) !== 0) throw new DiskError('EEXIST', 'open', path);
    const node = disk.find(path, 'open');
    if ((flags & constants.O_TRUNC) !== 0 && node.kind === 'file') disk.truncate(node, 0);
    return node;
  }
  if ((flags & constants.O_CREAT) === 0) disk.find(path, 'open');
  here().risk('open', path);
  return disk.make(path, mode);
}

export function closeSync(descriptor: number): void {
  nodeOf(descriptor);
  open.delete(descriptor);
}

export function fstatSync(descriptor: number, options: StatOptions = {}): unknown {
  return statsOf(nodeOf(descriptor).node, options.bigint);
}

export function writeSync(
  descriptor: number,
  bytes: Uint8Array,
  offset = 0,
  length = bytes.length - offset,
  position: number | null = null,
): number {
  const { node, path } = nodeOf(descriptor);
  const { random } = here().scheduler;
  if (node.kind !== 'file') throw new DiskError('EISDIR', 'write', path);
  let count = length;
  try {
    here().risk('write', path);
  } catch (error) {
    // A disk that is full takes a part first.
    here().disk.write(
      node,
      bytes.subarray(offset, offset + random.below(length)),
      position ?? node.data.length,
    );
    throw error;
  }
  if (here().isTroubled(path) && length > 1 && random.chance(0.1)) count = 1 + random.below(length);
  here().disk.write(node, bytes.subarray(offset, offset + count), position ?? node.data.length);
  return count;
}

export function writevSync(descriptor: number, pieces: readonly Uint8Array[], position?: number): number {
  const bytes = Buffer.concat(pieces);
  return writeSync(descriptor, bytes, 0, bytes.length, position ?? null);
}

export function readSync(
  descriptor: number,
  into: Uint8Array,
  offset = 0,
  length = into.length - offset,
  position: number | null = null,
): number {
  const { node, path } = nodeOf(descriptor);
  if (node.kind !== 'file') throw new DiskError('EISDIR', 'read', path);
  return node.data.copy(into, offset, position ?? 0, (position ?? 0) + length);
}

export function fdatasyncSync(descriptor: number): void {
  const { node, path } = nodeOf(descriptor);
  here().risk('fsync', path);
  here().disk.sync(node);
}

export function fsyncSync(descriptor: number): void {
  fdatasyncSync(descriptor);
}

export function ftruncateSync(descriptor: number, length = 0): void {
  const { node, path } = nodeOf(descriptor);
  here().risk('truncate', path);
  if (node.kind === 'file') here().disk.truncate(node, length);
}
