import * as fs from 'node:fs';

// Stands in for node:fs/promises: each call is done at once, on the same real files, without a thread of libuv.

type Sync<A extends unknown[], R> = (...args: A) => R;

function inline<A extends unknown[], R>(call: Sync<A, R>): (...args: A) => Promise<R> {
  // A sync function's error becomes a rejection, and its caller goes on a turn later.
  return async (...args) => Promise.resolve(call(...args));
}

export const access = inline(fs.accessSync);
export const chmod = inline(fs.chmodSync);
export const chown = inline(fs.chownSync);
export const link = inline(fs.linkSync);
export const lstat = inline(fs.lstatSync);
export const mkdir = inline(fs.mkdirSync);
export const mkdtemp = inline(fs.mkdtempSync);
export const readFile = inline(fs.readFileSync);
export const readdir = inline(fs.readdirSync);
export const realpath = inline(fs.realpathSync.native);
export const rename = inline(fs.renameSync);
export const rm = inline(fs.rmSync);
export const rmdir = inline(fs.rmdirSync);
export const stat = inline(fs.statSync);
export const unlink = inline(fs.unlinkSync);
export const writeFile = inline(fs.writeFileSync);

export async function open(path: string, flags?: number | string, mode?: number): Promise<FileHandle> {
  return Promise.resolve(new FileHandle(fs.openSync(path, flags ?? 'r', mode)));
}

/** What the program uses of Node's. */
export class FileHandle {
  readonly fd: number;

  constructor(fd: number) {
    this.fd = fd;
  }

  stat = inline((options?: fs.StatOptions) => fs.fstatSync(this.fd, options));
  truncate = inline((length?: number) => fs.ftruncateSync(this.fd, length));
  // As in fs.ts.
  sync = inline(() => undefined);
  datasync = inline(() => undefined);
  chmod = inline((mode: number) => fs.fchmodSync(this.fd, mode));
  chown = inline((user: number, group: number) => fs.fchownSync(this.fd, user, group));
  close = inline(() => fs.closeSync(this.fd));

  read = inline((buffer: Buffer, offset: number, length: number, position: number | null) => ({
    bytesRead: fs.readSync(this.fd, buffer, offset, length, position),
    buffer,
  }));

  write = inline((buffer: Buffer, offset?: number, length?: number, position?: number | null) => ({
    bytesWritten: fs.writeSync(this.fd, buffer, offset, length, position),
    buffer,
  }));

  writev = inline((buffers: readonly Buffer[], position?: number) => ({
    bytesWritten: fs.writevSync(this.fd, buffers, position),
    buffers,
  }));
}
