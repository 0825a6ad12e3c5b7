import type { Random } from '../support/random.ts';

export interface File {
  readonly kind: 'file';
  ino: number;
  mode: number;
  mtime: number;
  /** What a program reads. Never changed in place where something stood: `durable` may be the same bytes. */
  data: Buffer;
  /** Memory that `data` is the beginning of, and how much of it was ever part of it: what is behind that is free. */
  room: Buffer;
  used: number;
  /** What is on the platter; null before the first sync. */
  durable: Buffer;
}

export interface Folder {
  readonly kind: 'folder';
  ino: number;
  mode: number;
  mtime: number;
  names: Map<string, Node>;
  durable: Map<string, Node>;
}

export type Node = File | Folder;

export class DiskError extends Error {
  readonly code: string;
  readonly errno = -1;

  constructor(code: string, call: string, path: string) {
    const { stackTraceLimit } = Error;
    // Most are expected, and a stack costs more than what has failed.
    Error.stackTraceLimit = 0;
    super(`${code}: simulated, ${call} '${path}'`);
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
  }
}

const SECTOR = 512;

/** A number names one file for one life of the program, on any disk: the program remembers them. */
let inos = 1;

/**
 * A file system in memory that says what of it a power cut leaves: the content of a file as of its last sync, with any
 * sectors of what was written since; the names in a folder as of its last sync, with any of the changes since. What a
 * name leads to is never torn.
 */
export class Disk {
  #root: Folder;
  now = 0;

  constructor() {
    this.#root = this.#folder(0o755);
  }

  /** Folders that are there from the start. */
  prepare(path: string): void {
    let folder = this.#root;
    for (const name of namesOf(path)) {
      let next = folder.names.get(name);
      if (next === undefined) {
        next = this.#folder(0o755);
        folder.names.set(name, next);
        folder.durable.set(name, next);
      }
      folder = next as Folder;
    }
  }

  find(path: string, call: string): Node {
    const found = this.#look(path);
    if (typeof found === 'string') throw new DiskError(found, call, path);
    return found;
  }

  has(path: string): boolean {
    return typeof this.#look(path) !== 'string';
  }

