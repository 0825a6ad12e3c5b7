import type { Op } from './log.ts';

// The disk, as a run has left it at some operation: what is durable, and what is only on its way. README.md has the rules.

/** A change of a file that is not durable yet. */
export type Change =
  | { readonly at: number; readonly kind: 'write'; readonly offset: number; readonly data: Buffer }
  | { readonly at: number; readonly kind: 'truncate'; readonly size: number };

export class File {
  /** Number in the order of making. */
  readonly id: number;
  /** What is sure to be there, and nothing but zeros behind its `size`. */
  bytes = Buffer.alloc(0);
  size = 0;
  /** In the order in which they were made. */
  changes: Change[] = [];
  /** Counts what `sync` has made durable, for who keeps something about the bytes. */
  version = 0;

  constructor(id: number) {
    this.id = id;
  }

  /** What was changed in front of operation `since` is durable from now on. */
  sync(since: number): void {
    const later = this.changes.findIndex(({ at }) => at >= since);
    const durable = this.changes.splice(0, later === -1 ? this.changes.length : later);
    if (durable.length === 0) return;
    const size = Math.max(this.size, ...durable.map(endOf));
    if (this.bytes.length < size)
      this.bytes = Buffer.concat([this.bytes, Buffer.alloc(size * 2 - this.bytes.length)]);
    for (const change of durable) {
      if (change.kind === 'write') change.data.copy(this.bytes, change.offset);
      else this.bytes.fill(0, change.size);
      this.size = sizeAfter(this.size, change);
    }
    this.version += 1;
  }
}

export function endOf(change: Change): number {
  return change.kind === 'write' ? change.offset + change.data.length : change.size;
}

export function sizeAfter(size: number, change: Change): number {
  return change.kind === 'write' ? Math.max(size, endOf(change)) : change.size;
}

export class Folder {
  readonly id: number;
  readonly names = new Map<string, Node>();

  constructor(id: number) {
    this.id = id;
  }
}

export type Node = File | Folder;

/** Names that change together or not at all, and are not durable yet. */
export interface Naming {
  readonly at: number;
  /** As a person reads it. */
  readonly text: string;
  sets: readonly { readonly folder: Folder; readonly name: string; readonly node: Node | null }[];
  /** That which gave a file the name it is renamed from: without it there is nothing to rename. */
  readonly needs: Naming | null;
  /** True once nothing of it can be lost any more. */
  isDurable: boolean;
}

type Sets = Naming['sets'][number][];

/** Follows a run, operation by operation. */
export class Disk {
  /** Its durable names; those of all folders are durable ones. */
  readonly root = new Folder(0);
  namings: Naming[] = [];
  /** Every file that has changes which are not durable. */
  readonly changed = new Set<File>();
  /** The names of now, durable or not. */
  readonly #now = new Map<Folder, Map<string, Node>>([[this.root, new Map()]]);
  readonly #open = new Map<number, Node>();
  #made = 0;

  apply(op: Op, at: number): void {
    switch (op.kind) {
      case 'open':
        this.#openFile(op, at);
        break;
      case 'close':
        this.#open.delete(op.fd);
        break;
      case 'write':
        this.#change(op.fd, { at, kind: 'write', offset: op.offset, data: op.data });
        break;
      case 'truncate':
        this.#change(op.fd, { at, kind: 'truncate', size: op.size });
        break;
      case 'sync':
        this.#sync(this.#opened(op.fd), op.since);
        break;
      case 'mkdir': {
        const folder = new Folder((this.#made += 1));
        this.#now.set(folder, new Map());
        this.#name(at, `mkdir ${op.path}`, [this.#place(op.path, folder)]);
        break;
      }
      case 'unlink':
      case 'rmdir':
        this.#name(at, `${op.kind} ${op.path}`, [this.#place(op.path, null)]);
        break;
      case 'link':
        this.#name(at, `link ${op.from} ${op.to}`, [this.#place(op.to, this.#at(op.from))]);
        break;
      case 'rename': {
        const node = this.#at(op.from);
        const gone = this.#place(op.from, null);
        const sets = [gone, this.#place(op.to, node)];
        const needs = this.namings.findLast((naming) =>
          naming.sets.some((set) => isSame(set, gone) && set.node === node),
        );
        this.#name(at, `rename ${op.from} ${op.to}`, sets, needs ?? null);
        break;
      }
      case 'start':
        // It has none of the files open that the one before it had.
        this.#open.clear();
        break;
      case 'answer':
      case 'sync begins':
        break;
      default:
        op satisfies never;
    }
  }

  #openFile({ fd, path, made, emptied }: Op & { kind: 'open' }, at: number): void {
    let node: Node;
    if (made) {
      node = new File((this.#made += 1));
      this.#name(at, `create ${path}`, [this.#place(path, node)]);
    } else node = this.#at(path);
    this.#open.set(fd, node);
    if (emptied && !made) this.#change(fd, { at, kind: 'truncate', size: 0 });
  }

  #change(fd: number, change: Change): void {
    const file = this.#opened(fd);
    if (!(file instanceof File)) throw new Error(`operation ${change.at} writes to a folder`);
    file.changes.push(change);
    this.changed.add(file);
  }

  #sync(node: Node, since: number): void {
    if (node instanceof File) {
      node.sync(since);
      if (node.changes.length === 0) this.changed.delete(node);
      return;
    }
    const isDurable = ({ at, sets }: Naming): boolean =>
      at < since && sets.some(({ folder }) => folder === node);
    for (const naming of this.namings.filter(isDurable)) this.#endure(naming);
  }

  /** A durable name stays, and replaces what had its names before. */
  #endure(naming: Naming): void {
    for (const { folder, name, node } of naming.sets) {
      if (node === null) folder.names.delete(name);
      else folder.names.set(name, node);
    }
    naming.isDurable = true;
    for (const other of this.namings) {
      if (other.at >= naming.at) continue;
      other.sets = other.sets.filter((set) => !naming.sets.some((durable) => isSame(set, durable)));
      other.isDurable = other.sets.length === 0;
    }
    this.namings = this.namings.filter(({ isDurable }) => !isDurable);
  }

  #name(at: number, text: string, sets: Sets, needs: Naming | null = null): void {
    this.namings.push({ at, text, sets, needs, isDurable: false });
    for (const { folder, name, node } of sets) {
      const names = this.#namesOf(folder);
      if (node === null) names.delete(name);
      else names.set(name, node);
    }
  }

  #namesOf(folder: Folder): Map<string, Node> {
    return this.#now.get(folder) as Map<string, Node>;
  }

  #place(path: string, node: Node | null): Sets[number] {
    const slash = path.lastIndexOf('/');
    const folder = this.#at(slash === -1 ? '' : path.slice(0, slash));
    if (!(folder instanceof Folder)) throw new Error(`${path} is below a file`);
    return { folder, name: path.slice(slash + 1), node };
  }

  #at(path: string): Node {
    let node: Node = this.root;
    for (const name of path === '' ? [] : path.split('/')) {
      const next: Node | undefined = node instanceof Folder ? this.#namesOf(node).get(name) : undefined;
      if (next === undefined) throw new Error(`${path} was never made`);
      node = next;
    }
    return node;
  }

  #opened(fd: number): Node {
    const node = this.#open.get(fd);
    if (node === undefined) throw new Error(`descriptor ${fd} was never opened`);
    return node;
  }
}

function isSame(one: Sets[number], other: Sets[number]): boolean {
  return one.folder === other.folder && one.name === other.name;
}
