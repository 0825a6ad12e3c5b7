import { Buffer } from 'node:buffer';
import { DiskError, type Node } from './disk.ts';
import { mkdirSync, move, opened, remove, statsOf } from './fs.ts';
import { here } from './world.ts';

// Stands in for node:fs/promises: each call happens at a time that the seed chooses. Names and shapes are Node's.

type Encoding = BufferEncoding | { readonly encoding?: BufferEncoding };

/** A `FileHandle`. */
class Handle {
  readonly #node: Node;
  readonly #path: string;
  #isOpen = true;

  constructor(node: Node, path: string) {
    this.#node = node;
    this.#path = path;
  }

  stat(options: { bigint?: boolean } = {}): Promise<unknown> {
    return this.#ask(() => statsOf(this.#node, options.bigint));
  }

  readFile(): Promise<Buffer> {
    return this.#ask(() => Buffer.from(this.#file('read').data));
  }

  read(into: Uint8Array, offset: number, length: number, position: number | null): Promise<unknown> {
    return this.#ask(() => {
      const { data } = this.#file('read');
      const bytesRead = data.copy(into, offset, position ?? 0, (position ?? 0) + length);
      return { bytesRead, buffer: into };
    });
  }

  write(bytes: Uint8Array, offset = 0, length = bytes.length - offset, position: number | null = null) {
    const { random } = here().scheduler;
    return this.#ask(() => {
      const file = this.#file('write');
      const at = position ?? file.data.length;
      try {
        here().risk('write', this.#path);
      } catch (error) {
        here().disk.write(file, bytes.subarray(offset, offset + random.below(length)), at);
        throw error;
      }
      const bytesWritten = length > 1 && random.chance(0.02) ? 1 + random.below(length) : length;
      here().disk.write(file, bytes.subarray(offset, offset + bytesWritten), at);
      return { bytesWritten, buffer: bytes };
    });
  }

  async writev(pieces: readonly Uint8Array[], position: number | null = null) {
    const { bytesWritten } = (await this.write(Buffer.concat(pieces), 0, undefined, position)) as {
      bytesWritten: number;
    };
    return { bytesWritten, buffers: pieces };
  }

  truncate(length = 0): Promise<void> {
    return this.#ask(() => {
      here().risk('truncate', this.#path);
      here().disk.truncate(this.#file('truncate'), length);
    });
  }

  sync(): Promise<void> {
    return this.#ask(() => {
      here().risk('fsync', this.#path);
      here().disk.sync(this.#node);
    });
  }

  datasync(): Promise<void> {
    return this.sync();
  }

  chmod(mode: number): Promise<void> {
    return this.#ask(() => void (this.#node.mode = mode));
  }

  chown(): Promise<void> {
    return this.#ask(() => undefined);
  }

  utimes(): Promise<void> {
    return this.#ask(() => undefined);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async close(): Promise<void> {
    await this.#ask(() => void (this.#isOpen = false));
  }

  #file(call: string) {
    if (this.#node.kind !== 'file') throw new DiskError('EISDIR', call, this.#path);
    return this.#node;
  }

  #ask<T>(work: () => T): Promise<T> {
    return here().scheduler.ask(() => {
      if (!this.#isOpen) throw new DiskError('EBADF', 'descriptor', this.#path);
      return work();
    });
  }
}

export type FileHandle = Handle;

function ask<T>(work: () => T): Promise<T> {
  return here().scheduler.ask(work);
}

/** A change of names. */
function change<T>(call: string, path: string, work: () => T): Promise<T> {
  return ask(() => {
    here().risk(call, path);
    return work();
  });
}

export function open(path: string, flags: number | string = 0, mode = 0o666): Promise<Handle> {
  return ask(() => new Handle(opened(path, typeof flags === 'number' ? flags : 0, mode), path));
}

export function lstat(path: string, options: { bigint?: boolean } = {}): Promise<unknown> {
  return ask(() => statsOf(here().disk.find(path, 'lstat'), options.bigint));
}

export function stat(path: string, options: { bigint?: boolean } = {}): Promise<unknown> {
  return lstat(path, options);
}

export function access(path: string): Promise<void> {
  return ask(() => void here().disk.find(path, 'access'));
}

export function realpath(path: string): Promise<string> {
  return ask(() => {
    here().disk.find(path, 'realpath');
    return path;
  });
}

export function mkdir(
  path: string,
  options: { recursive?: boolean; mode?: number } = {},
): Promise<string | undefined> {
  return ask(() => mkdirSync(path, options));
}

export function readdir(path: string, options: { withFileTypes?: boolean } = {}): Promise<unknown> {
  return ask(() => {
    const node = here().disk.find(path, 'scandir');
    if (node.kind !== 'folder') throw new DiskError('ENOTDIR', 'scandir', path);
    const names = [...node.names].sort(([a], [b]) => (a < b ? -1 : 1));
    if (options.withFileTypes !== true) return names.map(([name]) => name);
    return names.map(([name, child]) => ({ name, parentPath: path, ...statsOf(child) }));
  });
}

export function rename(from: string, to: string): Promise<void> {
  return change('rename', from, () => move(from, to));
}

export function link(from: string, to: string): Promise<void> {
  return change('link', from, () => {
    const { disk } = here();
    if (disk.has(to)) throw new DiskError('EEXIST', 'link', to);
    const { folder, name } = disk.place(to, 'link');
    disk.set(folder, name, disk.find(from, 'link'));
  });
}

export function unlink(path: string): Promise<void> {
  return change('unlink', path, () => remove(path));
}

export function rmdir(path: string): Promise<void> {
  return change('rmdir', path, () => {
    const node = here().disk.find(path, 'rmdir');
    if (node.kind !== 'folder') throw new DiskError('ENOTDIR', 'rmdir', path);
    if (node.names.size > 0) throw new DiskError('ENOTEMPTY', 'rmdir', path);
    remove(path, true, 'rmdir');
  });
}

export function rm(path: string, options: { force?: boolean; recursive?: boolean } = {}): Promise<void> {
  return change('rm', path, () => {
    if (options.force !== true || here().disk.has(path)) remove(path, options.recursive, 'rm');
  });
}

export function readFile(path: string, encoding?: Encoding): Promise<unknown> {
  return ask(() => {
    const node = here().disk.find(path, 'open');
    if (node.kind !== 'file') throw new DiskError('EISDIR', 'read', path);
    const name = typeof encoding === 'string' ? encoding : encoding?.encoding;
    return name === undefined ? Buffer.from(node.data) : node.data.toString(name);
  });
}

export async function writeFile(path: string, content: string | Uint8Array): Promise<void> {
  const handle = await open(path, 0o1101);
  await handle.write(Buffer.from(content as string));
  await handle.close();
}

export function chmod(path: string, mode: number): Promise<void> {
  return ask(() => void (here().disk.find(path, 'chmod').mode = mode));
}

export function chown(): Promise<void> {
  return ask(() => undefined);
}