  /** @returns an error's code where there is nothing */
  #look(path: string): Node | 'ENOENT' | 'ENOTDIR' {
    let node: Node = this.#root;
    for (const name of namesOf(path)) {
      if (node.kind !== 'folder') return 'ENOTDIR';
      const next: Node | undefined = node.names.get(name);
      if (next === undefined) return 'ENOENT';
      node = next;
    }
    return node;
  }

  /** The folder something lies in, and its name there. */
  place(path: string, call: string): { folder: Folder; name: string } {
    const names = namesOf(path);
    const name = names.pop() ?? '';
    const folder = this.find(`/${names.join('/')}`, call);
    if (folder.kind !== 'folder') throw new DiskError('ENOTDIR', call, path);
    return { folder, name };
  }

  make(path: string, mode: number, call = 'open'): File {
    const { folder, name } = this.place(path, call);
    const file: File = {
      ...this.#node('file', mode),
      kind: 'file',
      data: EMPTY,
      durable: EMPTY,
      room: EMPTY,
      used: 0,
    };
    this.set(folder, name, file);
    return file;
  }

  /** @returns the topmost folder that was made, if any */
  makeFolder(path: string, mode: number, recursive: boolean): string | undefined {
    const names = namesOf(path);
    let first: string | undefined;
    let folder: Folder = this.#root;
    for (const [at, name] of names.entries()) {
      const there = folder.names.get(name);
      const isLast = at === names.length - 1;
      if (there !== undefined && (there.kind === 'file' || (isLast && !recursive)))
        throw new DiskError(isLast ? 'EEXIST' : 'ENOTDIR', 'mkdir', path);
      if (there === undefined && !isLast && !recursive) throw new DiskError('ENOENT', 'mkdir', path);
      if (there === undefined) {
        first ??= `/${names.slice(0, at + 1).join('/')}`;
        this.set(folder, name, this.#folder(mode));
      }
      folder = folder.names.get(name) as Folder;
    }
    return first;
  }

  set(folder: Folder, name: string, node: Node | null): void {
    if (node === null) folder.names.delete(name);
    else folder.names.set(name, node);
    folder.mtime = this.now;
  }

  write(file: File, bytes: Uint8Array, position: number): void {
    const end = Math.max(file.data.length, position + bytes.length);
    const { data, room, used } = file;
    const isBehindAll = data.buffer === room.buffer && data.length === used && position >= used;
    if (!isBehindAll || end > room.length) {
      // Twice as much as is needed: most files grow again.
      file.room = Buffer.alloc(end * 2);
      data.copy(file.room);
    }
    file.room.set(bytes, position);
    file.used = end;
    file.data = file.room.subarray(0, end);
    file.mtime = this.now;
  }

  truncate(file: File, length: number): void {
    const data = Buffer.alloc(length);
    file.data.copy(data, 0, 0, Math.min(length, file.data.length));
    file.data = data;
    file.mtime = this.now;
  }

  sync(node: Node): void {
    if (node.kind === 'file') node.durable = node.data;
    else node.durable = new Map(node.names);
  }

  /** The power is gone: what is left is one of the states the disk may be in. */
  cut(random: Random): void {
    const seen = new Set<Node>();
    const visit = (node: Node): void => {
      if (seen.has(node)) return;
      seen.add(node);
      if (node.kind === 'file') this.#tear(node, random);
      else {
        for (const name of new Set([...node.names.keys(), ...node.durable.keys()])) {
          const before = node.durable.get(name);
          const after = node.names.get(name);
          const kept = before === after || random.chance(0.5) ? after : before;
          if (kept === undefined) node.durable.delete(name);
          else node.durable.set(name, kept);
        }
        node.names = new Map(node.durable);
        for (const child of node.names.values()) visit(child);
      }
    };
    visit(this.#root);
  }

  /** Numbers of before name nothing any more: modules that outlive a life of the program must not know a file again. */
  renumber(): void {
    const visit = (node: Node): void => {
      inos += 1;
      node.ino = inos;
      if (node.kind === 'folder') for (const child of node.names.values()) visit(child);
    };
    visit(this.#root);
  }

  /** Paths of all files below a folder, in order. */
  list(path: string): string[] {
    const folder = this.find(path, 'list');
    if (folder.kind === 'file') return [path];
    return [...folder.names.keys()].sort().flatMap((name) => this.list(`${path}/${name}`));
  }

  #tear(file: File, random: Random): void {
    if (file.data === file.durable) return;
    const kind = random.below(3);
    if (kind === 0) file.data = file.durable;
    else if (kind === 2) {
      const length = random.chance(0.5) ? file.data.length : file.durable.length;
      const torn = Buffer.alloc(length);
      for (let at = 0; at < length; at += SECTOR) {
        // A sector that was never written is zeros.
        const from = random.chance(0.5) ? file.data : file.durable;
        if (at < from.length) from.copy(torn, at, at, Math.min(at + SECTOR, from.length, length));
      }
      file.data = torn;
    }
    file.durable = file.data;
  }

  #folder(mode: number): Folder {
    return { ...this.#node('folder', mode), kind: 'folder', names: new Map(), durable: new Map() };
  }

  #node(_kind: string, mode: number): { ino: number; mode: number; mtime: number } {
    inos += 1;
    return { ino: inos, mode, mtime: this.now };
  }
}

const EMPTY = Buffer.alloc(0);

function namesOf(path: string): string[] {
  const names: string[] = [];
  for (const name of path.split('/')) {
    if (name === '..') names.pop();
    else if (name !== '' && name !== '.') names.push(name);
  }
  return names;
}
